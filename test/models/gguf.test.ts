import { readFileSync } from 'node:fs'
import { mkdtemp, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { openGguf } from '../../src/checkpoint/gguf.js'
import { parseGgufHeader } from '../../src/checkpoint/gguf_header.js'
import { HeaderTooShort } from '../../src/checkpoint/gguf_reader.js'
import { type LlamaConfig, parseLlamaConfig } from '../../src/models/llama/config.js'
import { openLlamaGguf } from '../../src/models/llama/gguf_model.js'
import { openLlamaFiles, openLlamaText } from '../../src/models/llama/open_files.js'
import { inverseFrequencies } from '../../src/models/llama/rotary.js'
import { checkLlamaTensors, type LlamaTensor, llamaTensors, takeLlamaTensor } from '../../src/models/llama/tensor_names.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { ggufTokenizer } from '../../src/text/gguf_tokenizer.js'
import { promptIds } from '../../src/text/prompts.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { refusal } from '../refusal.js'
import { even, Float, formatGguf, type Meta, metadataOf, modelFile, type Written } from './gguf_fixtures.js'
import { damaged, outcome } from './hostile.js'
import { smallLlama, smallPhi3, smallQwen2, smallQwen3 } from './llama_fixtures.js'
import { kjvGqa } from './text_fixtures.js'

type Fields = Record<string, unknown>

async function withFile<T>(bytes: Uint8Array, work: (path: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-gguf-'))
  try {
    const path = join(dir, 'model.gguf')
    await writeFile(path, bytes)
    return await work(path)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const allOf = (config: LlamaConfig): LlamaTensor[] => Object.values(llamaTensors(config))

describe('GGUF models', () => {
  it.each([
    ['llama', { ...smallLlama, ...even }],
    ['llama with biases', { ...smallLlama, ...even, attention_bias: true }],
    ['llama, tied', { ...smallLlama, ...even, tie_word_embeddings: true }],
    ['qwen2', { ...smallQwen2, ...even }],
    ['qwen3', { ...smallQwen3, ...even }],
    ['phi3', { ...smallPhi3, ...even }],
  ] as const)('equal the folders from which they were made: %s', async (_, fields: Fields) => {
    const { bytes, tensors } = modelFile(fields)
    await withFile(bytes, async (path) => {
      const { config, checkpoint } = await openLlamaFiles(path)
      const expected = parseLlamaConfig({ ...fields, pad_token_id: null }, 'config.json')
      expect(config).toEqual({ ...expected, dtype: undefined, eps: Math.fround(expected.eps) })
      checkLlamaTensors(config, checkpoint)
      for (const tensor of allOf(config)) {
        const { data } = await inMemory(takeLlamaTensor(checkpoint, tensor, 'f32'))
        const { data: original } = await inMemory(takeLlamaTensor({ tensors }, tensor, 'f32'))
        expect([tensor.name, Buffer.compare(data, original)]).toEqual([tensor.name, 0])
      }
    })
  })

  it.each(['F16', 'BF16', 'Q8_0'] as const)('may contain %s', async (type) => {
    const fields = { ...smallLlama, ...even }
    const { bytes, tensors } = modelFile(fields, type)
    await withFile(bytes, async (path) => {
      const { config, checkpoint } = await openLlamaFiles(path)
      for (const tensor of allOf(config)) {
        const { data } = await inMemory(takeLlamaTensor(checkpoint, tensor, 'f32'))
        const { data: original } = await inMemory(takeLlamaTensor({ tensors }, tensor, 'f32'))
        const [values, exact] = [decode('f32', data), decode('f32', original)]
        // Values count up, so that a block's largest is at most 32 above its smallest.
        const off = values.findIndex((value, i) => Math.abs(value - (exact[i] ?? 0)) > Math.abs(exact[i] ?? 0) / 200 + 0.3)
        expect([tensor.name, off]).toEqual([tensor.name, -1])
      }
    })
  })

  it('of Q8_0 are the integers times their step', async () => {
    const block = Buffer.alloc(68)
    block.writeUInt16LE(0x3400, 0) // 0.25
    block.writeUInt16LE(0xb800, 34) // -0.5
    for (let i = 0; i < 32; i++) {
      block.writeInt8(i - 16, 2 + i)
      block.writeInt8(i === 0 ? -128 : 127, 36 + i)
    }
    await withFile(formatGguf({}, { w: { type: 'Q8_0', shape: [2, 32], data: new Uint8Array(block) } }), async (path) => {
      const tensor = (await openGguf(path)).tensors.get('w')
      const values: number[] = []
      for await (const piece of tensor?.pieces() ?? []) values.push(...decode('f32', piece))
      expect(tensor).toMatchObject({ dtype: 'F32', shape: [2, 32], bytes: 256 })
      expect(values.slice(0, 3)).toEqual([-4, -3.75, -3.5])
      expect(values.slice(31, 34)).toEqual([3.75, 64, -63.5])
      const second: number[] = []
      for await (const piece of tensor?.rows(1, 2).pieces() ?? []) second.push(...decode('f32', piece))
      expect(second).toEqual(values.slice(32))
    })
  })

  it('have factors of rotations as tensors', async () => {
    const fields = { ...smallLlama, ...even }
    const { written } = modelFile(fields)
    const factors = Float32Array.of(1, 1, 1.5, 2, 4, 8, 8, 8)
    const rope = { type: 'F32', shape: [8], data: new Uint8Array(factors.buffer) } as const
    const file = (tensors: Record<string, Written>) => formatGguf(metadataOf(fields), { ...written, ...tensors })
    await withFile(file({ 'rope_freqs.weight': rope }), async (path) => {
      const { config, checkpoint } = await openLlamaFiles(path)
      checkLlamaTensors(config, checkpoint)
      const plain = inverseFrequencies({ type: 'default', theta: 10_000, fraction: 1 }, 16, 1)
      for (const length of [1, 256]) {
        const got = inverseFrequencies(config.rotary, 16, length)
        for (const [k, factor] of factors.entries()) expect(got[k]).toBeCloseTo((plain[k] ?? 0) / factor, 7)
      }
    })
    for (const [tensors, code] of [
      [{ 'rope_freqs.weight': { ...rope, shape: [4], data: rope.data.subarray(0, 16) } }, 'gguf.tensor'],
      [{ 'rope_freqs.weight': { ...rope, data: new Uint8Array(32) } }, 'gguf.tensor'],
      [{ 'rope_factors_long.weight': rope }, 'config.rope'],
    ] as const) {
      await withFile(file(tensors), (path) => expect(openLlamaFiles(path)).rejects.toMatchObject({ code }))
    }
  })

  it('of Phi-3 state a window of 0 if there is none', async () => {
    const windowOf = (size: number) =>
      withFile(
        modelFile({ ...smallPhi3, ...even }, 'F32', { 'phi3.attention.sliding_window': size }).bytes,
        async (path) => (await openLlamaFiles(path)).config.window,
      )
    expect([await windowOf(0), await windowOf(8)]).toEqual([undefined, 8])
  })

  it('state how positions are scaled', async () => {
    const fields = { ...smallLlama, ...even }
    const rotaryOf = (changes: Record<string, Meta>) =>
      withFile(modelFile(fields, 'F32', changes).bytes, async (path) => (await openLlamaFiles(path)).config.rotary)
    const at = 'llama.rope.scaling'
    const original = { [`${at}.original_context_length`]: 64, [`${at}.factor`]: new Float(4) }
    expect(await rotaryOf({ [`${at}.type`]: 'none' })).toEqual({ type: 'default', theta: 10_000, fraction: 1 })
    expect(await rotaryOf({ [`${at}.type`]: 'linear', [`${at}.factor`]: new Float(2) })).toMatchObject({
      type: 'linear',
      factor: 2,
    })
    expect(await rotaryOf({ [`${at}.type`]: 'yarn', ...original })).toMatchObject({
      type: 'yarn',
      factor: 4,
      originalPositions: 64,
    })
    expect(await rotaryOf({ [`${at}.attn_factor`]: new Float(1) })).toMatchObject({ type: 'default' })
    expect(await rotaryOf({ 'llama.expert_count': 0, 'llama.expert_used_count': 0 })).toMatchObject({ type: 'default' })
    for (const [changes, text] of [
      [{ [`${at}.type`]: 'dynamic' }, 'llama.rope.scaling.type is "dynamic"'],
      [{ [`${at}.type`]: 'yarn', ...original, [`${at}.attn_factor`]: new Float(2) }, 'llama.rope.scaling.attn_factor is 2'],
      [{ [`${at}.attn_factor`]: new Float(2) }, 'llama.rope.scaling.attn_factor is 2, expected 1 of type none'],
      [
        { [`${at}.type`]: 'linear', [`${at}.factor`]: new Float(2), [`${at}.attn_factor`]: new Float(0.5) },
        'llama.rope.scaling.attn_factor is 0.5, expected 1 of type linear',
      ],
      [{ 'llama.attention.value_length': 32 }, 'llama.attention.value_length is 32, expected 16'],
      [{ 'llama.expert_count': 8 }, 'llama.expert_count is 8, and is not known here'],
      [{ 'llama.expert_count': 0, 'llama.expert_used_count': 2 }, 'llama.expert_used_count is 2, and is not known here'],
      [{ 'qwen2.expert_count': 0, 'llama.leading_dense_block_count': 0 }, 'llama.leading_dense_block_count is 0'],
      [{ 'llama.attention.head_count_kv': [2, 3] }, 'llama.attention.head_count_kv is [2,3]'],
      [{ 'llama.rope.dimension_count': 8 }, 'partial_rotary_factor is 0.5, models of type llama rotate whole heads'],
      [{ 'general.architecture': 'gemma3' }, 'general.architecture is "gemma3"'],
      [{ 'llama.attention.sliding_window': 8 }, 'llama.attention.sliding_window is 8, and models of type llama have none'],
      [{ 'tokenizer.ggml.eot_token_id': 'no' }, 'a token id is "no"'],
    ] as const) {
      await expect(rotaryOf(changes)).rejects.toMatchObject({ message: expect.stringContaining(text) })
    }
    const ends = modelFile(fields, 'F32', { 'tokenizer.ggml.eot_token_id': 5 }).bytes
    expect((await withFile(ends, openLlamaGguf)).config.eos).toEqual([2, 5])
  })
})

describe('GGUF tokenizers', () => {
  const texts = ["In the beginning God created the heaven, didn't he?", '  two  spaces\n\nand lines ', 'naïve 🙂 日本語 1234', '']

  it('give the ids of the original file', async () => {
    const definition: { model: { vocab: Record<string, number>; merges: [string, string][] }; added_tokens: { id: number }[] } =
      JSON.parse(readFileSync(join(kjvGqa, 'tokenizer.json'), 'utf8'))
    const tokens = Object.entries(definition.model.vocab)
      .sort(([, a], [, b]) => a - b)
      .map(([token]) => token)
    const special = new Set(definition.added_tokens.map(({ id }) => id))
    const template = readFileSync(join(kjvGqa, 'chat_template.jinja'), 'utf8')
    const metadata: Record<string, Meta> = {
      'tokenizer.ggml.model': 'gpt2',
      'tokenizer.ggml.pre': 'gpt-2',
      'tokenizer.ggml.tokens': tokens,
      'tokenizer.ggml.token_type': tokens.map((_, id) => (special.has(id) ? 3 : 1)),
      'tokenizer.ggml.merges': definition.model.merges.map((merge) => (Array.isArray(merge) ? merge.join(' ') : merge)),
      'tokenizer.ggml.add_bos_token': true,
      'tokenizer.chat_template': template,
    }
    const original = await loadTokenizer(kjvGqa)
    const { bytes } = modelFile({ ...smallLlama, ...even, vocab_size: 2048 }, 'F32', metadata)
    await withFile(bytes, async (path) => {
      const { config } = await openLlamaFiles(path)
      const text = await openLlamaText(path, config)
      for (const each of texts) {
        expect(text.tokenizer?.encode(each).ids).toEqual(original.encode(each).ids)
        expect(text.tokenizer?.decode(original.encode(each).ids)).toBe(each)
      }
      const messages = [{ role: 'user', content: 'The LORD is my' }]
      expect(promptIds({ messages }, text)).toEqual([1, 3, 452, 344, 338, 381])
      expect(promptIds({ text: '<s>In' }, text)).toEqual([1, 1146])
    })
    const wrong = modelFile({ ...smallLlama, ...even, vocab_size: 2048 }, 'F32', { ...metadata, 'tokenizer.ggml.pre': 'viking' })
    await withFile(wrong.bytes, async (path) => {
      const text = await openLlamaText(path, (await openLlamaFiles(path)).config)
      expect(promptIds({ ids: [1, 2] }, text)).toEqual([1, 2])
      const { code, message } = refusal(() => promptIds({ text: 'a' }, text))
      expect([code, message]).toEqual([
        'tokenizer.read',
        expect.stringContaining('splits texts by "viking", expected one of gpt-2'),
      ])
    })
  })

  /** A tokenizer that merges within the splits of `pre`, with its result for a text. */
  function wordsOf(pre: string, text: string): string[] {
    const letters = [...text].map((letter) => (letter === ' ' ? 'Ġ' : letter === '\n' ? 'Ċ' : letter))
    const tokens = new Set(['<s>', ...letters])
    const merges = new Set<string>()
    for (let length = 2; length <= letters.length; length++) {
      for (let from = 0; from + length <= letters.length; from++) {
        const part = letters.slice(from, from + length)
        tokens.add(part.join(''))
        for (let at = 1; at < length; at++) merges.add(`${part.slice(0, at).join('')} ${part.slice(at).join('')}`)
      }
    }
    const metadata = new Map<string, string | number | readonly string[] | readonly number[]>([
      ['tokenizer.ggml.model', 'gpt2'],
      ['tokenizer.ggml.pre', pre],
      ['tokenizer.ggml.tokens', [...tokens]],
      ['tokenizer.ggml.token_type', [3, ...Array.from({ length: tokens.size - 1 }, () => 1)]],
      ['tokenizer.ggml.merges', [...merges]],
      ['tokenizer.ggml.bos_token_id', 0],
    ])
    const tokenizer = ggufTokenizer(metadata, 'x.gguf')
    return tokenizer.encode(text).ids.map((id) => tokenizer.decode([id], { special: true }))
  }

  it('split texts like the models of their names', () => {
    const code = "HTMLParser getURLs I'll'LLama"
    const tekken = ['HTMLParser', ' get', 'URLs', ' I', "'ll", "'LLama"]
    expect(wordsOf('tekken', code)).toEqual(['<s>', ...tekken])
    expect(wordsOf('tekken', ' 2024!/\n/')).toEqual(['<s>', ' ', '2', '0', '2', '4', '!/\n/'])
    for (const pre of ['qwen2', 'deepseek-r1-qwen']) {
      expect(wordsOf(pre, code)).toEqual(['HTMLParser', ' getURLs', ' I', "'ll", "'LL", 'ama'])
      expect(wordsOf(pre, ' 2024!/\n/')).toEqual([' ', '2', '0', '2', '4', '!/\n', '/'])
    }
    expect(wordsOf('llama-bpe', ' 2024!/\n/')).toEqual(['<s>', ' ', '202', '4', '!/\n', '/'])
  })

  it('of SentencePiece merge the pair with the highest score', () => {
    const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, '0')}>`)
    const words = ['▁', 'h', 'e', 'l', 'o', 'he', 'll', 'hell', 'hello', 'el', '▁h', '▁hello', 'lo']
    const tokens = ['<unk>', '<s>', '</s>', ...bytes, ...words]
    // "el" merges before "he", "ll" and "lo": these would form "hello" otherwise.
    const score = (token: string): number => (token === 'el' ? -1 : -2 - words.indexOf(token))
    const metadata = (scores: readonly number[]) =>
      new Map<string, string | number | boolean | readonly string[] | readonly number[]>([
        ['tokenizer.ggml.model', 'llama'],
        ['tokenizer.ggml.tokens', tokens],
        ['tokenizer.ggml.token_type', tokens.map((_, id) => (id === 0 ? 2 : id < 3 ? 3 : id < 259 ? 6 : 1))],
        ['tokenizer.ggml.scores', scores],
        ['tokenizer.ggml.bos_token_id', 1],
      ])
    const pieces = (scores: readonly number[], text: string) => ggufTokenizer(metadata(scores), 'x.gguf').encode(text).tokens
    const plain = tokens.map((token) => -words.indexOf(token))
    expect(pieces(plain, 'hello')).toEqual(['<s>', '▁hello'])
    expect(pieces(tokens.map(score), 'hello')).toEqual(['<s>', '▁h', 'el', 'lo'])
    expect(pieces(plain, 'hé')).toEqual(['<s>', '▁h', '<0xC3>', '<0xA9>'])
    const tokenizer = ggufTokenizer(metadata(plain), 'x.gguf')
    expect(tokenizer.decode(tokenizer.encode('hello hell é').ids)).toBe('hello hell é')
  })

  it('that cannot be built are refused, with the reason', () => {
    for (const [metadata, text] of [
      [{}, 'has no words'],
      [{ tokens: ['a', 'a'] }, 'has words of a tokenizer twice'],
      [{ tokens: ['a'], model: 'gpt2', merges: [] }, 'splits texts by "none"'],
      [{ tokens: ['a'], model: 'gpt2', pre: 'constructor' }, 'splits texts by "constructor"'],
      [{ tokens: ['a'], model: 'gpt2', pre: 'qwen2' }, 'has no merges'],
      [{ tokens: ['a'], model: 'bert' }, 'has a tokenizer of type "bert"'],
      [{ tokens: ['a'], model: 'llama' }, 'llama with scores'],
    ] as const) {
      const map = new Map(
        Object.entries(metadata).map(([key, value]) => [`tokenizer.ggml.${key}`, value as string | readonly string[]]),
      )
      const { code, message } = refusal(() => ggufTokenizer(map, 'x.gguf'))
      expect([code, message]).toEqual(['tokenizer.read', expect.stringContaining(text)])
    }
  })
})

describe('hostile GGUF files', () => {
  const small = { w: { type: 'F32', shape: [2, 3], data: new Uint8Array(24) } } as const

  it('are refused with their fault', async () => {
    const good = formatGguf({ a: 1 }, small)
    const changed = (at: number, ...bytes: number[]): Uint8Array => {
      const copy = good.slice()
      copy.set(bytes, at)
      return copy
    }
    const tensor = (type: number | 'Q8_0', shape: readonly number[]) =>
      formatGguf({}, { w: { type, shape, data: new Uint8Array(64) } })
    for (const [bytes, code, text] of [
      [new Uint8Array(), 'gguf.truncated', 'ends in its header'],
      [changed(0, 0x4d), 'gguf.header', 'does not begin with GGUF'],
      [new Uint8Array(Buffer.from('version https://git-lfs.github.com/spec/v1\n')), 'gguf.header', 'does not begin with GGUF'],
      [changed(4, 1), 'gguf.version', 'has version 1'],
      [changed(4, 0, 0, 0, 3), 'gguf.version', 'big-endian byte order'],
      [changed(8, 255, 255, 255, 255), 'gguf.truncated', 'claims 4294967295 tensors'],
      [changed(16, 255, 255, 255, 255, 255, 255, 255), 'gguf.header', 'the integer 72057594037927935'],
      [changed(24, 255, 255, 255, 255), 'gguf.header', 'a text of 4294967295 bytes'],
      [changed(33, 77), 'gguf.header', 'metadata a of type 77'],
      [good.subarray(0, 40), 'gguf.truncated', 'ends in its header'],
      [good.subarray(0, good.length - 30), 'gguf.truncated', 'the tensors take 24 bytes'],
      [tensor(10, [1, 256]), 'gguf.dtype', 'of type Q2_K'],
      [tensor(999, [1, 32]), 'gguf.dtype', 'of type 999'],
      [tensor('Q8_0', [32, 1]), 'gguf.tensor', 'whole blocks of 32'],
      [tensor(0, [0, 3]), 'gguf.tensor', '[0, 3]'],
      [tensor(0, [1, 1, 1, 1, 1]), 'gguf.tensor', '5 axes'],
      [tensor(0, [2 ** 26, 2 ** 26]), 'gguf.tensor', ''],
      [tensor(0, [2 ** 20, 2 ** 20]), 'gguf.truncated', 'the tensors take'],
      [formatGguf({ 'general.alignment': 3 }, small), 'gguf.header', 'general.alignment is 3'],
      [formatGguf({ 'general.alignment': 64 }, { ...small, v: small.w }), 'gguf.offsets', 'a multiple of 64'],
    ] as const) {
      await withFile(bytes, (path) =>
        expect(openGguf(path), text).rejects.toMatchObject({ code, message: expect.stringContaining(text) }),
      )
    }
  })

  it('with a name twice, or one tensor over another, are refused', async () => {
    const twice = Buffer.from(formatGguf({ one: 1, two: 2 }, small))
    twice.write('one', twice.indexOf('two'))
    const over = Buffer.from(formatGguf({}, { w: small.w, v: small.w }))
    // The second tensor's position is the last number of the header.
    over.writeBigUInt64LE(0n, over.indexOf('v') + 1 + 4 + 16 + 4)
    for (const [bytes, code] of [
      [twice, 'gguf.duplicate'],
      [over, 'gguf.offsets'],
    ] as const) {
      await withFile(bytes, (path) => expect(openGguf(path)).rejects.toMatchObject({ code }))
    }
  })

  it('and files with any bytes changed are read or refused', async () => {
    const { bytes } = modelFile({ ...smallLlama, ...even, num_hidden_layers: 1 }, 'Q8_0', { 'tokenizer.ggml.tokens': ['a', 'b'] })
    const header = 1200
    const place = fc.double({ min: 0, max: header / bytes.length, noNaN: true })
    const damage = fc.record({
      edits: fc.array(fc.tuple(place, fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
      cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined }),
    })
    await fc.assert(
      fc.asyncProperty(damage, async (change) => {
        await withFile(damaged(bytes, change), (path) => outcome(() => openLlamaGguf(path)))
      }),
      { numRuns: 300 },
    )
  })

  it('are read only up to the end of their header', () => {
    const bytes = formatGguf({ list: Array.from({ length: 100 }, (_, i) => `word ${i}`) }, small)
    for (const length of [4, 30, 200, 800]) {
      expect(() => parseGgufHeader(bytes.subarray(0, length), bytes.length, 'x')).toThrow(HeaderTooShort)
    }
    expect(parseGgufHeader(bytes, bytes.length, 'x').metadata.get('list')).toHaveLength(100)
  })

  it('that change while they are read are refused', async () => {
    await withFile(formatGguf({}, small), async (path) => {
      const tensor = (await openGguf(path)).tensors.get('w')
      await utimes(path, 1, 1)
      await expect(tensor?.pieces().next()).rejects.toMatchObject({ code: 'gguf.changed' })
    })
  })
})
