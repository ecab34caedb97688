/** Inputs of derived kernels that are constants: weights, in every graph with a kernel of the name. */
import { beforeAll, describe, expect, it } from 'vitest'
import { gelu } from '../../specs/ops/activations.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { graph } from '../../src/lang/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { planAll } from '../../src/search/plans.js'

let ops: readonly Kernel[]
beforeAll(() => {
  ops = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels
})

/** gelu(x W^T + bias) of a bias that is a weight. */
const loaded = graph('loaded', {
  inputs: { x: tensor('T', 'm k') },
  weights: { w: tensor('T', 'n k'), bias: tensor('T', 'n') },
  build: (g, { x }, { w, bias }) => {
    const product = g.matmul('m k, n k -> m n', x, w)
    const biased = g.apply(addBias, { x: product, bias }).y
    const y = g.apply(gelu, { x: biased }).y
    return { nodes: { product, biased, y }, outputs: { y } }
  },
})

/** The same of a factor and a bias that are computed on the device. */
const computed = graph('computed', {
  inputs: { x: tensor('T', 'm k'), w: tensor('T', 'n k'), bias: tensor('T', 'n') },
  weights: {},
  build: (g, { x, w, bias }) => {
    const product = g.matmul('m k, n k -> m n', x, w)
    const biased = g.apply(addBias, { x: product, bias }).y
    const y = g.apply(gelu, { x: biased }).y
    return { nodes: { product, biased, y }, outputs: { y } }
  },
})

const graphs = { loaded, computed }
const planFor = (name: keyof typeof graphs, nodes: readonly string[]): PlanDecl => ({
  name: 'test',
  graph: name,
  groups: [{ kernel: 'shared', occurrences: [nodes] }],
})

/** The constants of the kernel that plans for these graphs derive. */
function constantsOf(nodes: readonly string[], ...names: readonly (keyof typeof graphs)[]): string[] {
  const { kernels, templates } = planAll(
    names.map((name) => planFor(name, nodes)),
    graphs,
    ops,
  )
  const [kernel, ...others] = [...kernels, ...templates]
  expect(others).toEqual([])
  return (kernel?.tensors ?? []).flatMap(({ name, constant }) => (constant === true ? [name] : []))
}

describe.each([
  ['a row program', ['biased', 'y']],
  ['a matmul', ['product', 'biased', 'y']],
])('%s', (_, nodes) => {
  it('reads weights as constants', () => expect(constantsOf(nodes, 'loaded')).toEqual(['bias']))
  it('reads a computed tensor normally', () => expect(constantsOf(nodes, 'computed')).toEqual([]))
  it('reads a tensor normally if one of its graphs computes it', () => {
    expect(constantsOf(nodes, 'loaded', 'computed')).toEqual([])
    expect(constantsOf(nodes, 'computed', 'loaded')).toEqual([])
  })
})
