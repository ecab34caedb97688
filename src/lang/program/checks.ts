/** Checks and errors that the modules of the program builder share. */
import { inTurn, usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { GraphValue } from '../../ir/graph.js'
import { printType } from '../../ir/kernel.js'
import type { ProgramValue } from '../../ir/program.js'
import { printShape } from '../../ir/shape.js'
import type { ProgramTensor } from './types.js'

/** `f16 "b*s h*d"` */
export const describe = ({ dtype, shape, layout }: GraphValue): string =>
  `${printType(dtype)} "${printShape(shape)}"${layout === 'row' ? '' : ` in layout ${layout}`}`

export function missing(at: string, what: string, name: string): never {
  throw usageError('program.missing', `${at}: ${what} ${name} is missing`)
}

/** Refuses names that are not allowed, all of them at once. @throws usage `program.unknown` */
export function refuseOthers(at: string, what: string, given: readonly string[], allowed: readonly string[]): void {
  inTurn(
    given
      .filter((name) => !allowed.includes(name))
      .map((other) => () => {
        throw usageError('program.unknown', `${at}: there is no ${what} ${other}`, {
          hint: `there are ${allowed.join(', ') || 'none'}`,
        })
      }),
  )
}

/** Applies a function to each name; returns the results by name. @throws all errors together */
export function eachOf<T>(names: readonly string[], make: (name: string) => T): Readonly<Record<string, T>> {
  const made: [string, T][] = []
  inTurn(names.map((name) => () => void made.push([name, make(name)])))
  return Object.fromEntries(made)
}

/** @throws usage `program.value` for anything but a value of the program */
export function valueAt(values: readonly ProgramValue[], handle: ProgramTensor, where: string): ProgramValue {
  // Untyped JavaScript may pass anything as a handle.
  const id: unknown = handle?.value
  const value = typeof id === 'number' ? values[id] : undefined
  if (value === undefined)
    throw usageError('program.value', `${where}: this is not a value of the program`, {
      hint: 'pass an input, a state, or a result of p.apply',
    })
  return value
}

type Handles = Readonly<Record<string, ProgramTensor>>
type Carried = ProgramTensor | Handles

/** True if a single value is carried, and not several by name. */
export const isTensor = (carried: Carried): carried is ProgramTensor => typeof carried.value === 'number'

/** Checks that carried values keep their names and forms from layer to layer. @throws usage `program.repeat`, `program.missing` */
export function sameCarried(
  at: string,
  before: Carried,
  after: Carried,
  values: readonly ProgramValue[],
  isUnknown: (handle: ProgramTensor) => boolean,
): Carried {
  const list = (carried: Carried): Handles => (isTensor(carried) ? { result: carried } : carried)
  refuseOthers(at, 'carried value', Object.keys(list(after)), Object.keys(list(before)))
  eachOf(Object.keys(list(before)), (name) => {
    const [first, next] = [before, after].map((carried) => getOwn(list(carried), name) ?? missing(at, 'carried value', name))
    if (first === undefined || next === undefined || isUnknown(first) || isUnknown(next)) return
    const [was, is] = [valueAt(values, first, at), valueAt(values, next, `${at}: ${name}`)]
    if (describe(was) !== describe(is))
      throw usageError('program.repeat', `${at}: ${was.name} is ${describe(was)}, and ${is.name} after it is ${describe(is)}`)
  })
  return after
}
