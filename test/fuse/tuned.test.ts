/** Matmuls whose form depends on measurements: the planned forms, the kernel next to the library, and refusals. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { besideLibrary, planTuning } from '../../src/bench/tune_plan.js'
import { bareMatmul, checkTuned } from '../../src/fuse/product/tuned.js'
import type { GraphNode } from '../../src/ir/graph.js'
import { readKernels } from '../../src/verify/check/specs.js'
import { refusal } from '../refusal.js'

const { graphs, templates } = await readKernels(fileURLToPath(new URL('../..', import.meta.url)))

describe('a tuned group', () => {
  const nodes = graphs['int8-row']?.encoder_layer_gelu?.nodes ?? []

  it("stays the library's matmul and names the kernel beside it", () => {
    const products = nodes.flatMap((node) => (node.kind === 'matmul' ? [[node.name, node.generated]] : []))
    expect(products).toEqual([
      ...['query', 'key', 'value'].map((name) => [name, 'int8_matmul']),
      ['scores', undefined],
      ['context', undefined],
      ...['projection', 'fc1', 'fc2'].map((name) => [name, 'int8_matmul']),
    ])
    expect(besideLibrary(graphs)).toEqual(new Set(['int8_matmul']))
  })

  it('derives a kernel of a, b and the result, and of m, n and k, in this order', () => {
    const kernel = templates.find(({ name }) => name === 'int8_matmul')
    if (kernel?.kind !== 'matmul') throw new Error('there is no kernel int8_matmul')
    const [result] = kernel.tensors.filter(({ access }) => access === 'out')
    expect(kernel.tensors.map(({ name }) => name)).toEqual([kernel.a.tensor, kernel.products[0].b.tensor, result?.name])
    expect(kernel.dims).toEqual([kernel.m, kernel.n, kernel.k])
    expect(kernel.attrs).toEqual([])
  })

  it("is measured against the library's matmul", () => {
    const request = { target: 'cuda', kernels: ['int8_matmul'], lengths: [{ length: 768, depth: 768 }], dtype: 'f16' } as const
    expect(planTuning([], templates, request, besideLibrary(graphs)).plan.kernels[0]).toMatchObject({ library: true, dtype: '' })
    expect(planTuning([], templates, request).plan.kernels[0]).not.toHaveProperty('library')
  })
})

describe('refusals', () => {
  const plan = { name: 'p', graph: 'g', groups: [{ kernel: 'product', occurrences: [['a']] }] }

  it('of names that are not groups, or only the library has', () => {
    const error = refusal(() => checkTuned({ ...plan, tuned: ['gone'] }))
    expect([error.code, error.message]).toEqual([
      'plan.tuned',
      'plan p: gone is to be tuned, but is not a group with a generated kernel',
    ])
    expect(refusal(() => checkTuned({ ...plan, tuned: ['product'], library: ['product'] })).code).toBe('plan.tuned')
    expect(() => checkTuned({ ...plan, tuned: ['product'] })).not.toThrow()
  })

  it('of groups with more than a matmul', () => {
    const op: GraphNode = { kind: 'op', name: 'bias', op: 'add_bias', types: {}, inputs: {}, outputs: {}, attrs: {} }
    const product: GraphNode = { kind: 'matmul', name: 'fc1', a: 0, b: 1, out: 2, subscripts: { a: [], b: [], out: [] } }
    expect(bareMatmul('group', [product])).toBe(product)
    for (const nodes of [[product, op], [op], []]) expect(refusal(() => bareMatmul('group', nodes)).code).toBe('plan.tuned')
  })
})
