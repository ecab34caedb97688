/**
 * Names of ops. Those of a project are snake_case and unique in it; those of the standard library are qualified, `std.take`, so that
 * they never collide with a project's. A kernel has the name of its op, without the qualifier.
 */

const prefix = 'std.'

/** True if an op belongs to the standard library. */
export const isStandard = (op: string): boolean => op.startsWith(prefix)

/** Name of an op's kernel. */
export const kernelName = (op: string): string => (isStandard(op) ? op.slice(prefix.length) : op)
