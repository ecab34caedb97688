/** Functors of reductions as CUDA source, by monoids of the language and of authors. */
import type { Accumulator } from '../../loop/ir.js'
import type { PassContext } from './context.js'
import { monoidText } from './expression.js'

/** Names of authors' monoids in the source of a kernel. */
export type OwnNames = Pick<PassContext, 'ownName'>

type Functor = Pick<Accumulator, 'monoid' | 'type'>

export const functorText = ({ monoid, type }: Functor, { ownName }: OwnNames): string =>
  typeof monoid === 'string' ? monoidText(monoid, type) : ownName(monoid)

/** Functors of several, as template arguments. */
export const functorsText = (all: readonly Functor[], own: OwnNames): string =>
  all.map((each) => functorText(each, own)).join(', ')
