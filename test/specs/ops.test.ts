import { describe, expect, it } from 'vitest'
import { graphs, layouts, ops } from '../../specs/index.js'
import { geluByTanh, geluErf, rectify, sigmoidWeighted } from '../../specs/ops/activations.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { kernelName } from '../../src/ir/op_name.js'
import { runOp } from '../../src/lang/run.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'

const at = (shape: number[], ...data: number[]): HostTensor => ({ shape, data })
const run = (name: string, inputs: Record<string, HostTensor>, attrs: Record<string, number> = {}): HostTensor => {
  const op = ops[name]
  if (op === undefined) throw new Error(`no op ${name}`)
  const [result] = Object.values(runOp(op, inputs, { attrs }))
  if (result === undefined) throw new Error(`${name} has no output`)
  return { shape: result.shape, data: [...Array.from(result.data)] }
}
const matrix = at([2, 3], 1, 2, 3, -4, 5, -6)

describe('ops by definition', () => {
  it.each<[string, Record<string, HostTensor>, Record<string, number>, HostTensor]>([
    ['add', { x: matrix, y: at([2, 3], 1, 1, 1, 2, 2, 2) }, {}, at([2, 3], 2, 3, 4, -2, 7, -4)],
    ['add_bias', { x: matrix, bias: at([3], 10, 20, 30) }, {}, at([2, 3], 11, 22, 33, 6, 25, 24)],
    ['add_position', { x: at([2, 2, 1], 1, 2, 3, 4), table: at([3, 1], 10, 20, 30) }, {}, at([2, 2, 1], 11, 22, 13, 24)],
    ['argmax', { x: at([3, 3], 1, 2, 2, -1, -2, -3, 0, 0, 0) }, {}, at([3], 1, 0, 0)],
    ['cast_f32', { x: matrix }, {}, matrix],
    ['embedding_lookup', { ids: at([3], 1, 0, 1), table: at([2, 2], 1, 2, 3, 4) }, {}, at([3, 2], 3, 4, 1, 2, 3, 4)],
    ['word_lookup', { ids: at([2], -1, 1), table: at([2, 1], 1, 2) }, {}, at([2, 1], Number.NaN, 2)],
    ['first_token', { x: at([2, 2, 2], 1, 2, 3, 4, 5, 6, 7, 8) }, {}, at([2, 2], 1, 2, 5, 6)],
    ['mean_tokens', { x: at([2, 2, 2], 1, 2, 3, 4, 5, 6, Number.NaN, 8), lengths: at([2], 2, 1) }, {}, at([2, 2], 2, 3, 5, 6)],
    ['last_token', { x: at([2, 2, 2], 1, 2, 3, 4, 5, 6, 7, 8), lengths: at([2], 2, 1) }, {}, at([2, 2], 3, 4, 5, 6)],
    ['unit_rows', { x: at([3, 2], 3, 4, 0, 0, -2, 0) }, {}, at([3, 2], 3 / 5, 4 / 5, 0, 0, -1, 0)],
    ['merge_heads', { x: at([1, 2, 2, 1], 1, 2, 3, 4) }, {}, at([1, 2, 2, 1], 1, 2, 3, 4)],
    ['split_heads', { x: at([1, 2, 2, 1], 1, 2, 3, 4) }, {}, at([1, 2, 2, 1], 1, 2, 3, 4)],
    ['relu', { x: matrix }, {}, at([2, 3], 1, 2, 3, 0, 5, 0)],
    ['scale', { x: matrix }, { factor: 0.5 }, at([2, 3], 0.5, 1, 1.5, -2, 2.5, -3)],
    ['sequence_starts', { lengths: at([2, 4], 3, 0, 2, 5, 1, 1, 1, 1) }, {}, at([2, 4], 0, 3, 3, 5, 0, 1, 2, 3)],
    ['mask_scores', { x: at([2, 1, 1, 2], 1, 2, 3, 4), lengths: at([2], 1, 2) }, {}, at([2, 1, 1, 2], 1, -1e30, 3, 4)],
    ['tanh', { x: at([1, 3], 0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY) }, {}, at([1, 3], 0, 1, -1)],
    ['abs_max', { x: matrix }, {}, at([2], 3, 6)],
    ['abs_max', { x: at([3, 2], 1, Number.NaN, Number.NEGATIVE_INFINITY, 1, 0, -0) }, {}, at([3], 3e38, 3e38, 0)],
    ['channel_max', { x: at([3, 2], 1, -7, -3, Number.NaN, 2, 0) }, {}, at([2], 3, 3e38)],
    ['column_sum', { x: at([3, 2], 1, 2, 3, 4, 5, 6) }, {}, at([2], 9, 12)],
  ])('%s', (name, inputs, attrs, expected) => {
    expect(run(name, inputs, attrs)).toEqual(expected)
  })

  it('a magnitude counts in the bin it falls in, the largest in the last', () => {
    const op = ops.magnitude_histogram
    if (op === undefined) throw new Error('no op')
    const x = at([2, 5], 0.49, -0.5, 1.5, -2, 9, 0, 0, 0, 0, Number.NaN)
    const count = (scale: number) => Array.from(runOp(op, { x }, { attrs: { scale }, dims: { bins: 4 } }).counts?.data ?? [])
    expect(count(2)).toEqual([1, 1, 0, 3, 4, 0, 0, 1])
    expect(count(0)).toEqual([5, 0, 0, 0, 5, 0, 0, 0])
  })

  it('softmax sums to one, ignores a shift, and gives masked entries exactly zero', () => {
    const { data } = run('softmax', { x: at([2, 3], 1, 2, 3, 1001, 1002, 1003) })
    expect(data[0]).toBe(data[3])
    const masked = Array.from(run('softmax', { x: at([1, 3], 5, -1e30, Number.NEGATIVE_INFINITY) }).data)
    expect(masked).toEqual([1, 0, 0])
  })

  it('layer norm centres and scales each row', () => {
    const ones = at([4], 1, 1, 1, 1)
    const { data } = run('layer_norm', { x: at([1, 4], 1, 1, 3, 3), gamma: ones, beta: at([4], 0, 0, 0, 5) }, { eps: 0 })
    expect(data).toEqual([-1, -1, 1, 6])
  })

  it('activations have their known values', () => {
    // P(Z <= 1) of the standard normal distribution; 1 + tanh(u) is 2 / (1 + exp(-2u)).
    const normal = 0.8413447460685429
    const logistic = 1 / (1 + Math.exp(-2 * Math.sqrt(2 / Math.PI) * 1.044715))
    const bound = tolerance({ dtype: 'f32', class: 'transcendental' })
    const result = compare([geluErf(1), geluErf(-1), geluByTanh(1)], [normal, normal - 1, logistic], bound)
    expect(result.passed, result.summary).toBe(true)
    expect(compare([geluByTanh(1)], [normal], bound).passed).toBe(false)
    expect([rectify(-2), rectify(3)]).toEqual([0, 3])
    // x sigmoid(x) is x (1 + tanh(x / 2)) / 2; far from 0 it is x or vanishes.
    expect(compare([sigmoidWeighted(2)], [1 + Math.tanh(1)], bound).passed).toBe(true)
    expect([sigmoidWeighted(1000), sigmoidWeighted(-1000) === 0]).toEqual([1000, true])
  })
})

describe('the registries', () => {
  it('name every declaration by its own name', () => {
    for (const registry of [ops, layouts, graphs]) {
      for (const [name, declaration] of Object.entries(registry)) expect(kernelName(declaration.name)).toBe(name)
    }
  })

  it('contain every op and layout of the graphs', () => {
    for (const { graph } of Object.values(graphs)) {
      for (const node of graph.nodes)
        if (node.kind === 'op') expect(Object.values(ops).map(({ name }) => name)).toContain(node.op)
      for (const { layout } of graph.values) expect(['row', ...Object.keys(layouts)]).toContain(layout)
    }
  })
})
