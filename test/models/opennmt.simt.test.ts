/**
 * OpenNMT's transformer on simt: a tiny checkpoint, written here by the names of OpenNMT-py's state dict, against the written-out model with tables of
 * positions that are computed here too.
 */
import { rm } from 'node:fs/promises'
import { expect, it } from 'vitest'
import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { parseSeq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { loadSeq2seq } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { seq2seqWeights } from '../../src/models/seq2seq/seq2seq_weights.js'
import { decode } from '../../src/runtime/buffer.js'
import { compare } from '../../src/verify/compare.js'
import { hypothesisTolerance, tolerance } from '../../src/verify/tolerance.js'
import { refusal } from '../refusal.js'
import { held, writeModel } from './fixtures.js'
import { referenceModel } from './seq2seq_decoder_reference.js'
import { randomSeq2seq, tinyPegasus } from './seq2seq_fixtures.js'
import { openSimtKernels } from './simt.js'

const { architectures: _, scale_embedding: __, activation_function: ___, ...sizes } = tinyPegasus
const json = { ...sizes, model_type: 'opennmt', decoder_layers: 2 }

/** A state dict's name, part by part. */
const renames: readonly (readonly [RegExp, string])[] = [
  [/^model\./, ''],
  [/^(encoder|decoder)\.embed_tokens\./, '$1.embeddings.make_embedding.emb_luts.0.'],
  [/^encoder\.layers\.(\d+)\.self_attn_layer_norm/, 'encoder.transformer.$1.layer_norm'],
  [/^decoder\.layers\.(\d+)\.self_attn_layer_norm/, 'decoder.transformer_layers.$1.layer_norm_1'],
  [/^decoder\.layers\.(\d+)\.encoder_attn_layer_norm/, 'decoder.transformer_layers.$1.layer_norm_2'],
  [/^encoder\.layers\./, 'encoder.transformer.'],
  [/^decoder\.layers\./, 'decoder.transformer_layers.'],
  [/final_layer_norm/, 'feed_forward.layer_norm'],
  [/\.encoder_attn\./, '.context_attn.'],
  [/\.q_proj\./, '.linear_query.'],
  [/\.k_proj\./, '.linear_keys.'],
  [/\.v_proj\./, '.linear_values.'],
  [/\.out_proj\./, '.final_linear.'],
  [/\.fc([12])\./, '.feed_forward.w_$1.'],
  [/^lm_head\./, 'generator.'],
  [/^final_logits_bias$/, 'generator.bias'],
]
const renamed = (name: string): string => renames.reduce((text, [from, to]) => text.replace(from, to), name)

type Tensors = Map<string, StoredTensor>
const stored = (shape: readonly number[], value: (i: number) => number): StoredTensor => {
  const values = Float32Array.from({ length: shape.reduce((product, n) => product * n, 1) }, (_, i) => value(i))
  return { dtype: 'F32', shape, data: new Uint8Array(values.buffer) }
}

/** Random tensors under names of Hugging Face, without tables of positions, and the same as a state dict. */
function files(): { readonly plain: Tensors; readonly opennmt: Tensors } {
  const random = randomSeq2seq(json).file.tensors
  const plain: Tensors = new Map([...random].filter(([name]) => !name.includes('embed_positions')))
  const bias = plain.get('final_logits_bias')
  const opennmt: Tensors = new Map([...plain].map(([name, tensor]) => [renamed(name), tensor]))
  if (bias !== undefined) opennmt.set('generator.bias', { ...bias, shape: [sizes.vocab_size] })
  return { plain, opennmt }
}

const [positions, hidden] = [sizes.max_position_embeddings, sizes.d_model]
const wave = (angle: number, isSine: boolean): number => (isSine ? Math.sin(angle) : Math.cos(angle))
/** Tables of the three layouts, by their formulas. */
const tables = {
  halves: (p: number, j: number) => wave(p / 10_000 ** ((2 * (j % (hidden / 2))) / hidden), j < hidden / 2),
  pairs: (p: number, j: number) => wave(p / 10_000 ** ((2 * Math.floor(j / 2)) / hidden), j % 2 === 0),
  timescales: (p: number, j: number) =>
    wave(p * Math.exp((-(j % (hidden / 2)) * Math.log(10_000)) / (hidden / 2 - 1)), j < hidden / 2),
}
type Layout = keyof typeof tables

const table = (layout: Layout, first: number): StoredTensor =>
  stored([positions, hidden], (i) => tables[layout](first + Math.floor(i / hidden), i % hidden))

it.each([
  ['pairs', 0, 'unfused', {}],
  ['timescales', 1, 'best-decoder', { sinusoids: 'timescales', first_position: 1 }],
] as const)('matches the written-out model with positions in %s from %i under %s', async (layout, first, plan, more) => {
  const { plain, opennmt } = files()
  const config = parseSeq2seqConfig({ ...json, ...more }, 'config.json')
  const tabled = new Map(plain)
  for (const side of ['encoder', 'decoder']) tabled.set(`model.${side}.embed_positions.weight`, table(layout, first))
  const folder = await writeModel({ json: { ...json, ...more }, tensors: opennmt })
  const sources = [[3, 14, 15, 9, 26], [7]]
  try {
    const model = await loadSeq2seq(folder, { ...(await openSimtKernels()), plan })
    const results = await model.generate(
      sources.map((inputIds) => ({ inputIds })),
      { maxNewTokens: 10, logprobs: true },
    )
    model.release()
    for (const [i, source] of sources.entries()) {
      const reference = referenceModel(config, { tensors: tabled, metadata: {} }, source)
      const { ids = [], logprobs = [] } = results[i] ?? {}
      expect(ids.length).toBeGreaterThan(0)
      for (const [at, id] of ids.entries()) {
        const logits = reference(ids.slice(0, at))
        expect(logits[id]).toBe(Math.max(...logits))
        const wanted = (logits[id] ?? 0) - Math.log(logits.reduce((sum, each) => sum + Math.exp(each), 0))
        expect(Math.abs((logprobs[at] ?? Number.NaN) - wanted)).toBeLessThan(hypothesisTolerance.absolute)
      }
    }
  } finally {
    await rm(folder, { recursive: true })
  }
})

it('computes tables of positions of three layouts, and takes those that a checkpoint has', async () => {
  const { opennmt } = files()
  const rounding = tolerance({ dtype: 'f32', class: 'transcendental' })
  const found = async (more: object, tensors: Tensors = opennmt): Promise<ArrayLike<number>> => {
    const config = parseSeq2seqConfig({ ...json, ...more }, 'config.json')
    const weights = await held(seq2seqWeights(config, { tensors }, 'f32'))
    return decode('f32', weights['decoder.embed_positions.weight']?.data ?? new Uint8Array())
  }
  const wanted = (layout: Layout, first: number): ArrayLike<number> => decode('f32', table(layout, first).data)
  for (const layout of ['halves', 'pairs', 'timescales'] as const) {
    for (const first of [0, 1]) {
      const made = await found({ sinusoids: layout, first_position: first })
      expect(compare(Array.from(made), wanted(layout, first), rounding).passed).toBe(true)
      expect(compare(Array.from(made), wanted(layout, 1 - first), rounding).passed).toBe(false)
    }
  }
  const pe = stored([positions, 1, hidden], (i) => i / 8)
  const both = ['encoder', 'decoder'].map((side) => [`${side}.embeddings.make_embedding.pe.pe`, pe] as const)
  expect((await found({}, new Map([...opennmt, ...both])))[9]).toBe(9 / 8)
})

it('knows older names, layers without biases, and refuses tensors of another model', () => {
  const { opennmt } = files()
  const config = parseSeq2seqConfig(json, 'config.json')
  const load = (tensors: Iterable<readonly [string, StoredTensor]>) =>
    seq2seqWeights(config, { tensors: new Map(tensors) }, 'f32')
  const changed = (change: (name: string) => string): (readonly [string, StoredTensor])[] =>
    [...opennmt].map(([name, tensor]) => [change(name), tensor])
  const old = changed((name) =>
    name
      .replace(/(layer_norm(?:_[12])?)\.weight$/, '$1.a_2')
      .replace(/(layer_norm(?:_[12])?)\.bias$/, '$1.b_2')
      .replace('generator.', 'generator.0.'),
  )
  expect(Object.keys(load(old))).toEqual(Object.keys(load(opennmt)))
  expect(() => load([...opennmt].filter(([name]) => !/linear_\w+\.bias|final_linear\.bias/.test(name)))).not.toThrow()
  expect(() => load([...opennmt, ['decoder.transformer_layers.0.mask', stored([1], () => 0)]])).not.toThrow()
  const without = (part: string) => refusal(() => load([...opennmt].filter(([name]) => !name.includes(part)))).message
  expect(without('decoder.layer_norm.bias')).toContain('decoder.layer_norm.bias')
  expect(without('transformer.0.self_attn.linear_keys')).toContain('k_proj')
  const relative = 'encoder.transformer.0.self_attn.relative_positions_embeddings.weight'
  const other = refusal(() => load([...opennmt, [relative, stored([1], () => 0)]]))
  expect(other).toMatchObject({ code: 'weights.unknown', message: expect.stringContaining('relative_positions') })
  const odd = refusal(() =>
    parseSeq2seqConfig({ ...json, d_model: 33, encoder_attention_heads: 3, decoder_attention_heads: 3 }, 'config.json'),
  )
  expect(odd.message).toContain('sinusoids is pairs, expected an even width, got 33')
})
