/**
 * A sum over segments with given boundaries, written as a body, as `torch.segment_reduce(x, 'sum', offsets=starts)` has it: segment s is the rows from starts[s] to
 * starts[s + 1], and an empty one has the sum 0. `segmentSum` is the construct. Its loops give these sums.
 */
import { expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import { evaluateMapped } from '../../src/loop/evaluate_mapped.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'

const {
  kernels: [kernel],
  diagnostics,
} = read(`import { op, sum, tensor } from 'heddle'
export const segmentSum = op('segment_sum', {
  dims: ['n', 's', 'e', 'd'],
  inputs: { x: tensor('f32', 'n d'), starts: tensor('i32', 'e') },
  outputs: { y: tensor('f32', 's d') },
  facts: { e: 's+1', starts: { from: 0, to: 'n' } },
  body: ({ x, starts }) => (s, d) => {
    const first = starts(0 + s)
    return { y: sum(starts(s + 1) - first, (i) => x(first + i, d)) }
  },
})`)

it('sums segments, empty ones too', () => {
  expect(diagnostics).toEqual([])
  if (kernel === undefined) throw new Error('fixture')
  const dims = { n: 7, s: 3, e: 4, d: 2 }
  const tensors = {
    x: { data: Float64Array.from({ length: 14 }, (_, i) => i), shape: [7, 2] },
    starts: { data: Float64Array.from([0, 2, 2, 7]), shape: [4] },
  }
  const sums = [0 + 2, 1 + 3, 0, 0, 4 + 6 + 8 + 10 + 12, 5 + 7 + 9 + 11 + 13]
  expect([...(evaluateKernel(kernel, tensors, dims).y?.data ?? [])]).toEqual(sums)
  const found = evaluateMapped(mapKernel({ kernel, types: {}, dims: {} }), { tensors, dims })
  expect(found.map(({ outputs }) => Array.from(outputs.y?.data ?? []))).toEqual(found.map(() => sums))
  expect(found.length).toBeGreaterThan(0)
})
