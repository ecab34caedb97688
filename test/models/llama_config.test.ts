import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parseLlamaConfig, readLlamaConfig } from '../../src/models/llama/config.js'
import { checkLlamaTensors } from '../../src/models/llama/tensor_names.js'
import { refusal } from '../refusal.js'
import { allSmall, smallCheckpoint, smallLlama, smallMistral, smallPhi3, smallQwen2, smallQwen3 } from './llama_fixtures.js'

type Fields = Record<string, unknown>
const parse = (fields: Fields, generation?: unknown) => parseLlamaConfig(fields, 'config.json', generation)
/** Refusal of a changed configuration; a field that is `undefined` is left out. */
const refused = (fields: Fields, changes: Fields, generation?: unknown) =>
  refusal(() => parse({ ...fields, ...changes }, generation))
const without = (fields: Fields, field: string): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => key !== field))

describe('configurations of LLaMA-like models', () => {
  it('reads the format of transformers 5', () => {
    const config = parse({ ...smallLlama, head_dim: 20, tie_word_embeddings: true, eos_token_id: [2, 5, 2] })
    expect(config).toEqual({
      modelType: 'llama',
      ...{ layers: 2, hidden: 48, heads: 6, kvHeads: 2, headDim: 20, inner: 40, vocab: 96, positions: 256, eps: 1e-6 },
      ...{ tied: true, qkvBias: false, outputBias: false, qkNorm: false, window: undefined, windowLayers: [false, false] },
      rotary: { type: 'default', theta: 10_000, fraction: 1 },
      ...{ fusedRows: false, dtype: 'bf16', bos: 1, eos: [2, 5], pad: 0, banned: [] },
    })
  })

  it('reads the same from the format of transformers 4', () => {
    const llama3 = { factor: 8, low_freq_factor: 1, high_freq_factor: 4, original_max_position_embeddings: 64 }
    const { rope_parameters: _, dtype, ...rest } = smallLlama
    const old = { ...rest, torch_dtype: dtype, rope_theta: 5e5, rope_scaling: { ...llama3, rope_type: 'llama3' } }
    const oldest = { ...old, rope_scaling: { ...llama3, type: 'llama3' } }
    const current = { ...smallLlama, rope_parameters: { ...llama3, rope_type: 'llama3', rope_theta: 5e5 } }
    expect(parse(old)).toEqual(parse(current))
    expect(parse(oldest)).toEqual(parse(current))
    expect(parse({ ...rest, torch_dtype: dtype, rope_theta: 1e4, rope_scaling: null })).toEqual(parse(smallLlama))
  })

  it('distinguishes the types', () => {
    const flags = (fields: Fields) => {
      const { qkvBias, outputBias, qkNorm, fusedRows, window, headDim } = parse(fields)
      return { qkvBias, outputBias, qkNorm, fusedRows, window, headDim }
    }
    const plain = { qkvBias: false, outputBias: false, qkNorm: false, fusedRows: false, window: undefined, headDim: 8 }
    expect(flags(smallLlama)).toEqual(plain)
    expect(flags({ ...smallLlama, attention_bias: true })).toEqual({ ...plain, qkvBias: true, outputBias: true })
    expect(flags(smallMistral)).toEqual({ ...plain, window: 16 })
    expect(flags(smallQwen2)).toEqual({ ...plain, qkvBias: true })
    expect(flags(smallQwen3)).toEqual({ ...plain, qkNorm: true, headDim: 16 })
    expect(flags({ ...smallQwen3, attention_bias: true })).toMatchObject({ qkvBias: true, outputBias: true, qkNorm: true })
    expect(flags(smallPhi3)).toEqual({ ...plain, fusedRows: true })
  })

  const byCount = (layers: number) => ({ num_hidden_layers: layers, use_sliding_window: true, sliding_window: 16 })

  it('finds the layers with a window', () => {
    const layers = (fields: Fields) => parse({ ...fields, num_hidden_layers: 4 }).windowLayers
    const qwen = { ...smallQwen2, use_sliding_window: true, sliding_window: 16 }
    expect(layers(smallMistral)).toEqual([true, true, true, true])
    expect(layers({ ...smallMistral, sliding_window: null })).toEqual([false, false, false, false])
    expect(layers({ ...smallPhi3, sliding_window: 7 })).toEqual([true, true, true, true])
    expect(layers({ ...qwen, max_window_layers: 3 })).toEqual([false, false, false, true])
    const types = ['full_attention', 'sliding_attention', 'full_attention', 'sliding_attention']
    expect(layers({ ...qwen, layer_types: types })).toEqual([false, true, false, true])
    // A window without a layer is unset.
    expect(parse({ ...qwen, max_window_layers: 28 })).toMatchObject({ window: undefined, windowLayers: [false, false] })
    // A number without the switch means nothing, as transformers 4 writes it.
    expect(parse({ ...smallQwen2, sliding_window: 131_072 }).window).toBeUndefined()
  })

  it('refuses windows that contradict each other', () => {
    const qwen = { ...smallQwen2, use_sliding_window: true, sliding_window: 16 }
    const types = ['full_attention', 'sliding_attention']
    for (const [fields, changes, text] of [
      [smallLlama, { layer_types: types }, 'layer_types[1] is sliding_attention'],
      [smallQwen2, { layer_types: types }, 'layer_types[1] is sliding_attention'],
      [smallMistral, { layer_types: types }, 'layer_types[0] is full_attention'],
      [qwen, { layer_types: [...types, 'full_attention'] }, 'layer_types has 3 entries, num_hidden_layers is 2'],
      [qwen, { max_window_layers: null }, 'neither max_window_layers nor layer_types'],
    ] as const) {
      const { code, message } = refused(fields, changes)
      expect([code, message]).toEqual(['config.window', expect.stringContaining(text)])
    }
  })

  it('refuses changes to another model, naming the field, the value and the allowed ones', () => {
    for (const [changes, texts] of [
      [{ model_type: 'gemma3' }, ['model_type', '"gemma3"', 'llama', 'qwen3']],
      [{ hidden_act: 'gelu' }, ['hidden_act', '"gelu"', '"silu"']],
      [{ mlp_bias: true }, ['mlp_bias', 'true', 'false']],
      [{ dtype: 'float64' }, ['dtype', '"float64"', '"bfloat16"']],
      [{ torch_dtype: 'float32' }, ['dtype is bfloat16 and torch_dtype is float32']],
      [{ quantization_config: { quant_method: 'gptq', bits: 4 } }, ['quantization_config', '"gptq"']],
      [{ architectures: ['LlamaForSequenceClassification'] }, ['LlamaForSequenceClassification']],
      [{ num_key_value_heads: 4 }, ['num_attention_heads 6', 'num_key_value_heads 4']],
      [{ num_attention_heads: 5, num_key_value_heads: 5 }, ['hidden_size 48', 'num_attention_heads 5']],
      [{ num_hidden_layers: 5000 }, ['num_hidden_layers', '5000', '4096']],
      [{ rms_norm_eps: 0 }, ['rms_norm_eps']],
      [{ vocab_size: undefined }, ['vocab_size']],
      [{ eos_token_id: [2, 96] }, ['eos_token_id 96 is not in [0, 96)']],
      [{ bos_token_id: 1000 }, ['bos_token_id 1000']],
    ] as const) {
      const { code, message, hint } = refused(smallLlama, changes)
      expect(code).toMatch(/^config\./)
      for (const text of texts) expect(`${message} ${hint}`).toContain(text)
    }
  })

  it('uses the defaults of its type for missing fields, like Hugging Face', () => {
    const bare = [
      'num_key_value_heads',
      'tie_word_embeddings',
      'attention_bias',
      'mlp_bias',
      'rope_parameters',
      'dtype',
      'hidden_act',
    ].reduce<Fields>(without, smallLlama)
    expect(parse(bare)).toMatchObject({ kvHeads: 6, tied: false, qkvBias: false, rotary: { theta: 10_000 }, dtype: undefined })
    const wide = { hidden_size: 512, num_attention_heads: 64 }
    for (const [fields, field, expected] of [
      [smallMistral, 'sliding_window', { window: 4096, windowLayers: [true, true] }],
      [{ ...smallMistral, ...wide }, 'num_key_value_heads', { kvHeads: 8 }],
      [smallMistral, 'rope_parameters', { rotary: { type: 'default', theta: 10_000, fraction: 1 } }],
      [smallPhi3, 'sliding_window', { window: undefined }],
      [{ ...smallPhi3, ...wide }, 'num_key_value_heads', { kvHeads: 64 }],
      [{ ...smallQwen2, ...wide }, 'num_key_value_heads', { kvHeads: 32 }],
      [{ ...smallQwen2, ...wide, use_sliding_window: true, num_hidden_layers: 30 }, 'max_window_layers', { window: undefined }],
      [
        { ...smallQwen2, use_sliding_window: true, max_window_layers: 1 },
        'sliding_window',
        { windowLayers: [false, true], window: 4096 },
      ],
      [smallQwen3, 'head_dim', { headDim: 128 }],
    ] as const) {
      expect(parse(without(fields, field))).toMatchObject(expected)
    }
    const many = parse({ ...without(smallQwen2, 'max_window_layers'), ...byCount(30) })
    expect([many.window, many.windowLayers.indexOf(true)]).toEqual([16, 28])
    // Null does not mean a missing field.
    expect(parse({ ...smallMistral, sliding_window: null, num_key_value_heads: null })).toMatchObject({
      window: undefined,
      kvHeads: 6,
    })
    expect(refused(smallLlama, { hidden_act: null }).message).toContain('hidden_act')
  })

  it('ignores fields that Hugging Face ignores for its type', () => {
    for (const [fields, changes] of [
      [smallLlama, { sliding_window: 16 }],
      [smallQwen2, { attention_bias: false }],
      [smallQwen2, { attention_bias: true }],
      [smallMistral, { attention_bias: true }],
      [smallPhi3, { attention_bias: true }],
    ] as const) {
      expect(parse({ ...fields, ...changes })).toEqual(parse(fields))
    }
    // Biases that the type does not have are seen in the checkpoint.
    const file = smallCheckpoint(smallMistral)
    file.tensors.set('model.layers.0.self_attn.q_proj.bias', { dtype: 'F32', shape: [48], data: new Uint8Array(192) })
    const { code } = refusal(() => checkLlamaTensors(parse({ ...smallMistral, attention_bias: true }), file))
    expect(code).toBe('weights.unknown')
  })

  it('reads types as PyTorch prints them', () => {
    const typeOf = (changes: Fields) => parse({ ...without(smallLlama, 'dtype'), ...changes }).dtype
    expect(typeOf({ torch_dtype: 'torch.float32' })).toBe('f32')
    expect(typeOf({ dtype: 'torch.float16', torch_dtype: 'float16' })).toBe('f16')
    expect(refused(smallLlama, { dtype: 'torch.float64' }).message).toContain('found "float64"')
    expect(refused(smallLlama, { dtype: 'torch.torch.float16' }).code).toBe('config.field')
  })

  it('uses tokens of the generation settings first, then its own, then those of the type', () => {
    expect(parse(smallLlama, { eos_token_id: [7, 8], bos_token_id: 9 })).toMatchObject({ bos: 9, eos: [7, 8], pad: 0 })
    const bare = ['bos_token_id', 'eos_token_id', 'pad_token_id'].reduce<Fields>(without, smallLlama)
    expect(parse(bare)).toMatchObject({ bos: 1, eos: [2], pad: undefined })
    expect(parse({ ...bare, eos_token_id: null, pad_token_id: -1 })).toMatchObject({ eos: [], pad: undefined })
    // The type's default end id is outside of this vocabulary.
    expect(parse(['bos_token_id', 'eos_token_id'].reduce<Fields>(without, smallPhi3)).eos).toEqual([])
    expect(parse(['bos_token_id', 'eos_token_id'].reduce<Fields>(without, smallQwen2))).toMatchObject({ bos: undefined, eos: [] })
    expect(refused(smallLlama, {}, { eos_token_id: 96 }).code).toBe('config.token')
    // Nothing is padded: an id outside of the vocabulary is unset.
    for (const pad of [-1, -100, 96, 32_000]) {
      expect(parse({ ...smallLlama, pad_token_id: pad }).pad).toBeUndefined()
      expect(parse(smallLlama, { pad_token_id: pad }).pad).toBeUndefined()
    }
  })

  it('names the file that states a token', () => {
    const named = (fields: Fields, generation: unknown) =>
      refusal(() => parseLlamaConfig({ ...smallLlama, ...fields }, 'config.json', generation, 'generation_config.json')).message
    for (const field of ['eos_token_id', 'bos_token_id'] as const) {
      expect(named({}, { [field]: 96 })).toBe(`generation_config.json: ${field} 96 is not in [0, 96)`)
      expect(named({ [field]: 97 }, {})).toBe(`config.json: ${field} 97 is not in [0, 96)`)
    }
    expect(named({}, { suppress_tokens: [100] })).toBe('generation_config.json: suppress_tokens 100 is not in [0, 96)')
    expect(named({}, { eos_token_id: 'x' })).toContain('generation_config.json: eos_token_id')
  })

  it('reads suppressed words from the generation settings, except bad words that end a text', () => {
    const settings = { bad_words_ids: [[7], [2], [9], [7]], suppress_tokens: [11, 2] }
    expect(parse(smallLlama, settings).banned).toEqual([11, 2, 7, 9])
    expect(parse(smallLlama, { bad_words_ids: [[2], [7]] }).banned).toEqual([7])
    for (const [wrong, code, text] of [
      [{ bad_words_ids: [[7], [8, 9]] }, 'config.bad_words', 'bad_words_ids has [8,9], expected lists of one token'],
      [{ bad_words_ids: [[96]] }, 'config.token', 'bad_words_ids 96 is not in [0, 96)'],
      [{ suppress_tokens: [100] }, 'config.token', 'suppress_tokens 100 is not in [0, 96)'],
      [{ suppress_tokens: [...Array(96).keys()] }, 'config.bad_words', 'ban all 96 tokens but end ids'],
      [{ bad_words_ids: [...Array(96).keys()].map((id) => [id]) }, 'config.bad_words', 'ban all 96 tokens'],
    ] as const) {
      expect(refused(smallLlama, {}, wrong)).toMatchObject({ code, message: expect.stringContaining(text) })
    }
  })

  it('reads folders, and refuses a field that a file has twice', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'heddle-llama-'))
    try {
      for (const fields of Object.values(allSmall)) {
        await writeFile(join(dir, 'config.json'), JSON.stringify(fields))
        await writeFile(join(dir, 'generation_config.json'), '{"eos_token_id": [3]}')
        expect(await readLlamaConfig(dir)).toEqual(parse(fields, { eos_token_id: [3] }))
      }
      const twice = JSON.stringify(smallLlama).replace('{', '{"vocab_size": 97, ')
      await writeFile(join(dir, 'config.json'), twice)
      await expect(readLlamaConfig(dir)).rejects.toMatchObject({
        code: 'config.json',
        message: expect.stringContaining('vocab_size twice'),
      })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
