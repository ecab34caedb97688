/**
 * Malicious files and options: each leads to a result or a typed error that names the fault. Nothing hangs, no error is unclear, and no meaningless
 * value passes as a result. The seeds are fixed; `numRuns` sets larger counts.
 */
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { formatSafetensors, parseSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { parseCases, readCases } from '../../src/cli/cases.js'
import { parseManifest } from '../../src/emit/manifest/manifest.js'
import { type GenerationOptions, resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { bertWeights } from '../../src/models/encoder/bert.js'
import { parseBertConfig, readBertConfig } from '../../src/models/encoder/config.js'
import { parseSeq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { seq2seqWeights } from '../../src/models/seq2seq/seq2seq_weights.js'
import { loadTokenizer } from '../../src/text/tokenizer.js'
import { exampleModel, held, randomBert } from './fixtures.js'
import { damaged, outcome } from './hostile.js'
import { numberWords, randomSeq2seq, smallMarian } from './seq2seq_fixtures.js'

/** 1 in the suite; run by hand, HEDDLE_ATTACK=50 tries fifty times as many. */
const times = Number(process.env.HEDDLE_ATTACK ?? 1)
const runs = (count: number, seed: number) => ({ numRuns: count * times, seed, interruptAfterTimeLimit: 10 * 60_000 })

let dir = ''
let folders = 0
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-hostile-'))
})
afterAll(() => rm(dir, { recursive: true }))

const model = randomBert({ architectures: ['BertForTokenClassification'], num_labels: 3 })
const goodConfig = JSON.stringify(model.json)
const goodWeights = formatSafetensors(model.tensors)

/** The steps of loading a BERT before the first request to a device. */
async function load(path: string, dtype: 'f32' | 'f16' = 'f32'): Promise<void> {
  const config = await readBertConfig(join(path, 'config.json'))
  await held(bertWeights(config, await openCheckpoint(path), dtype))
}

async function folder(files: Readonly<Record<string, string | Uint8Array>>): Promise<string> {
  const path = join(dir, String(folders++))
  await mkdir(path)
  for (const [name, content] of Object.entries(files)) await writeFile(join(path, name), content)
  return path
}

const withConfig = (changes: Readonly<Record<string, unknown>>) => () =>
  folder({ 'config.json': JSON.stringify({ ...model.json, ...changes }), 'model.safetensors': goodWeights })
const withText = (text: string | Uint8Array) => () => folder({ 'config.json': text, 'model.safetensors': goodWeights })
const withWeights = (bytes: Uint8Array) => () => folder({ 'config.json': goodConfig, 'model.safetensors': bytes })
const withValue = (value: number) => () => {
  const name = 'encoder.layer.0.output.dense.weight'
  const tensor = model.tensors.get(name)
  if (tensor === undefined) throw new Error('the model lacks a tensor')
  const values = new Float32Array(tensor.data.slice().buffer)
  values[11] = value
  const changed = new Map<string, StoredTensor>([...model.tensors, [name, { ...tensor, data: new Uint8Array(values.buffer) }]])
  return withWeights(formatSafetensors(changed))()
}
const withFifo = (name: string) => async () => {
  const path = await folder({ 'config.json': goodConfig, 'model.safetensors': goodWeights })
  await rm(join(path, name))
  execFileSync('mkfifo', [join(path, name)])
  return path
}
const utf16 = (text: string): Uint8Array => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, 'utf16le')])
const huge = 2 ** 31 - 1

describe('a hostile folder', () => {
  it.each<[string, () => Promise<string>, string]>([
    ['is not a folder', async () => join(dir, 'nowhere'), 'config.read'],
    ['is empty', () => folder({}), 'config.read'],
    ['has no weights', () => folder({ 'config.json': goodConfig }), 'safetensors.read'],
    ['is good', withText(goodConfig), 'ok'],
    ['has a byte order mark', withText(`\ufeff${goodConfig}`), 'ok'],
    ['has a configuration in UTF-16', withText(utf16(goodConfig)), 'config.read'],
    ['has a configuration that is not UTF-8', withText(Uint8Array.of(0x7b, 0xc3, 0x28, 0x7d)), 'config.read'],
    ['has an empty configuration', withText(''), 'config.json'],
    ['has a list for a configuration', withText('[]'), 'config.field'],
    ['has null for a configuration', withText('null'), 'config.field'],
    ['has a configuration of 5 MB', withText(`"${'x'.repeat(5 * 2 ** 20)}"`), 'config.read'],
    ['has a configuration of brackets', withText('['.repeat(1_000_000)), 'config.json'],
    ['has two thousand million labels', withConfig({ num_labels: huge }), 'weights.shape'],
    ['has a hundred million labels', withConfig({ num_labels: 1e8 }), 'weights.shape'],
    ['has two thousand million layers', withConfig({ num_hidden_layers: huge }), 'config.count'],
    ['has one layer too many', withConfig({ num_hidden_layers: 2 }), 'weights.missing'],
    ['has two thousand million positions', withConfig({ max_position_embeddings: huge }), 'weights.shape'],
    ['has two thousand million words', withConfig({ vocab_size: huge }), 'weights.shape'],
    ['has more layers than numbers', withConfig({ num_hidden_layers: 1e300 }), 'config.field'],
    ['has half a layer', withConfig({ num_hidden_layers: 0.5 }), 'config.field'],
    ['has no layer', withConfig({ num_hidden_layers: 0 }), 'config.field'],
    ['has an epsilon of 1e300', withConfig({ layer_norm_eps: 1e300 }), 'config.field'],
    ['has an epsilon of 1e-300', withConfig({ layer_norm_eps: 1e-300 }), 'config.field'],
    ['has an epsilon below zero', withConfig({ layer_norm_eps: -1 }), 'config.field'],
    ['has an activation of objects', withConfig({ hidden_act: 'toString' }), 'config.field'],
    ['has an architecture of objects', withConfig({ architectures: ['constructor'] }), 'config.architecture'],
    ['has labels with a gap', withConfig({ id2label: { 0: 'A', 2: 'B' } }), 'config.labels'],
    ['has heads that do not fit', withConfig({ num_attention_heads: 3 }), 'config.heads'],
    ['holds NaN', withValue(Number.NaN), 'weights.value'],
    ['holds an infinity', withValue(Number.NEGATIVE_INFINITY), 'weights.value'],
    ['has a FIFO for a configuration', withFifo('config.json'), 'config.read'],
    ['has a FIFO for weights', withFifo('model.safetensors'), 'safetensors.read'],
    ['has no header', withWeights(new Uint8Array(3)), 'safetensors.truncated'],
    ['has a header of zeros', withWeights(new Uint8Array(64)), 'safetensors.header'],
    ['has lost its last byte', withWeights(goodWeights.slice(0, -1)), 'safetensors.truncated'],
    ['has a byte too many', withWeights(Buffer.concat([goodWeights, Buffer.alloc(1)])), 'safetensors.offsets'],
  ])('that %s', async (_, make, expected) => {
    const path = await make()
    expect(await outcome(() => load(path))).toBe(expected)
  })

  it('with values outside of the storage type', async () => {
    const path = await withValue(1e6)()
    expect(await outcome(() => load(path, 'f16'))).toBe('weights.value')
    expect(await outcome(() => load(path))).toBe('ok')
  })
})

describe('hostile headers', () => {
  const file = (text: string): Uint8Array => {
    const prefix = Buffer.alloc(8)
    prefix.writeBigUInt64LE(BigInt(Buffer.byteLength(text)))
    return Buffer.concat([prefix, Buffer.from(text)])
  }
  const entry = (shape: string): string => `{"a":{"dtype":"F32","shape":[${shape}],"data_offsets":[0,0]}}`
  it.each([
    ['a long string', `{"__metadata__":{"a":"${'x'.repeat(16 * 2 ** 20)}"}}`, 'ok'],
    ['a long string of escapes', `{"__metadata__":{"a":"${'\\"'.repeat(4 * 2 ** 20)}"}}`, 'ok'],
    ['many wrong extents', entry('-1,'.repeat(2_000_000).concat('-1')), 'safetensors.tensor'],
    ['many axes', entry('0,'.repeat(2_000_000).concat('0')), 'safetensors.tensor'],
    ['brackets', `{"a":${'['.repeat(1_000_000)}`, 'safetensors.header'],
    ['a name of a prototype', '{"__proto__":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}', 'ok'],
  ])('with %s', async (_, text, expected) => expect(await outcome(() => parseSafetensors(file(text), 'x'))).toBe(expected))
})

const damage = fc.record({
  edits: fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
  cut: fc.option(fc.double({ min: 0, max: 1, noNaN: true }), { nil: undefined, freq: 4 }),
})

/** Values that fields are not meant to have, and some that they are. */
const odd = fc.oneof(
  fc.constantFrom(0, -1, 1, 2, 3, 96, 128, 0.5, huge, 2 ** 53, 1e300, -0, null, true, '', 'gelu', 'toString', [], {}, [0], [[0]]),
  fc.jsonValue({ maxDepth: 2 }),
)

describe('damage', () => {
  const small = formatSafetensors([['a', { dtype: 'F32', shape: [3], data: new Uint8Array(12) }]], { format: 'pt' })
  it('to a weights file', () =>
    fc.assert(
      fc.asyncProperty(damage, async (how) => void (await outcome(() => parseSafetensors(damaged(small, how), 'x')))),
      runs(2000, 1),
    ))

  it('to a configuration of BERT', () => {
    const file = { tensors: model.tensors }
    const fields = fc.dictionary(fc.constantFrom(...Object.keys(model.json), 'id2label', 'num_labels', 'layer_norm_eps'), odd, {
      maxKeys: 3,
    })
    return fc.assert(
      fc.asyncProperty(fields, async (changes) => {
        await outcome(() => bertWeights(parseBertConfig({ ...model.json, ...changes }, 'config.json'), file, 'f32'))
      }),
      runs(1500, 2),
    )
  })

  it('to configurations of an encoder-decoder model', () => {
    const { file } = randomSeq2seq(smallMarian)
    const names = [...Object.keys(smallMarian), 'bad_words_ids', 'eos_token_id', 'max_length', 'tie_word_embeddings']
    const fields = fc.dictionary(fc.constantFrom(...names), odd, { maxKeys: 3 })
    return fc.assert(
      fc.asyncProperty(fields, fields, async (changes, settings) => {
        await outcome(() =>
          seq2seqWeights(parseSeq2seqConfig({ ...smallMarian, ...changes }, 'config.json', settings), file, 'f32'),
        )
      }),
      runs(1500, 3),
    )
  })

  it('to cases', () => {
    const text = Buffer.from('{"input_ids":[1,2,3]}\n{"text":"in the beginning"}\n\n{"input_ids":[4]}\n')
    return fc.assert(
      fc.asyncProperty(damage, async (how) => {
        const cases: unknown[] = []
        const code = await outcome(() => cases.push(...parseCases(new TextDecoder().decode(damaged(text, how)), 'c.jsonl')))
        if (code === 'ok') expect(cases.length).toBeGreaterThan(0)
      }),
      runs(2000, 4),
    )
  })

  it('to a tokenizer: ids, or an error that names its file', async () => {
    const text = await readFile(join(numberWords, 'tokenizer.json'))
    const path = await folder({})
    await fc.assert(
      fc.asyncProperty(damage, async (how) => {
        await writeFile(join(path, 'tokenizer.json'), damaged(text, how))
        await outcome(async () => {
          const tokenizer = await loadTokenizer(path)
          const { ids } = tokenizer.encode('twelve 12')
          for (const id of ids) expect(Number.isInteger(id) && id >= 0).toBe(true)
          tokenizer.decode(ids)
          tokenizer.encodeWords(['one', 'two'])
        })
      }),
      runs(150, 5),
    )
  })

  it('to options of generation', () => {
    const names = [
      'beams',
      'returned',
      'rule',
      'lengthPenalty',
      'earlyStopping',
      'temperature',
      'topK',
      'topP',
      'minP',
      'seed',
    ] as const
    const changes = ['repetitionPenalty', 'noRepeatNgramSize', 'minNewTokens', 'forcedBosTokenId', 'forcedEosTokenId'] as const
    const value = fc.oneof(
      odd,
      fc.bigInt(),
      fc.double(),
      fc.constantFrom(Symbol('s'), Number.NaN, 'hf', 'never', () => 0),
    )
    const options = fc.dictionary(fc.constantFrom(...names, ...changes, 'maxNewTokens'), value, {
      maxKeys: 3,
    })
    const limits = { vocab: 45, positions: 64, cases: 3, endTokens: [1] }
    return fc.assert(
      fc.asyncProperty(options, async (given) => {
        await outcome(() => {
          const { choice, repetitionPenalty, maxNewTokens } = resolveGeneration(given as GenerationOptions, limits)
          expect(Number.isFinite(repetitionPenalty)).toBe(true)
          if (choice.kind === 'beams') expect(Number.isFinite(Math.fround((maxNewTokens + 1) ** choice.lengthPenalty))).toBe(true)
          if (choice.kind === 'beams') expect([true, false, 'never']).toContain(choice.earlyStopping)
        })
      }),
      runs(3000, 6),
    )
  })

  it('to the names of files in a manifest: none leads out of its folder', () => {
    const part = fc.constantFrom('..', '.', 'cuda', 'a.cu', '', '...', '\\', '\0', 'x..', '..x')
    const manifest = (file: string): string =>
      JSON.stringify({
        version: 1,
        kernels: [
          {
            ...{ key: 'k', op: 'k', types: {}, fixedDims: {}, file, digest: '0'.repeat(64), buffers: [], dims: [], attrs: [] },
            variants: [],
          },
        ],
      })
    const names = fc.array(part, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
    return fc.assert(
      fc.asyncProperty(names, async (file) => {
        const leads = file.startsWith('/') || file === '' || file.split('/').includes('..') || /[\\\0]/.test(file)
        expect(await outcome(() => parseManifest(manifest(file), 'manifest.json'))).toBe(leads ? 'manifest.invalid' : 'ok')
      }),
      runs(1000, 7),
    )
  })
})

describe('input that could hang the process', () => {
  it('a regular expression that takes exponential time is ended', async () => {
    const path = await folder({})
    const good = JSON.parse(await readFile(join(numberWords, 'tokenizer.json'), 'utf8')) as Record<string, unknown>
    const split = { type: 'Split', pattern: { Regex: '(a+)+$' }, behavior: 'Isolated', invert: false }
    await writeFile(join(path, 'tokenizer.json'), JSON.stringify({ ...good, pre_tokenizer: split }))
    const tokenizer = await loadTokenizer(path)
    expect(await outcome(() => tokenizer.encode(`${'a'.repeat(50)}b`))).toBe('tokenizer.time')
    expect(await outcome(() => tokenizer.encode('12'))).not.toBe('tokenizer.time')
  })

  it('cases in a pipe with a name, or in a folder, are refused', async () => {
    const path = await folder({})
    execFileSync('mkfifo', [join(path, 'cases')])
    expect(await outcome(() => readCases(join(path, 'cases')))).toBe('run.case')
    expect(await outcome(() => readCases(path))).toBe('run.case')
    expect(await outcome(() => readCases('/dev/zero'))).toBe('run.case')
    expect(await outcome(() => readCases(join(exampleModel, 'model.safetensors')))).toBe('run.case')
  })

  it('a corrupt manifest is reported', async () => {
    for (const text of ['', '{', '[]', '{"version":1}', '{"version":2,"kernels":[]}']) {
      expect(await outcome(() => parseManifest(text, 'manifest.json'))).toBe('manifest.invalid')
    }
  })

  it('no result has a word when all are banned', async () => {
    const all = { ...smallMarian, bad_words_ids: Array.from({ length: smallMarian.vocab_size }, (_, id) => [id]) }
    expect(await outcome(() => parseSeq2seqConfig(all, 'config.json', {}))).toBe('config.bad_words')
    expect(await outcome(() => parseSeq2seqConfig({ ...smallMarian, bad_words_ids: [[3]] }, 'config.json', {}))).toBe('ok')
  })

  it('a model of a small file allocates no more than the size of the file', async () => {
    const { file } = randomSeq2seq(smallMarian)
    const asked = (changes: Record<string, unknown>) =>
      outcome(() => seq2seqWeights(parseSeq2seqConfig({ ...smallMarian, ...changes }, 'config.json', {}), file, 'f32'))
    expect(await asked({ encoder_layers: huge })).toBe('config.count')
    expect(await asked({ decoder_layers: 1_000_000 })).toBe('config.count')
    expect(await asked({ max_position_embeddings: huge })).toMatch(/^(config\.count|weights\.shape)$/)
  })
})
