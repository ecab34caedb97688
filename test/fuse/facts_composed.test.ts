/** Facts of derived kernels are those of their members in the kernel's own names, regardless of the name of the group and its derivation. */
import { describe, expect, it } from 'vitest'
import { graphs, plans } from '../../specs/index.js'
import { addPosition } from '../../specs/ops/add_position.js'
import { embeddingLookup } from '../../specs/ops/embedding_lookup.js'
import { layerNorm } from '../../specs/ops/layer_norm.js'
import { manifestFacts } from '../../src/emit/manifest/facts.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { graph } from '../../src/lang/graph.js'
import { plan } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { resolvePlans } from '../../src/search/resolve.js'
import { quantize } from '../../src/std/int8.js'

const { kernels, standard, layouts } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
const byName = new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel]))
const layoutsByName = new Map(layouts.map((layout) => [layout.name, layout]))
const resolved = resolvePlans(plans, graphs, byName, layoutsByName)

/** Facts of a shipped group. */
function shipped(kernel: string) {
  const decl = resolved.find(({ groups }) => groups.some((group) => group.kernel === kernel))
  const from = Object.values(graphs).find(({ graph: { name } }) => name === decl?.graph)?.graph
  if (decl === undefined || from === undefined) throw new Error(`no plan has a group ${kernel}`)
  const made = applyPlan(from, decl, byName, layoutsByName)
  const derived = made.kernels.get(kernel) ?? made.templates.get(kernel)
  if (derived === undefined) throw new Error(`no kernel ${kernel}`)
  return manifestFacts(derived)
}

describe('facts of derived kernels', () => {
  it('of a row program: tables of two lookups, and rows that are packed', () => {
    const { inputs, dims, results } = shipped('embed_layer_norm')
    expect(inputs.ids?.to).toEqual([['sub', 'v', 1]])
    expect(inputs.ids2?.to).toEqual([['sub', 'v2', 1]])
    expect(inputs.starts?.packed).toMatchObject({ role: 'starts', batch: 'b', rows: 't' })
    expect(dims.p).toMatchObject({ atLeast: '(seq)' })
    expect(results.y).toMatchObject({ class: 'reduction', length: 'n', steep: true })
  })

  it('of attention: lengths of packed rows, with the longest in an attribute, and adjacent parts', () => {
    const { inputs, dims, results, loops } = shipped('attention')
    expect(inputs.lengths).toMatchObject({ packed: { role: 'lengths', batch: 'b_extent', rows: 't_extent' }, to: ['s_extent'] })
    expect(dims.extent).toEqual({ equal: 3 })
    expect(results.y).toMatchObject({ class: 'attention', length: 'd_extent' })
    expect(loops).toContain('d_extent')
  })

  it('of a decoding step: the bounds of all readers of the step', () => {
    const { inputs, results } = shipped('decode_attention_bias')
    expect(inputs.step?.to).toContainEqual(['sub', 's_extent', 1])
    expect(inputs.beams?.to).toEqual([['sub', 'extent2', 1]])
    // Keys are rounded when they are stored, before they are attended.
    expect(results.y3).toMatchObject({ class: 'attention', rounded: { rms: 0.354, roots: 1, degree: 2 } })
    expect(results.y).toEqual({ class: 'elementwise', integers: true })
    expect(shipped('decode_attention').results.y3).toEqual({ class: 'attention', integers: false, length: 'd_extent' })
  })

  it('of a matmul: steps by the length of its sums, and the scale that fills its result', () => {
    const { inputs, attrs, results } = shipped('int8_matmul_bias_gelu_quantize')
    expect(inputs.steps).toMatchObject({ divide: 'k' })
    expect(attrs.inverse).toEqual({ fills: 'y' })
    expect(results.y).toMatchObject({ class: 'transcendental' })
    expect(shipped('matmul_bias').results.y).toMatchObject({ class: 'matmul', length: 'k', integers: true })
    expect(shipped('matmul_bias_gelu').results.y).toMatchObject({ class: 'matmul', length: ['add', 'k', 8], integers: false })
  })

  it("of a user's group, with other names of its dimensions", () => {
    const own = graph('own_embedding', {
      inputs: { tokens: tensor('i32', 'rows*places') },
      weights: {
        words: tensor('T', 'words width'),
        positions: tensor('T', 'table width'),
        gamma: tensor('T', 'width'),
        beta: tensor('T', 'width'),
      },
      build: (g, { tokens }, w) => {
        const look = g.apply(embeddingLookup, { ids: tokens, table: w.words }).y
        const move = g.apply(addPosition, { x: g.view(look, 'rows places width'), table: w.positions }).y
        const norm = g.apply(layerNorm, { x: g.view(move, 'rows*places width'), gamma: w.gamma, beta: w.beta }).y
        return { nodes: { look, move, norm }, outputs: { y: norm } }
      },
    })
    const decl = plan('own-plan', own, { groups: { front: ['look', 'move', 'norm'] } })
    const derived = applyPlan(own.graph, decl, byName, layoutsByName).kernels.get('front')
    const facts = manifestFacts(derived ?? raise())
    const table = derived?.tensors.find(({ name }) => name === 'table')?.dims[0]
    const places = derived?.tensors.find(({ name }) => name === 'table2')?.dims[0]
    expect(facts.inputs.ids?.to).toEqual([['sub', table, 1]])
    expect(Object.keys(facts.dims)).toEqual([places])
    expect(facts.results.y).toMatchObject({ class: 'reduction' })
  })

  it('of a scale with the default value of its op', () => {
    const own = graph('own_quantised', {
      inputs: { x: tensor('T', 'm n') },
      weights: { gamma: tensor('T', 'n'), beta: tensor('T', 'n') },
      build: (g, { x }, { gamma, beta }) => {
        const norm = g.apply(layerNorm, { x, gamma, beta }).y
        const stored = g.apply(quantize, { x: norm }).y
        return { nodes: { norm, stored }, outputs: { stored } }
      },
    })
    const decl = plan('own-quantised', own, { groups: { together: ['norm', 'stored'] } })
    const derived = applyPlan(own.graph, decl, byName, layoutsByName).kernels.get('together')
    expect(manifestFacts(derived ?? raise()).attrs).toEqual({ inverse: { fills: 'y' } })
  })
})

const raise = (): never => {
  throw new Error('nothing was derived')
}
