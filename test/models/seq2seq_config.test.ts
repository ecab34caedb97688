import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseSeq2seqConfig, readSeq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { numberWords, smallMarian, smallPegasus } from './seq2seq_fixtures.js'

const parse = (changes: Record<string, unknown>, generation?: unknown) =>
  parseSeq2seqConfig({ ...smallPegasus, ...changes }, 'config.json', generation)

describe('configurations of encoder-decoder models', () => {
  it('reads number-words', async () => {
    const stack = { hidden: 128, embedScale: Math.sqrt(128), layers: 3, heads: 2, headDim: 64, inner: 512 }
    expect(await readSeq2seqConfig(numberWords)).toEqual({
      kind: 'pegasus',
      vocab: 45,
      encoder: stack,
      decoder: stack,
      positions: 64,
      sinusoids: 'halves',
      firstPosition: 0,
      activation: 'relu',
      preNorm: true,
      finalNorm: true,
      eps: 1e-5,
      sharedEmbeddings: true,
      tied: true,
      startToken: 0,
      endTokens: [1],
      padToken: 0,
      classEnd: 1,
      badTokens: [],
    })
  })

  it('reads a Marian: post-LN, swish, separate heads for either stack', () => {
    const config = parseSeq2seqConfig(smallMarian, 'config.json')
    expect(config).toMatchObject({ kind: 'marian', preNorm: false, finalNorm: false, activation: 'silu' })
    expect([config.encoder.headDim, config.decoder.headDim, config.startToken, config.endTokens]).toEqual([24, 48, 49, [0]])
  })

  it('knows the names HF has for activations', () => {
    for (const [name, op] of [
      ['relu', 'relu'],
      ['gelu', 'gelu'],
      ['gelu_new', 'gelu_tanh'],
      ['silu', 'silu'],
      ['swish', 'silu'],
    ]) {
      expect(parse({ activation_function: name }).activation).toBe(op)
    }
    expect(parse({ activation_function: undefined }).activation).toBe('gelu')
  })

  it('reads an encoder that is wider than its decoder, with separate embeddings', () => {
    const wide = { cross_attention_hidden_size: 192, share_encoder_decoder_embeddings: false }
    const { encoder, decoder, sharedEmbeddings } = parse(wide)
    expect(encoder).toMatchObject({ hidden: 192, headDim: 96, embedScale: Math.sqrt(192) })
    expect(decoder).toMatchObject({ hidden: 128, headDim: 64, embedScale: Math.sqrt(128) })
    expect(sharedEmbeddings).toBe(false)
  })

  it('lets generation settings override tokens', () => {
    expect(parse({ scale_embedding: false, eos_token_id: 3 })).toMatchObject({
      decoder: { embedScale: 1 },
      endTokens: [3],
    })
    expect(parse({ eos_token_id: 3 }, { eos_token_id: [4, 5], decoder_start_token_id: 7 })).toMatchObject({
      startToken: 7,
      endTokens: [4, 5],
    })
    expect(parse({ eos_token_id: null }).endTokens).toEqual([])
    expect([parse({}).badTokens, parse({ bad_words_ids: [[3], [0]] }).badTokens]).toEqual([[], [3, 0]])
    // HF lets an end id be.
    expect(parse({ bad_words_ids: [[3], [4]], eos_token_id: 4, suppress_tokens: [5] }).badTokens).toEqual([5, 3])
    expect(parse({ bad_words_ids: [[3]] }, { bad_words_ids: [[4]] }).badTokens).toEqual([4])
  })

  it.each([
    ['a missing size', { d_model: undefined }, 'config.field', 'config.json: d_model'],
    ['no layers', { decoder_layers: 0 }, 'config.field', 'decoder_layers'],
    ['an unknown activation', { activation_function: 'mish' }, 'config.field', 'activation_function'],
    ['another model', { model_type: 't5' }, 'config.model_type', 'model_type'],
    [
      'a memory of another width with shared embeddings',
      { cross_attention_hidden_size: 64 },
      'config.field',
      'differs from d_model 128',
    ],
    ['a decoder vocabulary of another size', { decoder_vocab_size: 60 }, 'config.vocab', 'decoder_vocab_size 60 differs'],
    [
      'another architecture',
      { architectures: ['MarianMTModel'] },
      'config.architecture',
      'architecture MarianMTModel is not supported',
    ],
    [
      'encoder heads that do not divide',
      { encoder_attention_heads: 3 },
      'config.heads',
      'not a multiple of encoder_attention_heads 3',
    ],
    ['decoder heads that do not divide', { decoder_attention_heads: 5 }, 'config.heads', 'decoder_attention_heads 5'],
    ['a start token beyond the vocabulary', { decoder_start_token_id: 50 }, 'config.token', '50 is not in [0, 50)'],
    ['a bad word beyond the vocabulary', { bad_words_ids: [[50]] }, 'config.token', 'bad_words_ids 50'],
    ['a bad word of several tokens', { bad_words_ids: [[1], [2, 3]] }, 'config.bad_words', 'bad_words_ids has [2,3]'],
    ['an end token beyond the vocabulary', { eos_token_id: [1, 51] }, 'config.token', 'eos_token_id 51'],
  ])('refuses %s', (_, changes, code, message) => {
    expect(() => parse(changes)).toThrow(
      expect.objectContaining({ code, exitCode: 2, message: expect.stringContaining(message) }),
    )
  })

  it('refuses generation settings that are wrong, and does without the file', async () => {
    const failure = expect.objectContaining({ code: 'config.field', message: expect.stringContaining('generation settings') })
    expect(() => parse({}, { eos_token_id: 'end' })).toThrow(failure)
    const dir = await mkdtemp(join(tmpdir(), 'heddle-config-'))
    try {
      await expect(readSeq2seqConfig(dir)).rejects.toMatchObject({ code: 'config.read' })
      await writeFile(join(dir, 'config.json'), JSON.stringify(smallPegasus))
      await expect(readSeq2seqConfig(dir)).resolves.toMatchObject({ positions: 40 })
      await writeFile(join(dir, 'generation_config.json'), '{')
      await expect(readSeq2seqConfig(dir)).rejects.toMatchObject({ code: 'config.json' })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
