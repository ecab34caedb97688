/** Nodes of the loop IR that each lane runs on its own, as they are evaluated. */
import { enterElement, type Lane, newRegisters } from './evaluate_lane.js'
import { firstAt, forChunk, holds, known, number, type Run, registers, validAt, value } from './evaluate_run.js'
import { rescale, shiftedPart } from './evaluate_shifted.js'
import { copySpan } from './evaluate_span.js'
import { narrow } from './evaluate_work.js'
import type { Copy, Loop } from './ir.js'

type LeafKind =
  | 'let'
  | 'offset'
  | 'narrow'
  | 'buffer'
  | 'accumulator'
  | 'announce'
  | 'held'
  | 'request'
  | 'copy'
  | 'count'
  | 'prefetch'
  | 'compute'
  | 'fill'
  | 'rescale'
  | 'accumulate'
  | 'storeChunk'
  | 'store'
  | 'shared'
  | 'put'

/** Nodes that each lane runs on its own. */
export const leaves: {
  readonly [Kind in LeafKind]: (loop: Extract<Loop, { readonly kind: Kind }>, lane: Lane, run: Run) => void
} = {
  let(loop, lane) {
    lane.env.values.set(loop.name, loop.ofChunk?.masked === true && lane.valid <= 0 ? 0 : value(loop.value, lane))
  },
  offset(loop, lane) {
    value(loop.value, lane)
  },
  narrow({ interval }, lane) {
    narrow(interval, lane)
  },
  buffer(loop, { rows }) {
    rows.set(loop.name, newRegisters())
  },
  accumulator(loop, { collected }) {
    collected.set(loop, [])
  },
  announce: () => undefined,
  held: () => undefined,
  request: () => undefined,
  copy,
  count({ index, divisors, quotients, remainders }, lane) {
    const { values } = lane.env
    let place = Number(values.get(index))
    divisors.forEach((divisor, i) => {
      const by = number(divisor, lane)
      values.set(remainders[i] ?? '', place % by)
      place = Math.floor(place / by)
      values.set(quotients[i] ?? '', place)
    })
  },
  prefetch(loop, lane, run) {
    if (run.team.chunks === 1) copy({ ...loop.copy, row: loop.name }, lane, run)
  },
  compute(loop, lane) {
    // Elements of a scan are registers of their row already.
    if (!('kind' in loop.value)) return
    if (loop.shape === 'element') lane.rows.set(loop.row, newRegisters())
    registers(loop.row, lane)[lane.at] = value(loop.value, lane)
  },
  fill(loop, lane) {
    const { factor, member } = loop.place ?? { factor: 1, member: 0 }
    if (holds(loop.when, lane)) registers(loop.buffer, lane)[lane.at * factor + member] = value(loop.value, lane)
  },
  rescale({ accumulator }, lane) {
    rescale(accumulator, lane)
  },
  accumulate(loop, lane) {
    if (loop.part !== undefined) {
      shiftedPart(
        loop,
        loop.values.map((e) => number(e, lane)),
        lane,
      )
      return
    }
    known(lane.collected.get(loop.into), loop.into.name).push({
      ...(loop.into.columns === true ? { at: lane.order, column: lane.at } : { at: lane.order + lane.at }),
      values: loop.values.map((e) => number(e, lane)),
    })
  },
  storeChunk({ access, buffer, when, members }, lane, run) {
    if (!holds(when, lane)) return
    const { factor = 1 } = access
    forChunk(lane, access.whole, run, (at) => {
      enterElement(access.index, at, lane)
      for (const { indices, member } of members ?? [{ indices: access.indices, member: 0 }])
        run.row.store(
          access.tensor,
          indices.map((e) => number(e, lane)),
          registers(buffer, lane)[at * factor + member] ?? Number.NaN,
        )
    })
  },
  store(loop, lane, run) {
    if (
      lane.id >= { owner: Number.POSITIVE_INFINITY, 'first lane': 1, 'first slot': run.team.lanes }[loop.by] ||
      !holds(loop.when, lane)
    )
      return
    const indices = loop.indices.map((e) => number(e, lane))
    run.row.store(loop.tensor, indices, value(loop.value, lane))
  },
  shared(loop, _, run) {
    run.pending.set(loop.row.name, run.pending.get(loop.row.name) ?? [])
  },
  put(loop, lane, run) {
    known(run.pending.get(loop.row), loop.row)[lane.at] = value(loop.value, lane)
  },
}

/** Loads a chunk, with the elements beside it in a span, or all chunks of a lane. */
function copy(node: Copy, lane: Lane, run: Run): void {
  const { vec } = run.team
  for (const { row, indices } of node.members ?? []) copyChunks({ ...node, row, load: { ...node.load, indices } }, lane, run)
  if (node.members !== undefined) return
  if (node.span === undefined) copyChunks(node, lane, run)
  else copySpan(node, node.span, lane, { vec, isWhole: node.access.whole && run.whole })
}

/** Loads one chunk, or all chunks of a lane. */
function copyChunks({ row, load, access, guard, shape, prefetched, length, held }: Copy, lane: Lane, run: Run): void {
  const { lanes, chunks, vec } = run.team
  const kept = held === undefined ? undefined : `${held.rows} ${lane.order}`
  if (kept !== undefined && held?.is === 'taken') {
    lane.rows.set(row, registers(kept, lane))
    return
  }
  if (prefetched !== undefined && chunks === 1) {
    lane.rows.set(row, registers(prefetched, lane))
    return
  }
  const values = newRegisters()
  lane.rows.set(row, values)
  if (kept !== undefined) lane.rows.set(kept, values)
  if (!holds(guard, lane)) return
  const extent = number(length, lane)
  const own = Array.from({ length: chunks }, (_, chunk) => firstAt(chunk * lanes + lane.id, vec, run.spread))
  for (const first of shape === 'chunk' ? [lane.first] : own.filter((place) => place < extent)) {
    // A chunk of a run of rows goes on in the next row.
    const valid = lane.run === undefined ? validAt(extent - first, run.spread) : lane.valid
    forChunk({ first, valid }, access.whole, run, (at) => {
      enterElement(access.index, at, lane)
      values[at] = value(load, lane)
    })
  }
}
