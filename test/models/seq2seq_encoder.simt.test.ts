/**
 * Encoders of encoder-decoder models on the CPU device against one that is written out: ragged lengths around a warp and a full one,
 * every plan in every storage type, pre-LN and post-LN.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import type { FloatType } from '../../src/checkpoint/convert.js'
import { readSafetensors } from '../../src/checkpoint/safetensors.js'
import type { EncoderOptions } from '../../src/models/encoder/encoder_pipeline.js'
import { readSeq2seqConfig, type Seq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { compare } from '../../src/verify/compare.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { modelTypes } from '../turns.js'
import { numberWords, type RandomSeq2seq, randomSeq2seq, runEncoder, smallMarian, smallPegasus } from './seq2seq_fixtures.js'
import { type EncodedSource, encodeSource } from './seq2seq_reference.js'
import { openSimtKernels } from './simt.js'

let opened: Pick<EncoderOptions, 'device' | 'library' | 'manifest'>
beforeAll(async () => {
  opened = await openSimtKernels()
})

const plans = ['unfused', 'ft-v1', 'ft-v2.1', 'best-decoder']

const activations: Readonly<Partial<Record<Seq2seqConfig['activation'], (x: number) => number>>> = {
  relu: (x) => Math.max(x, 0),
  silu: (x) => x / (1 + Math.exp(-x)),
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
}

const reference = ({ config, file }: RandomSeq2seq, sequences: readonly (readonly number[])[]): EncodedSource[] => {
  const { preNorm, encoder, decoder } = config
  const { hidden, embedScale, layers, heads } = encoder
  const activation = activations[config.activation]
  if (activation === undefined) throw new Error(`no reference of ${config.activation}`)
  return sequences.map((ids) =>
    encodeSource({ hidden, embedScale, preNorm, layers, heads, decoderLayers: decoder.layers, activation }, file, ids),
  )
}

const flatten = (sources: readonly EncodedSource[], part: keyof EncodedSource): number[] =>
  sources.flatMap((source) => source[part].flat(2))

/** Memory, keys and values within the tolerance table. One layer more than the encoder has: the matmul after it. */
function expectEqual(found: readonly EncodedSource[], wanted: readonly EncodedSource[], layers: number, dtype: FloatType) {
  for (const part of ['memory', 'keys', 'values'] as const) {
    const expected = flatten(wanted, part)
    const rms = Math.sqrt(expected.reduce((sum, value) => sum + value * value, 0) / expected.length)
    const { absolute } = modelTolerance(dtype, layers + 1, rms)
    const result = compare(flatten(found, part), expected, { absolute, relative: 0 })
    expect(result.passed, `${part}: ${result.summary}`).toBe(true)
    const shifted = expected.with(3, (expected[3] ?? 0) + 3 * absolute)
    expect(compare(shifted, expected, { absolute, relative: 0 }).passed).toBe(false)
  }
}

describe('the encoder of number-words', () => {
  it.each(plans)('has the states of the written-out one under %s', async (plan) => {
    const config = await readSeq2seqConfig(numberWords)
    const model = { config, file: await readSafetensors(join(numberWords, 'model.safetensors')) }
    const golden = JSON.parse(await readFile(join(numberWords, 'golden.json'), 'utf8')) as { cases: { input_ids: number[] }[] }
    const byLength = new Map(golden.cases.map(({ input_ids: ids }) => [ids.length, ids]))
    const sequences = [...byLength.values()]
    expect(sequences.length).toBeGreaterThan(5)
    const seq = Math.max(...byLength.keys())
    const { sources } = await runEncoder(opened, model, { plan, dtype: 'f32', seq }, sequences)
    expectEqual(sources, reference(model, sequences), config.encoder.layers, 'f32')
    const other = reference({ ...model, config: { ...config, encoder: { ...config.encoder, embedScale: 1 } } }, sequences)
    expect(() => expectEqual(sources, other, config.encoder.layers, 'f32')).toThrow('memory')
  })
})

const full = 40
const sequences = [31, 1, full, 33].map((length, i) => Array.from({ length }, (_, s) => (7 * s + 3 * i) % 50))

describe.each([
  ['pre-LN', smallPegasus],
  ['pre-LN, gelu_new', { ...smallPegasus, encoder_layers: 1, activation_function: 'gelu_new' }],
  ['post-LN', smallMarian],
])('a small %s model', (_, json) => {
  const model = randomSeq2seq(json)
  const wanted = reference(model, sequences)

  it.each(plans)('matches %s', async (plan) => {
    for (const dtype of modelTypes()) {
      const { sources } = await runEncoder(opened, model, { plan, dtype, seq: full }, sequences)
      expectEqual(sources, wanted, model.config.encoder.layers, dtype)
    }
  })
})

describe('a packed batch', () => {
  it('gives a source the same bits alone and in any batch', async () => {
    const model = randomSeq2seq(smallPegasus)
    const run = (batch: readonly (readonly number[])[]) =>
      runEncoder(opened, model, { plan: 'best-decoder', dtype: 'f16', seq: full }, batch)
    const { sources: together } = await run(sequences)
    const { sources: turned } = await run(sequences.toReversed())
    expect(turned.toReversed()).toEqual(together)
    const [, short = []] = sequences
    expect((await run([short])).sources).toEqual(together.slice(1, 2))
  })
})

describe('launches', () => {
  it.each([
    ['unfused', [8, 18], [2, 4]],
    ['ft-v1', [8, 7], [2, 4]],
    ['ft-v2.1', [6, 7], [2, 1]],
    // Its matmuls are generated kernels too.
    ['best-decoder', [0, 7], [0, 2]],
  ])('of %s: a layer has %o matmuls and kernels, keys and values of the memory %o', async (plan, layer, memory) => {
    const { steps } = await runEncoder(opened, randomSeq2seq(smallPegasus), { plan, dtype: 'f32', seq: 8 }, [[1, 2, 3]])
    const count = (label: string): number[] => {
      const of = steps.filter((step) => step.label.startsWith(`${label}/`))
      return ['matmul', 'kernel'].map((kind) => of.filter((step) => step.kind === kind).length)
    }
    expect(count('layer1')).toEqual(layer)
    expect(count('memory0')).toEqual(memory)
  })
})
