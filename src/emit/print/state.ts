/** State of the loop IR while it is printed: names that lowering made up have source only where they are declared. */
import type { Search } from '../../loop/ir.js'
import type { Written } from '../constructs/construct.js'
import type { PassContext } from './context.js'

/** State of printing. */
export interface Printing {
  readonly context: PassContext
  /** Source of names that lowering made up, and of indices of chunks. */
  readonly given: Map<string, string>
  /** Source of the first element's index in the enclosing chunk. */
  readonly first: string
  /** Template arguments of accesses whose elements are `STEP` apart; undefined where they are consecutive. */
  readonly apart?: string
  /** True if elements that lie apart stay together in pairs where `paired` holds. */
  readonly pairs?: boolean
  /** Source of the current row of slots. */
  readonly row?: string
  /** Source of the constructs that lanes compute together. */
  readonly searches: Map<Search['stmt'], Written>
}

/** Index of element `i` of a chunk. */
export function placeText({ first, apart, pairs }: Pick<Printing, 'first' | 'apart' | 'pairs'>): string {
  if (apart !== undefined && pairs === true) return `${first} + heddle::place_apart<STEP>(i, paired)`
  return `${first} + i${apart === undefined ? '' : ' * STEP'}`
}

/** Last argument of functions that place elements which lie apart. */
export const pairedText = ({ pairs }: Pick<Printing, 'pairs'>): string => (pairs === true ? ', paired' : '')

/** Replaces a made-up name by a fresh one. */
export function declare(name: string, wanted: string, { given, context }: Printing): string {
  const fresh = context.names.fresh(wanted)
  given.set(name, fresh)
  return fresh
}
