/** Checks of options from untyped callers: unknown names are refused, so that a misspelt option does not silently take its default. */
import { usageError } from '../../errors.js'
import { nameHint } from '../../runtime/api/names.js'

/** Every name of an options type. A missing or extra name is a type error. */
export type NamesOf<Options> = Readonly<Record<keyof Options, true>>

/** @throws usage `run.option` if `given` is not an object or has a name that `who` does not accept */
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

/** The options with these names. */
export const named = <Options extends object>(names: NamesOf<Options>, given: Options): Options =>
  Object.fromEntries(Object.entries(given).filter(([name]) => Object.hasOwn(names, name))) as Options
