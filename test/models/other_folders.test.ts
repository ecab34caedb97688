/** Folders and files that are almost a model: each is opened as its actual kind, or refused with the reason and place. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openModelCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { readConfigFile, readOptionalConfigFile } from '../../src/checkpoint/config_file.js'
import { formatSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { withoutSharedPrefix } from '../../src/checkpoint/shared_prefix.js'
import { continuesText } from '../../src/cli/continues_text.js'
import { embeddingNames as bertAnchors, bertWeights } from '../../src/models/encoder/bert.js'
import { parseBertConfig } from '../../src/models/encoder/config.js'
import { families as encoders } from '../../src/models/encoder/families/index.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { families as llamas } from '../../src/models/llama/families.js'
import { openLlamaFiles } from '../../src/models/llama/open_files.js'
import { checkLlamaTensors, llamaTensors, takeLlamaTensor } from '../../src/models/llama/tensor_names.js'
import { modelTypes } from '../../src/models/parts/model_types.js'
import { parseSeq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { embeddingNames as seq2seqAnchors, seq2seqWeights } from '../../src/models/seq2seq/seq2seq_weights.js'
import { inMemory } from '../../src/runtime/weight.js'
import { refusal } from '../refusal.js'
import { randomBert } from './fixtures.js'
import { smallCheckpoint, smallLlama } from './llama_fixtures.js'
import { randomSeq2seq, smallMarian } from './seq2seq_fixtures.js'

let dir = ''
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'heddle-folder-'))
})
afterEach(() => rm(dir, { recursive: true }))

type Tensors = ReadonlyMap<string, StoredTensor>
const renamed = (tensors: Tensors, name: (old: string) => string): Map<string, StoredTensor> =>
  new Map([...tensors].map(([old, tensor]) => [name(old), tensor]))
const small: StoredTensor = { dtype: 'F32', shape: [1], data: new Uint8Array(4) }

describe('model types', () => {
  it('are those that the tables of the kinds have', () => {
    expect([...modelTypes.llama]).toEqual(Object.keys(llamas))
    expect([...modelTypes.encoder].sort()).toEqual(
      Object.values(encoders)
        .flatMap(({ classes }) => Object.keys(classes))
        .sort(),
    )
    for (const type of modelTypes.seq2seq) {
      const { message } = refusal(() => parseSeq2seqConfig({ model_type: type }, 'config.json'))
      expect(message).not.toContain('model_type')
    }
  })

  it('that are not supported get a list of supported ones', () => {
    for (const [fields, found] of [
      [{ model_type: 't5' }, '"t5"'],
      [{ model_type: 'constructor' }, '"constructor"'],
      [{ model_type: ['bert'] }, '["bert"]'],
      [{}, 'missing'],
    ] as const) {
      for (const parse of [parseBertConfig, parseLlamaConfig, parseSeq2seqConfig]) {
        const { code, message, hint } = refusal(() => parse(fields, 'config.json'))
        expect([code, message, hint]).toEqual([
          'config.model_type',
          `config.json: model_type is ${found}, expected one of bert, qdqbert, distilbert, roberta, roberta-prelayernorm, xlm-roberta, camembert, pegasus, marian, opennmt, llama, mistral, qwen2, qwen3, phi3`,
          undefined,
        ])
      }
    }
  })

  it('are not searched in values that are not objects', () => {
    for (const value of [null, [], 'llama']) {
      for (const parse of [parseBertConfig, parseLlamaConfig, parseSeq2seqConfig]) {
        expect(refusal(() => parse(value, 'config.json')).code).toBe('config.field')
      }
    }
  })

  it('of another kind get the name of the right function', () => {
    for (const [parse, type, own, opener] of [
      [parseBertConfig, 'llama', 'bert, ', 'openLlama'],
      [parseLlamaConfig, 'marian', 'llama, mistral', 'openGenerator'],
      [parseSeq2seqConfig, 'roberta', 'pegasus, marian', 'openPipeline'],
    ] as const) {
      const { code, message, hint } = refusal(() => parse({ model_type: type }, 'config.json'))
      expect([code, message, hint]).toEqual([
        'config.model_type',
        expect.stringContaining(`model_type is "${type}", expected one of ${own}`),
        expect.stringContaining(opener),
      ])
    }
  })
})

describe('folders', () => {
  it('of adapters are refused as such, next to a model too', async () => {
    await writeFile(join(dir, 'adapter_config.json'), '{}')
    const adapter = {
      code: 'weights.adapter',
      message: `${dir} holds an adapter (adapter_config.json), and adapters are not read`,
    }
    await expect(continuesText(dir)).rejects.toMatchObject(adapter)
    await expect(readOptionalConfigFile(join(dir, 'generation_config.json'))).resolves.toBeUndefined()
    await writeFile(join(dir, 'config.json'), JSON.stringify(smallLlama))
    await writeFile(join(dir, 'model.safetensors'), formatSafetensors(smallCheckpoint(smallLlama).tensors))
    await expect(openLlamaFiles(dir)).rejects.toMatchObject(adapter)
    await rm(join(dir, 'adapter_config.json'))
    await expect(openLlamaFiles(dir)).resolves.toBeDefined()
  })

  it('of other formats are reported as such', async () => {
    const hint = (text: string) =>
      expect(readConfigFile(join(dir, 'config.json'))).rejects.toMatchObject({
        code: 'config.read',
        hint: expect.stringContaining(text),
      })
    await hint('expected a model folder with config.json')
    await mkdir(join(dir, '0_Transformer'))
    await hint('in its folder 0_Transformer')
    await writeFile(join(dir, 'params.json'), '{}')
    await hint('params.json is of the format')
  })
})

describe('checkpoints with a prefix in all names', () => {
  it.each(['language_model.', 'base_model.model.', 'model.'])('equal the model without it: %s', async (prefix) => {
    const { tensors } = smallCheckpoint(smallLlama)
    await writeFile(join(dir, 'config.json'), JSON.stringify(smallLlama))
    await writeFile(join(dir, 'model.safetensors'), formatSafetensors(renamed(tensors, (name) => `${prefix}${name}`)))
    const { config, checkpoint } = await openLlamaFiles(dir)
    checkLlamaTensors(config, checkpoint)
    for (const tensor of Object.values(llamaTensors(config))) {
      const [{ data }, { data: original }] = [
        await inMemory(takeLlamaTensor(checkpoint, tensor, 'f32')),
        await inMemory(takeLlamaTensor({ tensors }, tensor, 'f32')),
      ]
      expect([tensor.name, Buffer.compare(data, original)]).toEqual([tensor.name, 0])
    }
  })

  it('are encoders and encoder-decoders too', async () => {
    const { json, tensors } = randomBert({})
    const bert = parseBertConfig(json, 'config.json')
    const marian = randomSeq2seq(smallMarian)
    const seq2seq = marian.config
    for (const [plain, prefix, anchors, take] of [
      [tensors, '0.auto_model.', bertAnchors(bert), (file: { tensors: Tensors }) => bertWeights(bert, file, 'f32')],
      [
        renamed(tensors, (name) => `bert.${name}`),
        'm.',
        bertAnchors(bert),
        (file: { tensors: Tensors }) => bertWeights(bert, file, 'f32'),
      ],
      [
        marian.file.tensors,
        'part.',
        seq2seqAnchors(seq2seq),
        (file: { tensors: Tensors }) => seq2seqWeights(seq2seq, file, 'f32'),
      ],
    ] as const) {
      await writeFile(join(dir, 'model.safetensors'), formatSafetensors(renamed(plain, (name) => `${prefix}${name}`)))
      const found = await openModelCheckpoint(dir, anchors)
      expect([...found.tensors.keys()]).toEqual([...plain.keys()])
      expect(Object.keys(take({ tensors: plain })).length).toBeGreaterThan(10)
    }
  })

  it('that others do not have are refused, and full names are unchanged', () => {
    const anchors = ['model.embed_tokens.weight', 'embed_tokens.weight']
    const names = (...all: string[]) => ({ tensors: new Map(all.map((name) => [name, small])) })
    const part = names('language_model.model.embed_tokens.weight', 'vision_tower.conv.weight')
    expect(refusal(() => withoutSharedPrefix(part, anchors))).toMatchObject({
      code: 'weights.prefix',
      message:
        'tensor language_model.model.embed_tokens.weight has the prefix language_model., and tensor vision_tower.conv.weight has not',
    })
    for (const file of [
      names('model.embed_tokens.weight', 'x.model.embed_tokens.weight'),
      names('embed_tokens.weight', 'lm_head.weight'),
      names('lm_head.weight'),
      names('xembed_tokens.weight'),
    ]) {
      expect(withoutSharedPrefix(file, anchors)).toBe(file)
    }
  })
})

describe('hints of tensors', () => {
  const { tensors } = smallCheckpoint(smallLlama)
  const taken = (fields: Record<string, unknown>, weight: string, file: { tensors: Tensors } = { tensors }) => {
    const tensor = llamaTensors(parseLlamaConfig(fields, 'config.json'))[weight]
    if (tensor === undefined) throw new Error(`no weight ${weight}`)
    return refusal(() => takeLlamaTensor(file, tensor, 'f32'))
  }

  it('name vocab_size for tables of other sizes', () => {
    for (const weight of ['embeddings.words', 'head.weight']) {
      expect(taken({ ...smallLlama, vocab_size: 90 }, weight)).toMatchObject({
        code: 'weights.shape',
        message: expect.stringContaining('has shape [96, 48], the configuration expects [90, 48]'),
        hint: expect.stringContaining('vocab_size'),
      })
    }
    // Rows of another width do not depend on the vocabulary, nor do those of another matrix.
    expect(taken({ ...smallLlama, hidden_size: 96 }, 'embeddings.words').hint).toBeUndefined()
    expect(taken({ ...smallLlama, intermediate_size: 41 }, 'layer0.upWeight').hint).toBeUndefined()
    const bert = randomBert({})
    const config = parseBertConfig({ ...bert.json, vocab_size: 5 }, 'config.json')
    expect(refusal(() => bertWeights(config, bert, 'f32')).hint).toContain('vocab_size')
    const marian = randomSeq2seq(smallMarian)
    const more = parseSeq2seqConfig({ ...smallMarian, vocab_size: 51 }, 'config.json')
    expect(refusal(() => seq2seqWeights(more, marian.file, 'f32')).hint).toContain('vocab_size')
  })

  it('name tie_word_embeddings if there is no head', () => {
    const headless = new Map([...tensors].filter(([name]) => name !== 'lm_head.weight'))
    expect(taken(smallLlama, 'head.weight', { tensors: headless })).toMatchObject({
      code: 'weights.missing',
      hint: expect.stringContaining('tie_word_embeddings'),
    })
    const { hint } = taken(smallLlama, 'layer0.upWeight', { tensors: new Map() })
    expect(hint).not.toContain('tie_word_embeddings')
  })

  it('name biases if there is an extra one', () => {
    const unknown = (name: string) =>
      refusal(() =>
        checkLlamaTensors(parseLlamaConfig(smallLlama, 'config.json'), { tensors: new Map([...tensors, [name, small]]) }),
      )
    expect(unknown('model.layers.0.self_attn.q_proj.bias').hint).toContain('without biases')
    expect(unknown('model.layers.0.self_attn.rotor.weight').hint).toBe('a model of type llama with 2 layers')
  })
})

describe('classes with unsupported heads', () => {
  it('are known by their configuration', () => {
    const { json } = randomBert({})
    const headless = (...architectures: string[]) => parseBertConfig({ ...json, architectures }, 'config.json').headless
    expect(headless('BertForMaskedLM')).toBe('BertForMaskedLM')
    expect(headless('BertForPreTraining')).toBe('BertForPreTraining')
    expect(headless('BertModel')).toBeUndefined()
    expect(headless('BertForTokenClassification')).toBeUndefined()
  })
})
