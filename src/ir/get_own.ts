/**
 * Records whose keys are an author's names. Every JavaScript object inherits members such as `constructor` and `toString`, which no
 * author declared. Such names are refused where they are declared, and lookups by name go through here.
 */

/** The record's own member of a name; undefined if it only inherits one. */
export const getOwn = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** True if every object inherits a member of that name. */
export const isInherited = (name: string): boolean => name in Object.prototype

/** True if an op or a group may have this name: snake_case, since the names of kernels occur in generated source. */
export const isKernelName = (name: string): boolean => /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name) && !isInherited(name)

/** Reason and hint of the error for such a name. */
export const inherited = {
  reason: 'every JavaScript object has a member of that name',
  hint: 'give it another name',
} as const
