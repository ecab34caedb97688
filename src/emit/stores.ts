/**
 * The stores of a pass as CUDA text: values that leave in chunks are gathered first, the others are written one by one. A store with a
 * condition is made only where that holds, and a value that might fault is not computed elsewhere either.
 */
import type { LoopStore } from '../schedule/normal.js'
import type { Pass } from '../schedule/passes.js'
import { expressionText, offsetText, type Scope, tensorOf } from './expression.js'
import { faults } from './faults.js'
import { scalarText } from './names.js'
import { beforeStore } from './stored.js'

/** A store of consecutive elements, and the array that holds its values until they leave. */
export interface ChunkStore extends LoopStore {
  readonly run: number
  readonly values: string
}

export const chunkStoresOf = ({ stores, loop }: Pass, { names }: Scope): ChunkStore[] =>
  stores.flatMap((s) => (s.run === undefined ? [] : [{ ...s, run: s.run, values: names.fresh(`${s.tensor}_${loop.index}`) }]))

/** Declares the array of a chunk store. `guarded`: elements that do not exist are not computed. */
export const declareLine = (s: ChunkStore, guarded: boolean): string =>
  `${scalarText[s.value.type]} ${s.values}[VEC]${guarded || isCareful(s) ? ' = {}' : ''};`

const isCareful = ({ when, value }: LoopStore): boolean => when !== undefined && faults(value)

/** Computes one element of a chunk store. */
export const valueLine = (s: ChunkStore, scope: Scope): string =>
  `${isCareful(s) ? whenText(s, scope) : ''}${s.values}[i] = ${storedText(s, scope)};`

/** The condition in front of what is done for a store only where it holds. */
export const whenText = ({ when }: Pick<LoopStore, 'when'>, context: Scope): string =>
  when === undefined ? '' : `if (${expressionText(when, context)}) `

export const scatterLine = (s: LoopStore, context: Scope): string =>
  `${whenText(s, context)}heddle::write(${context.names.tensor(s.tensor)}, ${offsetText(s.tensor, s.indices, context)}, ${storedText(s, context)});`

const storedText = ({ tensor, value }: Pick<LoopStore, 'tensor' | 'value'>, context: Scope): string =>
  expressionText(beforeStore(value, tensorOf(tensor, context).dtype), context)
