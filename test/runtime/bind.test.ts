import { describe, expect, it } from 'vitest'
import { layerNorm } from '../../specs/ops/layer_norm.js'
import type { KernelEntry, Manifest } from '../../src/emit/manifest/manifest.js'
import type { Count } from '../../src/ir/facts/facts.js'
import type { NodeOf } from '../../src/ir/graph.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import { bindKernel } from '../../src/runtime/bind.js'
import { referenceManifest } from './reference_device.js'

const { graph: norm } = graph('norm', {
  inputs: { x: tensor('T', 'b*s h*d') },
  weights: { gamma: tensor('T', 'h*d'), beta: tensor('T', 'h*d') },
  attrs: ['eps'],
  build: (g, { x }, w, { eps }) => {
    const y = g.apply(layerNorm, { x, gamma: w.gamma, beta: w.beta }, { eps }).y
    return { nodes: { y }, outputs: { y } }
  },
})
const node = norm.nodes.find((candidate): candidate is NodeOf<'op'> => candidate.kind === 'op')

const manifest = referenceManifest()
const binding = { dims: { b: 2, s: 3, h: 4, d: 8 }, types: { T: 'f16' as const }, attrs: { eps: 1e-5 } }
const bind = (kernels: Manifest = manifest, changes: Partial<typeof binding> = {}) => {
  if (node === undefined) throw new Error('the graph has no op')
  return bindKernel(norm, node, { ...binding, ...changes }, kernels)
}

const entry = (key: string): KernelEntry => {
  const found = manifest.kernels.find((candidate) => candidate.key === key)
  if (found === undefined) throw new Error(`no ${key}`)
  return found
}

describe('bindKernel', () => {
  it('finds the instance by storage types and orders its arguments', () => {
    const bound = bind()
    expect(bound.entry.key).toBe('layer_norm__f16')
    expect(bound.values).toEqual([norm.inputs.x, norm.weights.gamma, norm.weights.beta, norm.outputs.y])
    expect(bound.dims).toEqual([6, 32])
    expect(bound.attrs).toEqual([1e-5])
  })

  it('follows the order of the manifest, not of the op', () => {
    const plain = entry('layer_norm__f16')
    const turned = { ...plain, buffers: [...plain.buffers].reverse(), dims: ['n', 'm'] }
    const bound = bind({ version: 1, kernels: [turned] })
    expect(bound.values).toEqual([norm.outputs.y, norm.weights.beta, norm.weights.gamma, norm.inputs.x])
    expect(bound.dims).toEqual([32, 6])
  })

  it('prefers the instance whose fixed dimensions fit', () => {
    const plain = entry('layer_norm__f16')
    const fixed = (n: number): KernelEntry => ({ ...plain, key: `layer_norm__f16__n${n}`, fixedDims: { n } })
    const kernels = [plain, fixed(32), fixed(64)]
    expect(bind({ version: 1, kernels }).entry.key).toBe('layer_norm__f16__n32')
    expect(bind({ version: 1, kernels }, { dims: { b: 2, s: 3, h: 4, d: 9 } }).entry.key).toBe('layer_norm__f16')
  })

  it('checks extents against multiples in facts', () => {
    const plain = entry('layer_norm__f16')
    const facts = (multipleOf: number): Manifest => ({
      version: 1,
      kernels: [
        { ...plain, facts: { inputs: {}, attrs: {}, results: {}, loops: [], ...plain.facts, dims: { n: { multipleOf } } } },
      ],
    })
    expect(bind(facts(16)).dims).toEqual([6, 32])
    expect(() => bind(facts(64))).toThrow(
      expect.objectContaining({
        code: 'bind.extent',
        message: 'norm/y: dimension n of layer_norm: expected a multiple of 64, by its facts, got 32',
        hint: 'the next multiple is 64',
      }),
    )
  })

  it('accepts an extent without a buffer if it follows from facts, and no other', () => {
    const plain = entry('layer_norm__f16')
    const halved = (equal: Count): Manifest => ({
      version: 1,
      kernels: [
        {
          ...plain,
          dims: [...plain.dims, 'h'],
          facts: { inputs: {}, attrs: {}, results: {}, loops: [], ...plain.facts, dims: { n: { equal } } },
        },
      ],
    })
    expect(bind(halved(['mul', 2, 'h'])).dims).toEqual([6, 32, 16])
    expect(() => bind(halved(['mul', 3, 'h']))).toThrow(expect.objectContaining({ code: 'bind.dim' }))
  })

  it('names the missing instance and those there are', () => {
    const kernels = [entry('layer_norm__f32')]
    expect(() => bind({ version: 1, kernels })).toThrow(
      expect.objectContaining({
        code: 'bind.kernel',
        exitCode: 3,
        message: 'norm/y: there is no kernel layer_norm__f16',
        hint: 'instances of layer_norm: layer_norm__f32',
      }),
    )
  })

  it('refuses buffers, dimensions and attributes that do not fit', () => {
    const plain = entry('layer_norm__f16')
    const first = plain.buffers[0]
    if (first === undefined) throw new Error('no buffers')
    const changed = (change: Partial<KernelEntry>) => () => bind({ version: 1, kernels: [{ ...plain, ...change }] })
    expect(changed({ buffers: [{ ...first, layout: 'col32' }] })).toThrow(expect.objectContaining({ code: 'bind.buffer' }))
    expect(changed({ buffers: [{ ...first, name: 'z' }] })).toThrow(/needs buffer z, the node has none/)
    expect(changed({ buffers: [{ ...first, dims: ['n', 'n'] }] })).toThrow(/dimension n of x is 32, but 6 elsewhere/)
    expect(changed({ dims: ['q'] })).toThrow(/fixes dimension q/)
    expect(() => bind(manifest, { attrs: { eps: Number.NaN } })).toThrow(expect.objectContaining({ code: 'bind.attr' }))
  })
})
