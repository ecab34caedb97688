import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { HeddleError } from '../../src/errors.js'
import { assembleSeq2seqEncoder } from '../../src/models/seq2seq/programs.js'
import { readSeq2seqConfig, type Seq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { hasLogitsBias, seq2seqWeights } from '../../src/models/seq2seq/seq2seq_weights.js'
import { seq2seqHead } from '../../src/models/seq2seq/tensor_names.js'
import { findPlan } from '../../src/program/plans.js'
import { decode } from '../../src/runtime/buffer.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { held } from './fixtures.js'
import { numberWords, randomSeq2seq, smallMarian, smallPegasus } from './seq2seq_fixtures.js'

const { config, file } = randomSeq2seq(smallPegasus)
type Entries = Iterable<readonly [string, StoredTensor]>
const load = (tensors: Entries, of: Seq2seqConfig = config, dtype: 'f32' | 'f16' = 'f32') =>
  seq2seqWeights(of, { tensors: new Map(tensors) }, dtype)
const failure = (tensors: Entries, of: Seq2seqConfig = config): string => {
  try {
    load(tensors, of)
    return 'nothing'
  } catch (error) {
    return error instanceof HeddleError ? `${error.code}: ${error.message}` : String(error)
  }
}

describe('weights of encoder-decoder models', () => {
  it('reads every tensor of number-words', async () => {
    const stored = await readSafetensors(join(numberWords, 'model.safetensors'))
    const weights = seq2seqWeights(await readSeq2seqConfig(numberWords), stored, 'f32')
    expect(Object.keys(weights).sort()).toEqual([...stored.tensors.keys()].map((name) => name.replace(/^model\./, '')).sort())
    expect(weights.final_logits_bias?.shape).toEqual([45])
  })

  it('computes the position tables of HF if a checkpoint has none', async () => {
    // number-words contains HF's own table.
    const stored = await readSafetensors(join(numberWords, 'model.safetensors'))
    const names = ['model.encoder.embed_positions.weight', 'model.decoder.embed_positions.weight']
    const without = [...stored.tensors].filter(([name]) => !names.includes(name))
    const weights = await held(load(without, await readSeq2seqConfig(numberWords)))
    for (const name of names) {
      const wanted = decode('f32', stored.tensors.get(name)?.data ?? new Uint8Array())
      const found = decode('f32', weights[name.replace('model.', '')]?.data ?? new Uint8Array())
      const result = compare(found, wanted, tolerance({ dtype: 'f32', class: 'transcendental' }))
      expect(result.passed, result.summary).toBe(true)
      const alternating = Array.from(wanted, (_, at) => wanted[at - (at % 128) + 64 * (at % 2) + ((at % 128) >> 1)] ?? 0)
      expect(compare(alternating, wanted, tolerance({ dtype: 'f32', class: 'transcendental' })).passed).toBe(false)
    }
  })

  it('finds tensors without prefix, and tied embeddings under any of their names', async () => {
    const plain = await held(load(file.tensors))
    const bare = [...file.tensors].map(([name, tensor]) => [name.replace(/^model\./, ''), tensor] as const)
    expect(await held(load(bare))).toEqual(plain)
    for (const copy of ['model.encoder.embed_tokens.weight', 'lm_head.weight']) {
      const renamed = [...file.tensors].map(([name, tensor]) => [name === 'model.shared.weight' ? copy : name, tensor] as const)
      expect(await held(load(renamed))).toEqual(plain)
    }
    expect(seq2seqHead(config)).toEqual({ weight: 'shared.weight', bias: 'final_logits_bias' })
  })

  it('uses a separate head if embeddings are not tied, and a bias only if there is one', async () => {
    const untied = randomSeq2seq({ ...smallPegasus, tie_word_embeddings: false })
    const weights = await held(seq2seqWeights(untied.config, untied.file, 'f32'))
    expect(weights[seq2seqHead(untied.config).weight]).not.toEqual(weights['shared.weight'])
    expect(hasLogitsBias(weights)).toBe(true)
    expect(hasLogitsBias(load([...file.tensors].filter(([name]) => name !== 'final_logits_bias')))).toBe(false)
    expect(failure(file.tensors, untied.config)).toBe('weights.missing: tensor lm_head.weight [50, 128] is missing')
  })

  it('does not change the bias of the logits for suppressed words', async () => {
    const banned = await held(load(file.tensors, { ...config, badTokens: [3, 0] }))
    expect(banned.final_logits_bias).toEqual((await held(load(file.tensors))).final_logits_bias)
  })

  it('a Marian has no final norms', () => {
    const marian = randomSeq2seq(smallMarian)
    expect(
      Object.keys(seq2seqWeights(marian.config, marian.file, 'f32')).filter((name) => /coder\.layer_norm/.test(name)),
    ).toEqual([])
    expect(failure(marian.file.tensors, { ...marian.config, finalNorm: true })).toContain('tensor encoder.layer_norm.weight [96]')
  })

  it('names the tensor, the expected and the actual value', () => {
    const name = 'model.decoder.layers.0.encoder_attn.k_proj.weight'
    const tensor = file.tensors.get(name)
    if (tensor === undefined) throw new Error('the model lacks a tensor')
    const others = [...file.tensors].filter(([other]) => other !== name)
    expect(failure(others)).toBe('weights.missing: tensor decoder.layers.0.encoder_attn.k_proj.weight [128, 128] is missing')
    expect(failure([...others, [name, { ...tensor, shape: [64, 256] }]])).toBe(
      `weights.shape: tensor ${name} has shape [64, 256], the configuration expects [128, 128]`,
    )
    expect(failure([...others, [name, { ...tensor, dtype: 'I32' }]])).toContain('weights.dtype')
    expect(failure([...file.tensors, ['model.encoder.embed_positions.weight', tensor]])).toContain('expects [40, 128]')
  })

  it('rounds to the requested storage type, computed tables too', async () => {
    const half = await held(load(file.tensors, config, 'f16'))
    for (const { dtype, data, shape } of Object.values(half)) {
      expect([dtype, data.byteLength]).toEqual(['f16', 2 * shape.reduce((product, n) => product * n, 1)])
    }
  })
})

describe('the assembly of the encoder', () => {
  it('returns the memory, and keys and values for every decoder layer', () => {
    const { compiled } = assembleSeq2seqEncoder({ ...config, decoder: { ...config.decoder, layers: 2 } }, findPlan('unfused'))
    expect(compiled.outputs).toEqual({ memory: 'memory' })
    expect(Object.keys(compiled.states)).toEqual(['memoryKeys0', 'memoryValues0', 'memoryKeys1', 'memoryValues1'])
    expect(Object.values(compiled.values).every(({ rows }) => rows === 'padded')).toBe(true)
  })

  it('refuses a plan that has nothing for its layers', () => {
    const plan = { ...findPlan('unfused'), name: 'other', covers: () => false }
    expect(() => assembleSeq2seqEncoder(config, plan)).toThrow(
      expect.objectContaining({ code: 'plan.model', message: expect.stringContaining('encoder_layer_pre_relu') }),
    )
  })
})
