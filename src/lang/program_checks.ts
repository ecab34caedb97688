/** Refusals that all of building a program shares. */
import { usageError } from '../errors.js'
import type { GraphValue } from '../ir/graph.js'
import { printShape } from '../ir/shape.js'
import { printType } from './program_match.js'

/** `f16 "b*s h*d"` */
export const describe = ({ dtype, shape, layout }: GraphValue): string =>
  `${printType(dtype)} "${printShape(shape)}"${layout === 'row' ? '' : ` in layout ${layout}`}`

export function missing(at: string, what: string, name: string): never {
  throw usageError('program.missing', `${at}: ${what} ${name} is missing`)
}

export function refuseOthers(at: string, what: string, given: readonly string[], allowed: readonly string[]): void {
  const other = given.find((name) => !allowed.includes(name))
  if (other === undefined) return
  throw usageError('program.unknown', `${at}: there is no ${what} ${other}`, {
    hint: `there are ${allowed.join(', ') || 'none'}`,
  })
}
