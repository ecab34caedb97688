/** Groups that replace elements in place: biases added before two caches are written, in one kernel; and nodes that such a group may not have. */
import { beforeAll, describe, expect, it } from 'vitest'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { relu } from '../../specs/ops/activations.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { appendStep } from '../../specs/ops/append_step.js'
import { gatherBeams } from '../../specs/ops/beams.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { placeUpdates } from '../../src/ir/update.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { exactly } from './compare.js'
import { runGraph, shapeOf } from './host.js'

const cache = tensor('T', 'r s h d', splitHeads)

/** A decoder layer's handling of its new keys and values. */
const { graph: layer } = graph('appending', {
  inputs: { x: tensor('T', 'r h*d'), keys: cache, values: cache, beams: tensor('i32', 'r s'), step: tensor('i32', '1') },
  weights: { keyWeight: tensor('T', 'h*d h*d'), keyB: tensor('T', 'h*d'), valueB: tensor('T', 'h*d') },
  build: (g, { x, keys, values, beams, step }, w) => {
    const key = g.matmul('m k, n k -> m n', x, w.keyWeight)
    const keyBias = g.apply(addBias, { x: key, bias: w.keyB }).y
    const valueBias = g.apply(addBias, { x, bias: w.valueB }).y
    const keyAppend = g.apply(appendStep, { cache: keys, x: g.view(keyBias, 'r h d'), step }).y
    const valueAppend = g.apply(appendStep, { cache: values, x: g.view(valueBias, 'r h d'), step }).y
    const shown = g.apply(relu, { x: valueBias }).y
    const past = g.apply(gatherBeams, { cache: keyAppend, beams }).y
    return {
      nodes: { key, keyBias, valueBias, keyAppend, valueAppend, shown, past },
      outputs: { keyAppend, valueAppend, shown, past },
    }
  },
})
const dims = { r: 3, s: 4, h: 2, d: 5 }

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels.map((kernel) => [kernel.name, kernel]))
})

const group = (...nodes: string[]) =>
  applyPlan(layer, { name: 'test', graph: layer.name, groups: [{ kernel: 'append_both', occurrences: [nodes] }] }, ops)

/** Outputs for inputs in a fixed pattern. */
function outputs(graphOf: typeof layer, kernels: ReadonlyMap<string, Kernel>, step: number): number[][] {
  const given = Object.fromEntries(
    Object.entries({ ...layer.inputs, ...layer.weights }).map(([name, id], k) => {
      const length = shapeOf(layer, id, dims).reduce((a, b) => a * b, 1)
      return [
        name,
        name === 'step'
          ? [step]
          : name === 'beams'
            ? Array.from({ length }, (_, i) => (i * 2) % 3)
            : Float64Array.from({ length }, (_, i) => Math.sin(i + 10 * k)),
      ]
    }),
  )
  return Object.values(runGraph(graphOf, kernels, given, dims, {})).map((values) => Array.from(values))
}

describe('a group that appends to two caches', () => {
  const nodes = ['keyBias', 'valueBias', 'keyAppend', 'valueAppend'] as const
  const withoutShown = { ...layer, nodes: layer.nodes.filter(({ name }) => name !== 'shown'), outputs: { ...layer.outputs } }

  it('is one kernel over only the new elements, and equals its nodes', () => {
    const { shown: _, ...rest } = withoutShown.outputs
    const plain = { ...withoutShown, outputs: rest }
    const { graph: planned, kernels } = applyPlan(
      plain,
      { name: 'test', graph: plain.name, groups: [{ kernel: 'append_both', occurrences: [nodes] }] },
      ops,
    )
    const kernel = kernels.get('append_both')
    if (kernel === undefined) throw new Error('no kernel')
    expect(kernel.tensors.flatMap(({ name, updates }) => (updates === undefined ? [] : [[name, updates]]))).toEqual([
      ['y', 'cache'],
      ['y2', 'cache2'],
    ])
    const placed = placeUpdates(kernel)
    expect(placed.rows.map(({ dim }) => dim)).toEqual(['m', 'h'])
    expect(printKernel(placed)).not.toContain('cache[')
    expect(printKernel(placed).match(/let place/g)).toHaveLength(1)
    for (const step of [0, 3, 4, -1]) {
      const all = new Map([...ops, ...kernels])
      for (const [i, values] of outputs(planned, all, step).entries()) exactly(values, outputs(plain, ops, step)[i] ?? [])
      const inPlace = new Map([...all, ['append_both', placed] as const])
      for (const [i, values] of outputs(planned, inPlace, step).entries()) exactly(values, outputs(plain, ops, step)[i] ?? [])
    }
  })

  it.each<[string, readonly string[], RegExp]>([
    [
      'a product',
      ['key', 'keyBias', 'keyAppend'],
      /nodes key and keyAppend .*keyAppend replaces elements in place, which no kernel with a matmul does/,
    ],
    ['a value others need', ['valueBias', 'valueAppend'], /y cannot be replaced in place: .* stores nothing else/],
    ['a reader of what it replaced', ['keyAppend', 'past'], /keyAppend and past cannot be one kernel/],
  ])('is refused with %s', (_, members, message) => {
    expect(() => group(...members)).toThrow(
      expect.objectContaining({ code: 'plan.illegal', message: expect.stringMatching(message) }),
    )
  })
})
