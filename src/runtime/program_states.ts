/**
 * States of a program: values that outlive its runs in device memory of their own. A state exists before the first step; with `next`, its
 * memory holds the value of that wire after the last one. No copy is needed if steps update the state in place, or if the last read of the
 * state precedes the first write of the next value: that value is then computed in the state's memory. Otherwise a copy at the end moves it.
 */
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { ValueInfo } from './bind.js'
import { findLayout, type Layouts, layoutSize } from './layouts.js'
import type { ProgramMemory, StorageId, StoredValue } from './program_memory.js'
import type { FlatStep } from './program_steps.js'
import type { TensorSlice } from './session.js'

/** Device memory of a state, and the wire whose value it holds after a run; unchanged if `next` is undefined. */
export interface ProgramState {
  readonly tensor: TensorSlice
  readonly next?: string
}

export type ProgramStates = Readonly<Record<string, ProgramState>>

export interface ProgramValue extends StoredValue {
  readonly info: ValueInfo
}

/** Bytes of a value's memory, padding of its layout included. @throws usage `layout.*` */
export function valueBytes({ dtype, shape, layout }: ValueInfo, layouts: Layouts): number {
  return layoutSize(findLayout(layouts, layout, shape.length), shape) * dtypeInfo[dtype].bytes
}

export const describeValue = ({ dtype, shape, layout }: ValueInfo): string => `${dtype} [${shape.join(', ')}] in layout ${layout}`

const refuse = (state: string, why: string, hint: string) => usageError('program.state', `state ${state}: ${why}`, { hint })

/** Values of the states before the first step, by wire. @throws usage `program.state` for memory of a wrong size, or shared by two states */
export function initialStates(states: ProgramStates, memory: ProgramMemory, layouts: Layouts): Map<string, ProgramValue> {
  const entries = Object.entries(states)
  return new Map(
    entries.map(([wire, { tensor }], i) => {
      const { dtype, shape, layout = 'row', slice } = tensor
      const info = { dtype, shape, layout }
      const bytes = valueBytes(info, layouts)
      if (slice.bytes !== bytes) {
        throw refuse(
          wire,
          `expected ${bytes} bytes of memory for ${describeValue(info)}, got ${slice.bytes}`,
          'allocate it with openStates of states.ts',
        )
      }
      const twin = entries.slice(0, i).find(([, { tensor: other }]) => overlap(slice, other.slice))
      if (twin !== undefined) throw refuse(wire, `it shares memory with state ${twin[0]}`, 'give every state memory of its own')
      return [wire, { info, ...memory.allocateState(bytes, wire) }]
    }),
  )
}

/** True if two slices share a byte. */
export const overlap = (a: TensorSlice['slice'], b: TensorSlice['slice']): boolean =>
  a.buffer === b.buffer && a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes

/** Flattened program, as input of `carryStates`. */
export interface Carried {
  readonly states: ProgramStates
  readonly memory: ProgramMemory
  /** Every value by its wire; states have their value before the first step. */
  readonly values: ReadonlyMap<string, ProgramValue>
  readonly inputs: Readonly<Record<string, ProgramValue>>
  readonly outputs: readonly string[]
  readonly layouts: Layouts
  /** Appended to. */
  readonly steps: FlatStep[]
}

/** A value that a copy at the end moves to a state. */
interface Move {
  readonly state: string
  readonly from: StorageId
  readonly to: StorageId
}

/**
 * Makes every state hold its next value after the last step.
 * @throws usage `program.state` for a next value that does not exist, differs in form or is replaced itself, for a state that steps update
 * without `next`, and for a program output that is the value of a state before the run
 */
export function carryStates(carried: Carried): void {
  const { states, memory, values, outputs } = carried
  const wanted = Object.entries(states).flatMap(([state, { next }]) => {
    const before = valueAt(values, state)
    const by = memory.replacedBy(before.storage)
    if (next === undefined && by !== undefined)
      throw refuse(state, `${by} replaces elements of it, but it has no next value`, "add next: '<wire of the result>'")
    return next === undefined || next === state ? [] : [{ state, before, after: nextValue(carried, state, next) }]
  })
  const moved = wanted.filter(({ before, after }) => before.storage !== after.storage)
  // Values that are read at the end must still exist then.
  const readAtEnd = new Set<StorageId>([
    ...moved.map(({ after }) => after.storage),
    ...outputs.flatMap((wire) => values.get(wire)?.storage ?? []),
  ])
  const moves = moved.flatMap(({ state, before, after }): Move[] => {
    const output = outputs.find((wire) => values.get(wire)?.storage === before.storage)
    if (output !== undefined)
      throw refuse(
        state,
        `its value before the run is output ${output}, and its next value overwrites it`,
        'return the next value',
      )
    const made = memory.at(after.storage)
    const isFree = made.weight === undefined && made.state === undefined && !isInput(carried, after.storage)
    if (isFree && !readAtEnd.has(before.storage) && made.first > memory.at(before.storage).last) {
      made.state = state
      return []
    }
    return [{ state, from: after.storage, to: before.storage }]
  })
  appendCopies(moves, carried)
}

function valueAt(values: Carried['values'], wire: string): ProgramValue {
  const value = values.get(wire)
  if (value === undefined) throw new Error(`internal: no value ${wire}`)
  return value
}

const isInput = ({ inputs }: Carried, id: StorageId): boolean => Object.values(inputs).some(({ storage }) => storage === id)

function nextValue({ values, memory, steps }: Carried, state: string, next: string): ProgramValue {
  const after = values.get(next)
  if (after === undefined) {
    throw refuse(state, `its next value ${next} is not computed`, `computed: ${[...values.keys()].join(', ') || 'none'}`)
  }
  const [have, want] = [describeValue(after.info), describeValue(valueAt(values, state).info)]
  if (have !== want) throw refuse(state, `expected next value ${next} of form ${want}, got ${have}`, 'a state keeps its form')
  memory.read(after, Math.max(0, steps.length - 1), `state ${state}`)
  return after
}

/** Appends the copies at the end, with the effect of simultaneous ones: a state that is read and written is copied through the arena. */
function appendCopies(moves: readonly Move[], { memory, steps }: Carried): void {
  const copy = (label: string, from: StorageId, to: StorageId): void => {
    memory.extend(from, steps.length)
    memory.extend(to, steps.length)
    steps.push({ kind: 'copy', label, from, to })
  }
  const written = new Set(moves.map(({ to }) => to))
  const sources = moves.map(({ state, from }) => {
    if (!written.has(from)) return from
    const { storage } = memory.allocate(memory.at(from).bytes, steps.length)
    copy(`${state}.before`, from, storage)
    return storage
  })
  for (const [i, { state, from, to }] of moves.entries()) copy(`${state}.next`, sources[i] ?? from, to)
}
