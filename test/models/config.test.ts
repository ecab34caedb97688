import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { parseBertConfig, readBertConfig } from '../../src/models/encoder/config.js'
import { refusal } from '../refusal.js'
import { exampleModel, randomBert } from './fixtures.js'

const { json } = randomBert({})
const parse = (changes: Record<string, unknown>) => parseBertConfig({ ...json, ...changes }, 'config.json')

describe('configurations of the family', () => {
  const roberta = {
    ...json,
    model_type: 'roberta',
    architectures: ['RobertaForSequenceClassification'],
    type_vocab_size: 1,
    max_position_embeddings: 34,
  }
  const distilbert = {
    model_type: 'distilbert',
    architectures: ['DistilBertForSequenceClassification'],
    vocab_size: 50,
    dim: 64,
    n_layers: 3,
    n_heads: 4,
    hidden_dim: 96,
    max_position_embeddings: 32,
    activation: 'relu',
  }

  it('supports RoBERTa, whose first tokens follow the position of padding', () => {
    const config = parseBertConfig(roberta, 'config.json')
    expect(config).toMatchObject({ family: 'roberta', kind: 'sequence-classifier', positions: 32, firstPosition: 2, padToken: 1 })
    const padded = parseBertConfig({ ...roberta, pad_token_id: 4 }, 'config.json')
    expect(padded).toMatchObject({ positions: 29, firstPosition: 5 })
    const other = { ...roberta, model_type: 'xlm-roberta', architectures: ['XLMRobertaModel'] }
    expect(parseBertConfig(other, 'config.json')).toMatchObject({ family: 'roberta', kind: 'encoder' })
    expect(() => parseBertConfig({ ...roberta, max_position_embeddings: 2 }, 'config.json')).toThrow(
      'config.json: max_position_embeddings 2 leaves no position after pad_token_id 1',
    )
  })

  it('supports DistilBERT by its own names', () => {
    expect(parseBertConfig(distilbert, 'config.json')).toMatchObject({
      ...{ family: 'distilbert', kind: 'sequence-classifier', hidden: 64, layers: 3, heads: 4, headDim: 16, inner: 96 },
      ...{ positions: 32, firstPosition: 0, tokenTypes: 0, activation: 'relu' },
    })
    expect(() => parseBertConfig({ ...distilbert, dim: undefined }, 'config.json')).toThrow('dim')
  })

  it("refuses a family's model with the class of another", () => {
    const other = { ...roberta, architectures: ['BertForSequenceClassification'] }
    expect(() => parseBertConfig(other, 'config.json')).toThrow(
      expect.objectContaining({ code: 'config.architecture', hint: expect.stringContaining('RobertaForSequenceClassification') }),
    )
  })
})

describe('BERT configurations', () => {
  it('reads the example model', async () => {
    expect(await readBertConfig(join(exampleModel, 'config.json'))).toEqual({
      family: 'bert',
      kind: 'token-classifier',
      classes: 6,
      vocab: 2048,
      hidden: 128,
      layers: 4,
      heads: 2,
      headDim: 64,
      inner: 512,
      positions: 128,
      firstPosition: 0,
      tokenTypes: 2,
      eps: 1e-12,
      activation: 'gelu',
      padToken: 0,
      labels: ['O', ',', '.', ';', ':', '?'],
    })
  })

  it('knows the names HF has for activations', () => {
    expect(parse({ hidden_act: 'gelu_new' }).activation).toBe('gelu_tanh')
    expect(parse({ hidden_act: 'gelu_pytorch_tanh' }).activation).toBe('gelu_tanh')
    expect(parse({ hidden_act: 'gelu_fast' }).activation).toBe('gelu_tanh')
    expect(parse({ hidden_act: 'gelu_accurate' }).activation).toBe('gelu_tanh')
    expect(refusal(() => parse({ hidden_act: 'quick_gelu' })).code).toBe('config.field')
    expect(parse({ hidden_act: 'relu' }).activation).toBe('relu')
  })

  it('takes any head size', () => {
    for (const [hidden, heads, headDim] of [
      [130, 5, 26],
      [768, 12, 64],
      [1536, 12, 128],
    ] as const) {
      expect(parse({ hidden_size: hidden, num_attention_heads: heads }).headDim).toBe(headDim)
    }
  })

  it('gives a classifier without labels the default ones', () => {
    expect(parse({ architectures: ['BertForTokenClassification'] })).toMatchObject({ classes: 2, labels: [] })
    expect(parse({})).toMatchObject({ classes: 0, labels: [] })
  })

  it.each([
    ['a missing size', { hidden_size: undefined }, 'config.field', 'config.json: hidden_size'],
    ['a size of zero', { num_hidden_layers: 0 }, 'config.field', 'num_hidden_layers'],
    ['a fractional size', { vocab_size: 1.5 }, 'config.field', 'vocab_size'],
    ['an unknown activation', { hidden_act: 'mish' }, 'config.field', 'hidden_act'],
    ['another model', { model_type: 'llama' }, 'config.model_type', 'model_type'],
    ['relative positions', { position_embedding_type: 'relative_key' }, 'config.field', 'position_embedding_type'],
    ['a negative epsilon', { layer_norm_eps: -1 }, 'config.field', 'layer_norm_eps'],
    [
      'heads that do not divide the hidden size',
      { num_attention_heads: 3 },
      'config.heads',
      'hidden size 128 is not a multiple of 3 attention heads',
    ],
    ['another architecture', { architectures: ['BertForMultipleChoice'] }, 'config.architecture', 'BertForMultipleChoice'],
    ['an architecture that is a method of objects', { architectures: ['constructor'] }, 'config.architecture', 'constructor'],
    [
      'labels with a gap',
      { architectures: ['BertForTokenClassification'], id2label: { 0: 'O', 2: 'X' } },
      'config.labels',
      'no entry 1',
    ],
  ])('refuses %s', (_, changes, code, message) => {
    expect(() => parse(changes)).toThrow(
      expect.objectContaining({ code, exitCode: 2, message: expect.stringContaining(message) }),
    )
  })

  it('refuses values that are not objects, and unreadable files', async () => {
    expect(() => parseBertConfig(null, 'config.json')).toThrow(expect.objectContaining({ code: 'config.field' }))
    await expect(readBertConfig('/nowhere/config.json')).rejects.toMatchObject({ code: 'config.read' })
    await expect(readBertConfig(join(exampleModel, 'model.safetensors'))).rejects.toMatchObject({ code: 'config.read' })
    await expect(readBertConfig(fileURLToPath(import.meta.url))).rejects.toMatchObject({ code: 'config.json' })
  })
})
