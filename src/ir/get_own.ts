/**
 * Records whose keys are an author's names. Every JavaScript object answers to names such as `constructor` and `toString`, which no
 * author declared: such names are refused where they are declared, and what is looked up by name is looked up here.
 */

/** The member that the record itself has under a name; undefined where it only inherits one. */
export const getOwn = <T>(record: Readonly<Record<string, T>>, name: string): T | undefined =>
  Object.hasOwn(record, name) ? record[name] : undefined

/** True if every object answers to a name. */
export const isInherited = (name: string): boolean => name in Object.prototype

/** True if ops and groups may be called so: snake_case, since the names of kernels stand in generated text. */
export const isKernelName = (name: string): boolean => /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/.test(name) && !isInherited(name)

/** What a refusal of such a name says, and what to do. */
export const inherited = {
  reason: 'every JavaScript object has a member of that name',
  hint: 'give it another name',
} as const
