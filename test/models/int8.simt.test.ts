/**
 * Every INT8 plan's layer on the CPU device against the written-out reference of the same quantisation, edge by edge: each edge is
 * computed from the device's own edges before it. int32 edges and int8 edges without a function before them are equal, the others
 * are within one step.
 */
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayers, pairLayers } from '../../specs/graphs/encoder_layers.js'
import { erf } from '../../src/ir/erf.js'
import { inTurn } from '../turns.js'
import { noise } from './fixtures.js'
import {
  activations,
  check,
  differences,
  type Edges,
  edgesOf,
  eps,
  factor,
  hidden,
  int8,
  inverse,
  type Sequences,
  sequencesOf,
  sizes,
  step,
  weight,
} from './int8_layer.js'
import * as reference from './int8_reference.js'
import { openSimtKernels } from './simt.js'

const usual = sequencesOf({ batch: 3, seq: 33, lengths: [33, 1, 20] })
const { tokens } = usual

let simt: Awaited<ReturnType<typeof openSimtKernels>>
beforeAll(async () => {
  simt = await openSimtKernels()
})

const v3 = [1, 2].flatMap((mode) =>
  ['', '-2r4r4'].flatMap((order) =>
    ['', '-packed'].map((packed) => [`ft-v3-mode${mode}${order}${packed}`, mode, packed !== ''] as const),
  ),
)

describe('integer edges of a layer equal the written-out reference', () => {
  it.each(inTurn([...v3, ['int8-row', 1, true] as const]))('%s', async (plan, mode, packed) => {
    const edges = await edgesOf(simt, usual, plan)
    expect(check(usual, edges, packed, mode === 1 ? 'float' : 'int8')).toEqual([])
    expect([...edges.keys()]).toEqual(expect.arrayContaining(['scores', 'context', 'fc1', 'fc2', 'probabilities.int8']))
  })

  const layers = [
    ['int8-row', 'post', 'relu', true, 'float'],
    ['int8-row', 'pre', 'silu', true, 'float'],
    ['int8-row', 'pre', 'gelu', true, 'float'],
    ['ft-v3-mode1', 'pre', 'relu', false, 'float'],
    ['ft-v3-mode1-2r4r4-packed', 'pre', 'gelu_tanh', true, 'float'],
    ['ft-v3-mode1-packed', 'post', 'silu', true, 'float'],
    ['ft-v3-mode2', 'post', 'gelu_tanh', false, 'int8'],
  ] as const
  it.each(inTurn(layers))('%s, norms %s, %s', async (plan, norms, activation, packed, residual) => {
    const edges = await edgesOf(simt, usual, plan, encoderLayers[norms][activation])
    expect(check(usual, edges, packed, residual, { norms, activation })).toEqual([])
    // Another activation would be another edge.
    const other = activation === 'relu' ? 'silu' : 'relu'
    expect(check(usual, edges, packed, residual, { norms, activation: other }).join()).toContain('fc1Activation.int8')
  })

  it('int8-row with generated matmuls where they were measured to be faster', async () => {
    const products = ({ launched = [] }: Edges) => launched.filter((kernel) => kernel === 'int8_matmul' || kernel === 'library')
    expect(products(await edgesOf(simt, usual, 'int8-row'))).toEqual(Array(8).fill('library'))
    const measured = [
      { architecture: 'sm_90', length: hidden, depth: hidden, fromRows: 1, toRows: tokens },
      { architecture: 'sm_90', length: 96, depth: hidden, fromRows: tokens },
      // fc2 has one row too many for the measured entry, and stays in the library.
      { architecture: 'sm_90', length: hidden, depth: 96, fromRows: 1, toRows: tokens - 1 },
    ]
    const kernels = simt.manifest.kernels.map((entry) => (entry.op === 'int8_matmul' ? { ...entry, measured } : entry))
    const edges = await edgesOf(simt, usual, 'int8-row', encoderLayers.post.gelu, { ...simt.manifest, kernels })
    expect(products(edges).filter((kernel) => kernel === 'int8_matmul')).toHaveLength(5)
    expect(check(usual, edges, true, 'float')).toEqual([])
  })

  it('best-encoder-int8, pre-LN, with rotating activations', async () => {
    for (const activation of inTurn(['relu', 'silu', 'gelu_tanh'] as const)) {
      const edges = await edgesOf(simt, usual, 'best-encoder-int8', encoderLayers.pre[activation])
      const edge = (name: string): Float64Array => edges.get(name) ?? new Float64Array()
      const multiplied = (name: string, x: string, site: string): Float64Array => {
        const { values, scales } = int8(`${name}Weight`)
        const sums = reference.product(edge(x), values, tokens, sizes[`${name}Weight`]?.[0] ?? 0, edge(x).length / tokens)
        return reference.biased(sums, step(site), scales, weight(`${name}Bias`))
      }
      const norm = (name: string, x: ArrayLike<number>) =>
        reference.quantised(reference.layerNorm(x, weight(`${name}Gamma`), weight(`${name}Beta`), eps), inverse(`${name}Norm`))
      const complaints = differences('attentionNorm.int8', edges, norm('attention', edge('x')), 1)
      const residual = reference.plus(multiplied('projection', 'merged.pack.int8', 'merged'), edge('x'))
      complaints.push(...differences('outputNorm.int8', edges, norm('output', residual), 1))
      const activated = activations[activation](multiplied('fc1', 'outputNorm.int8', 'outputNorm'))
      complaints.push(...differences('fc1Activation.int8', edges, reference.quantised(activated, inverse('fc1Activation')), 1))
      expect(complaints, activation).toEqual([])
    }
  })

  it('best-encoder-int8', async () => {
    expect(checkBest(usual, await edgesOf(simt, usual, 'best-encoder-int8'))).toEqual([])
  })

  it('finds a wrong scale and a wrong sum', async () => {
    const edges = new Map(await edgesOf(simt, usual, 'ft-v3-mode2'))
    const planted = (name: string, change: (values: Float64Array) => void): string[] => {
      const values = Float64Array.from(edges.get(name) ?? [])
      change(values)
      return check(usual, new Map([...edges, [name, values]]), false, 'int8')
    }
    expect(planted('scores', (values) => values.fill((values[17] ?? 0) + 1, 17, 18))[0]).toContain('scores: 1 of')
    expect(planted('queryHeads', (values) => values.fill((values[3] ?? 0) + 1, 3, 4))[0]).toContain('queryHeads: 1 of')
    expect(planted('fc1Activation.int8', (values) => values.fill((values[9] ?? 0) + 2, 9, 10))[0]).toContain(
      'fc1Activation.int8: 1 of',
    )
  })
})

describe('a hundred random masks, rows without a key among them', () => {
  const next = noise(5)
  const draw = (below: number): number => Math.floor(((next() + 1) / 2) * below)
  const [batch, seq] = [100, 5]
  const rows = Array.from({ length: batch * seq }, () => draw(6))
  const masked = sequencesOf({
    batch,
    seq,
    lengths: Array.from({ length: batch }, (_, b) => (b === 0 ? seq : 1 + draw(seq))),
    mask: rows.flatMap((keeps) => Array.from({ length: seq }, () => (draw(5) < keeps ? 1 : 0))),
  })
  /** Sequences with the mask of one pair of the first one inverted. */
  const flipped: Sequences = {
    ...masked,
    heads: { ...masked.heads, mask: Array.from(masked.heads.mask ?? [], (kept, at) => (at === 3 * seq + 2 ? 1 - kept : kept)) },
  }

  const masking = [
    ['ft-v3-mode1', false, 'float'],
    ['ft-v3-mode1-packed', true, 'float'],
    ['ft-v3-mode2', false, 'int8'],
    ['ft-v3-mode2-2r4r4-packed', true, 'int8'],
    ['int8-row', true, 'float'],
  ] as const
  it.each(inTurn(masking))('%s', async (plan, packed, residual) => {
    const edges = await edgesOf(simt, masked, plan, pairLayers.post.gelu)
    expect(check(masked, edges, packed, residual)).toEqual([])
    expect(check(flipped, edges, packed, residual).join()).toContain('probabilities.int8')
  })

  it('ft-v3-mode1, pre-LN', async () => {
    const edges = await edgesOf(simt, masked, 'ft-v3-mode1', pairLayers.pre.relu)
    expect(check(masked, edges, false, 'float', { norms: 'pre', activation: 'relu' })).toEqual([])
  })

  it('best-encoder-int8', async () => {
    const edges = await edgesOf(simt, masked, 'best-encoder-int8', pairLayers.post.gelu)
    expect(checkBest(masked, edges)).toEqual([])
    expect(checkBest(flipped, edges).join()).toContain('merged.pack.int8')
  })
})

/** Every int8 edge of `best-encoder-int8`, whose attention is in floats. */
function checkBest({ heads, tokens }: Sequences, edges: Edges): string[] {
  const edge = (name: string): Float64Array => edges.get(name) ?? new Float64Array()
  const multiplied = (name: string, x: string, site: string): Float64Array => {
    const { values, scales } = int8(`${name}Weight`)
    const n = sizes[`${name}Weight`]?.[0] ?? 0
    const sums = reference.product(edge(x), values, tokens, n, edge(x).length / tokens)
    return reference.biased(sums, step(site), scales, weight(`${name}Bias`))
  }
  const parts = ['query', 'key', 'value'].map((part) => reference.unpacked(multiplied(part, 'x.int8', 'x'), hidden, heads))
  const [query = [], key = [], value = []] = parts
  const probabilities = reference.softmax(reference.scores(query, key, heads), factor, heads)
  const merged = reference.packed(reference.context(probabilities, value, heads), hidden, tokens, heads)
  const complaints = differences('merged.pack.int8', edges, reference.quantised(merged, inverse('merged')), 1)
  const attention = reference.layerNorm(
    reference.plus(multiplied('projection', 'merged.pack.int8', 'merged'), edge('x')),
    weight('attentionGamma'),
    weight('attentionBeta'),
    eps,
  )
  complaints.push(...differences('attentionNorm.int8', edges, reference.quantised(attention, inverse('attentionNorm')), 1))
  const activated = reference.gelu(multiplied('fc1', 'attentionNorm.int8', 'attentionNorm'), erf)
  complaints.push(...differences('fc1Activation.int8', edges, reference.quantised(activated, inverse('fc1Activation')), 1))
  const output = reference.layerNorm(
    reference.plus(multiplied('fc2', 'fc1Activation.int8', 'fc1Activation'), attention),
    weight('outputGamma'),
    weight('outputBeta'),
    eps,
  )
  complaints.push(...differences('outputNorm.int8', edges, reference.quantised(output, inverse('outputNorm')), 1))
  return complaints
}
