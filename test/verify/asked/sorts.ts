/** Sorted rows, and contributions to each class or row of a table. */

import { tensor } from '../../../src/runtime/api/index.js'
import { embeddingBag } from '../../projects/asked/specs/index.js'
import { classCounts, segmentSort } from '../../projects/recipes/specs/inference.js'
import { gatherRows } from '../../projects/types/specs/index.js'
import { accumulateGradient, binCount, putBack } from '../../projects/workshop/specs/scatters.js'
import { byExpert, sortRows } from '../../projects/workshop/specs/sorts.js'
import { at, claim, drawn, f32, i32, indices, places, type Reference, rowsOf, sumOf } from './claims.js'

const [m, n] = [3, 131]
const exact = { class: 'exact' } as const
const shape = [m, n]

/** Rows with equal elements, which keep their order. */
const sorted: Reference = async (device) => {
  const x = drawn(m * n, 1).map((each) => Math.round(each * 8))
  const found = await device.call(sortRows, { x: f32(shape, x) })
  const order = (sign: number, later = 1): number[] =>
    rowsOf(x, n).flatMap((row) => indices(n).sort((a, b) => sign * (at(row, a) - at(row, b)) || later * (a - b)))
  const values = rowsOf(x, n).flatMap((row) => [...row].sort((a, b) => a - b))
  return [
    claim('sorted', found.sorted, values, x, exact),
    claim('places', found.places, order(1), order(1, -1), exact),
    claim('descending', found.descending, order(-1), order(-1, -1), exact),
  ]
}

const withinSegments: Reference = async (device) => {
  const [x, segment] = [drawn(m * n, 1), places(m * n, 4)]
  const { y } = await device.call(segmentSort, { x: f32(shape, x), segment: i32(shape, segment) })
  const parts = (keep: readonly number[]): number[] =>
    indices(m).flatMap((r) =>
      keep.flatMap((of) =>
        indices(n)
          .map((c) => r * n + c)
          .filter((i) => at(segment, i) === of)
          .map((i) => at(x, i))
          .sort((a, b) => a - b),
      ),
    )
  return [claim('y', y, parts([0, 1, 2, 3]), parts([1, 0, 2, 3]), exact)]
}

/** Tokens in the order of their experts, those of one in the order they came; weights the other way round. */
const dispatched: Reference = async (device) => {
  const [expert, gate] = [places(m * n, 8), drawn(m * n, 2)]
  const { token, weight } = await device.call(byExpert, { expert: i32(shape, expert), gate: f32(shape, gate) })
  const tokens = (later: number): number[] =>
    rowsOf(expert, n).flatMap((row) => indices(n).sort((a, b) => at(row, a) - at(row, b) || later * (a - b)))
  const weights = (of: readonly number[]): number[] =>
    rowsOf(of, n).flatMap((row, r) => row.toReversed().map((t) => at(gate, r * n + t)))
  return [
    claim('token', token, tokens(1), tokens(-1), exact),
    claim('weight', weight, weights(tokens(1)), weights(tokens(-1)), exact),
  ]
}

/** Elements are scattered to the positions in the keys. */
const scattered: Reference = async (device) => {
  const x = drawn(m * n, 1)
  const key = indices(m).flatMap((r) => indices(n).map((c) => (c * (r + 2) + r) % n))
  const { y } = await device.call(putBack, { x: f32(shape, x), key: i32(shape, key) })
  const moved = (from: boolean): number[] =>
    indices(m).flatMap((r) => {
      const row = new Array<number>(n).fill(0)
      for (const c of indices(n)) {
        const to = at(key, r * n + c)
        row[from ? c : to] = at(x, r * n + (from ? to : c))
      }
      return row
    })
  // The permutation that sorts the keys is their inverse, and its own inverse is the keys again.
  return [claim('y', y, moved(true), moved(false), exact)]
}

/** The gradient of a table, by adding to rows one token after the other. */
const tableGradient: Reference = async (device) => {
  const [t, v, k] = [61, 7, 13]
  const [grad, dy, ids] = [drawn(v * k, 1), drawn(t * k, 2), places(t, v)]
  const { sums } = await device.call(accumulateGradient, { grad: f32([v, k], grad), dy: f32([t, k], dy), ids: i32([t], ids) })
  const added = (from: readonly number[]): number[] => {
    const all = [...from]
    for (const i of indices(t))
      for (const c of indices(k)) all[at(ids, i) * k + c] = at(all, at(ids, i) * k + c) + at(dy, i * k + c)
    return all
  }
  return [claim('sums', sums, added(grad), added(grad.map(() => 0)), { class: 'reduction', length: t, scale: 8 })]
}

/** NumPy's `bincount`, ignoring ids without a bin. */
const bins: Reference = async (device) => {
  const [t, of] = [1009, 11]
  const [ids, weight] = [places(t, of + 2).map((each) => each - 1), drawn(t, 2)]
  const found = await device.call(binCount, { ids: i32([t], ids), weight: f32([t], weight) }, { dims: { bins: of } })
  const total = (first: number, each: (i: number) => number): number[] =>
    indices(of).map((b) =>
      sumOf(
        indices(t)
          .filter((i) => at(ids, i) === b + first)
          .map(each),
      ),
    )
  return [
    claim(
      'count',
      found.count,
      total(0, () => 1),
      total(-1, () => 1),
      exact,
    ),
    claim(
      'weights',
      found.weights,
      total(0, (i) => at(weight, i)),
      total(-1, (i) => at(weight, i)),
      {
        ...{ class: 'reduction', length: t, scale: 8 },
      },
    ),
  ]
}

const classes: Reference = async (device) => {
  const label = places(m * n, 7)
  const { count } = await device.call(classCounts, { label: i32(shape, label) }, { dims: { k: 7 } })
  const counts = (first: number): number[] =>
    rowsOf(label, n).flatMap((row) => indices(7).map((k) => row.filter((each) => each === k + first).length))
  return [claim('count', count, counts(0), counts(1), exact)]
}

/** A table read by indices of 64 bits. */
const gathered: Reference = async (device) => {
  const [v, k] = [5, 13]
  const [table, ids] = [drawn(v * k, 4), [4, 0, 2, 4, 1]]
  const { y } = await device.call(gatherRows, { table: f32([v, k], table), ids: tensor('i64', [5], ids) })
  const read = (of: readonly number[]): number[] => of.flatMap((id) => table.slice(id * k, (id + 1) * k))
  return [claim('y', y, read(ids), read(ids.toReversed()), exact)]
}

/** PyTorch's `EmbeddingBag` with weights per sample: bags of several lengths, one of them empty. */
const bags: Reference = async (device) => {
  const [v, k] = [7, 13]
  const [table, weight, ids] = [drawn(v * k, 1), drawn(23, 2), places(23, v)]
  const offsets = [0, 5, 5, 6, 23]
  const given = { table: f32([v, k], table), ids: i32([23], ids), weight: f32([23], weight), offsets: i32([5], offsets) }
  const { y } = await device.call(embeddingBag, given, { dims: { b: 4 } })
  const sums = (weightOf: (i: number) => number): number[] =>
    indices(4).flatMap((bag) => {
      const inBag = indices(23).filter((i) => i >= at(offsets, bag) && i < at(offsets, bag + 1))
      return indices(k).map((c) => sumOf(inBag.map((i) => weightOf(i) * at(table, at(ids, i) * k + c))))
    })
  return [
    claim(
      'y',
      y,
      sums((i) => at(weight, i)),
      sums(() => 1),
      { class: 'reduction', length: 23, scale: 8 },
    ),
  ]
}

export const sorts = { sorted, withinSegments, dispatched, scattered, tableGradient, bins, classes, gathered, bags }
