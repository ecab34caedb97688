/** Options of a caller without types: names that nothing would read are refused, so that a misspelt one does not pass for its default. */
import { usageError } from '../../errors.js'
import { nameHint } from '../../runtime/api/names.js'

/** Every name of a type of options. A name that is missing, or one too many, is an error of types. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>

/** @throws usage `run.option` for what is no object, and for a name that is not among those of `who` */
export function expectOptions(who: string, names: Readonly<Record<string, true>>, given: unknown): void {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    const what = given === null ? 'null' : Array.isArray(given) ? 'an array' : `a ${typeof given}`
    throw usageError('run.option', `${who} was given ${what}, expected an object of options`, {
      hint: nameHint('options', Object.keys(names), ''),
    })
  }
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(names, name))
  if (unknown === undefined) return
  throw usageError('run.option', `${who} has no option ${unknown}`, { hint: nameHint('options', Object.keys(names), unknown) })
}

/** Those of some options that have these names. */
export const named = <Options extends object>(names: NamesOf<Options>, given: Options): Options =>
  Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(names, name))) as Options
