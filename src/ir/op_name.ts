/**
 * Names of ops. Those of a project are snake_case and unique in it; those of the standard library are qualified, `std.take`, so that
 * no op of a project has the name of one. A kernel is called after its op, without what qualifies it.
 */

const prefix = 'std.'

/** True if an op is of the standard library. */
export const isStandard = (op: string): boolean => op.startsWith(prefix)

/** What the kernel of an op is called. */
export const kernelName = (op: string): string => (isStandard(op) ? op.slice(prefix.length) : op)
