/** Functors and elements of reductions as CUDA source, by monoids of the language and of authors. */
import type { Reduced } from '../schedule/reduction.js'
import type { PassContext } from './context.js'
import { monoidText } from './expression.js'
import { fieldsText } from './user_monoid.js'

/** Names of authors' monoids in the text of a kernel. */
export type OwnNames = Pick<PassContext, 'ownName'>

export const functorText = ({ stmt, values }: Reduced, { ownName }: OwnNames): string =>
  stmt.kind === 'merge' ? ownName(stmt.monoid) : monoidText(stmt.monoid, values[0]?.type ?? 'f32')

/** Functors of several, as template arguments. */
export const functorsText = (reductions: readonly Reduced[], own: OwnNames): string =>
  reductions.map((each) => functorText(each, own)).join(', ')

/** An element, of the texts of its values. */
export const elementText = ({ stmt }: Reduced, texts: readonly string[]): string =>
  stmt.kind === 'merge' ? fieldsText(texts) : texts.join(', ')
