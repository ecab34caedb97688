/** The trace of beams by definition, run by Node: its tokens equal those of the host's trace, and differ with another parent. */
import { expect, it } from 'vitest'
import { gatherTree } from '../../specs/ops/gather_tree.js'
import { runOp } from '../../src/lang/run.js'
import { wordsOf } from '../../src/models/decoding/beam_trace.js'

const [steps, rows, width] = [7, 6, 3]
const words = Array.from({ length: steps }, (_, step) => Array.from({ length: rows }, (_, row) => step * 10 + row))
const parents = words.map((each, step) => each.map((_, row) => row - (row % width) + ((row * 2 + step * 5) % width)))

const traced = (tree: readonly (readonly number[])[], taken: number): number[][] => {
  const shape = [steps, rows]
  const { texts } = runOp(gatherTree, {
    words: { shape, data: words.flat() },
    parents: { shape, data: tree.flat() },
    steps: { shape: [1], data: [taken] },
  })
  const found = Array.from(texts?.data ?? [])
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: steps }, (_, step) => found[step * rows + row] ?? Number.NaN),
  )
}

it.each([1, 4, 7])('behind %i steps', (taken) => {
  const own = words[0]?.map((_, row) => {
    const text = wordsOf({ words, parents }, taken, row, width)
    return [...text, ...new Array(steps - taken).fill(-1)]
  })
  expect(traced(parents, taken)).toEqual(own)
  const other = parents.map((row, step) => (step === taken - 1 ? row.with(0, ((row[0] ?? 0) + 1) % width) : row))
  if (taken > 1) expect(traced(other, taken)).not.toEqual(own)
})
