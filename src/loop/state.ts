/** State of lowering: the frame of a row, and what the steps so far have declared. */
import { sameExpr } from '../schedule/normalise/rewrite.js'
import { isOneRun, type Place, startOf, type Tensors } from './access.js'
import type { Access, Offset, Walk } from './ir.js'

/** Frame of the steps of one row. */
export interface Frame extends Tensors {
  readonly walk: Walk
  /** Elements per chunk, one entry for each width that the source is compiled for. Chunks begin at multiples of them. */
  readonly widths: readonly number[]
  /** True if a thread may have a chunk without elements. */
  readonly mayBeEmpty: boolean
  /** Bytes of an element, by tensor; four by default. */
  readonly bytes?: ReadonlyMap<string, number>
  /** True if the row of a thread with one chunk has no version yet. */
  readonly isWhole?: boolean
}

/** State of lowering, from step to step. */
export interface State {
  readonly frame: Frame
  /** Rows in shared memory that can be read. */
  readonly shared: Set<string>
  /** Offsets of rows, computed by the steps so far. */
  readonly offsets: Offset[]
  /** Number of names made up so far. */
  names: number
}

export const newState = (frame: Frame): State => ({ frame, shared: new Set(), offsets: [], names: 0 })

/** The offset of an access' row, if it has one that no earlier step computes. */
export function newOffset(access: Place & Pick<Access, 'run'>, { frame, offsets }: State): readonly Offset[] {
  const value = startOf(access, frame)
  if (!isOneRun(access) || value === undefined || offsets.some((known) => sameExpr(known.value, value))) return []
  const offset: Offset = { kind: 'offset', name: `start ${offsets.length}`, value }
  offsets.push(offset)
  return [offset]
}

/** The access, with the offset of its row. */
export function withStart(access: Omit<Access, 'whole'>, { frame, offsets }: State): Access {
  const value = isOneRun(access) ? startOf(access, frame) : undefined
  if (value === undefined) return { ...access, whole: false }
  const known = offsets.find((offset) => sameExpr(offset.value, value))
  if (known === undefined) throw new Error(`internal: the offset of ${access.tensor} is not computed`)
  return { ...access, start: known.name, whole: false }
}
