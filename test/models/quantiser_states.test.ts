/**
 * Maxima that quantisation-aware training leaves in a checkpoint. Checkpoints are random ones of this file, with states by the names that
 * HF's QDQBert and pytorch-quantization give them: no trained one is in the repository.
 */
import { describe, expect, it } from 'vitest'
import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { type BertConfig, parseBertConfig } from '../../src/models/encoder/config.js'
import { statesOfSite, trainedMaxima } from '../../src/models/encoder/quantiser_states.js'
import { sites } from '../../src/quant/sites.js'
import { randomBert } from './fixtures.js'

const { config } = randomBert({ num_hidden_layers: 2, hidden_size: 8, num_attention_heads: 2, intermediate_size: 12 })
const state = (shape: readonly number[], ...values: number[]): StoredTensor => ({
  dtype: 'F32',
  shape,
  data: new Uint8Array(Float32Array.from(values).buffer),
})

/** Names written out as a QDQBert with a head has them. */
const layer = (at: number): Record<string, StoredTensor> => {
  const under = `bert.encoder.layer.${at}`
  return {
    ...Object.fromEntries(
      ['query', 'key', 'value'].map((name) => [`${under}.attention.self.${name}._input_quantizer._amax`, state([], 3 + at)]),
    ),
    [`${under}.attention.self.query._weight_quantizer._amax`]: state([8, 1], 1, 2, 3, 4, 5, 6, 7, 8),
    [`${under}.attention.self.key._weight_quantizer._amax`]: state([], 0.5),
    [`${under}.attention.self.value._weight_quantizer._amax`]: state([8], 2, 2, 2, 2, 2, 2, 2, 2),
    [`${under}.attention.self.matmul_q_input_quantizer._amax`]: state([1], 1.25),
    [`${under}.attention.self.matmul_k_input_quantizer._amax`]: state([], 1.5),
    [`${under}.attention.self.matmul_v_input_quantizer._amax`]: state([], 1.75),
    [`${under}.attention.self.matmul_a_input_quantizer._amax`]: state([], 0.875),
    [`${under}.attention.output.dense._input_quantizer._amax`]: state([], 2.25),
    [`${under}.attention.output.dense._weight_quantizer._amax`]: state([], 0.75),
    [`${under}.attention.output.add_residual_input_quantizer._amax`]: state([], 3 + at),
    [`${under}.intermediate.dense._input_quantizer._amax`]: state([], 2.5),
    [`${under}.intermediate.dense._weight_quantizer._amax`]: state([12, 1], ...Array.from({ length: 12 }, (_, i) => i / 4)),
    [`${under}.output.dense._input_quantizer._amax`]: state([], 2.75),
  }
}
const qat = { ...layer(0), ...layer(1) }
const of = (tensors: Readonly<Record<string, StoredTensor>>, wanted: BertConfig = config) =>
  trainedMaxima(wanted, { tensors: new Map(Object.entries(tensors)) })

describe('maxima of quantisers', () => {
  it('are 127 times the scales of exported layers', async () => {
    const scales = Object.entries(qat).flatMap(([name, tensor]) => {
      const at = /^(.*)\._(input|weight)_quantizer\._amax$/.exec(name)
      return at === null ? [] : [[`${at[1]}.${at[2]}_scale`, tensor] as const]
    })
    const { layers, weights } = await of(Object.fromEntries(scales))
    expect(layers[0]).toEqual({
      x: 3 * 127,
      merged: 2.25 * 127,
      attentionNorm: 2.5 * 127,
      fc1Activation: 2.75 * 127,
      outputNorm: 4 * 127,
    })
    expect(weights[0]).toMatchObject({ key: 0.5 * 127, projection: 0.75 * 127 })
  })

  it('are read by site, and those of weights by matrix', async () => {
    const { layers, weights } = await of(qat)
    const rest = {
      ...{ queryBias: 1.25, keyBias: 1.5, valueBias: 1.75, probabilities: 0.875, merged: 2.25 },
      ...{ attentionNorm: 2.5, fc1Activation: 2.75 },
    }
    // The output of a layer is the input of the next; nothing observes that of the last.
    expect(layers).toEqual([
      { ...rest, x: 3, outputNorm: 4 },
      { ...rest, x: 4 },
    ])
    const fc1 = Array.from({ length: 12 }, (_, i) => i / 4)
    expect(weights[1]).toEqual({ query: [1, 2, 3, 4, 5, 6, 7, 8], key: 0.5, value: 2, projection: 0.75, fc1 })
    // The same as ModelOpt names them.
    const renamed = (name: string): string =>
      name
        .replace(/\._(input|weight)/, '.$1')
        .replace(/matmul_([qkv])_input_quantizer/, '$1_bmm_quantizer')
        .replace('matmul_a_input_quantizer', 'softmax_quantizer')
    const modelOpt = Object.fromEntries(Object.entries(qat).map(([name, tensor]) => [renamed(name), tensor]))
    expect(Object.keys(modelOpt)).toContain('bert.encoder.layer.0.attention.self.query.input_quantizer._amax')
    expect(await of(modelOpt)).toEqual(await of(qat))
    const last = await of({ ...qat, 'bert.encoder.final_input_quantizer._amax': state([], 5) })
    expect(last.layers[1]?.outputNorm).toBe(5)
  })

  it('are found without the prefix of a head too', async () => {
    const bare = Object.fromEntries(Object.entries(qat).map(([name, tensor]) => [name.slice('bert.'.length), tensor]))
    expect(await of(bare)).toEqual(await of(qat))
  })

  it('are named after the modules of a family', () => {
    const distil = { ...config, family: 'distilbert' } as const
    const [found] = statesOfSite(distil, 1, 'probabilities')
    expect(found).toBe('transformer.layer.1.attention.matmul_a_input_quantizer._amax')
    expect(statesOfSite(distil, 1, 'outputNorm')).toEqual(['transformer.final_input_quantizer._amax'])
    // With pre-LN, matmuls read norms, and the input of a layer has no quantiser.
    const pre = { ...config, family: 'prelayernorm' } as const
    expect(statesOfSite(pre, 0, 'attentionNorm')[0]).toContain('query._input_quantizer')
    expect(statesOfSite(pre, 0, 'outputNorm')[0]).toContain('intermediate.dense._input_quantizer')
    expect(statesOfSite(pre, 0, 'x')).toEqual([])
    for (const site of sites) expect(new Set(statesOfSite(config, 0, site)).size, site).toBe(statesOfSite(config, 0, site).length)
  })

  it.each([
    [
      'two of one activation that differ',
      { ...qat, 'bert.encoder.layer.1.attention.self.value._input_quantizer._amax': state([], 4.5) },
      /^state encoder\.layer\.1\.attention\.self\.query\._input_quantizer\._amax is 4, .*value.* is 4\.5: /,
    ],
    [
      'an activation with a scale for each channel',
      { ...qat, 'bert.encoder.layer.0.output.dense._input_quantizer._amax': state([2], 1, 2) },
      /^state bert\.encoder\.layer\.0\.output\.dense\._input_quantizer\._amax has 2 numbers, expected 1: /,
    ],
    [
      'weights with scales along the other axis',
      { ...qat, 'bert.encoder.layer.0.output.dense._weight_quantizer._amax': state([1, 12], ...Array(12).fill(1)) },
      /_weight_quantizer\._amax has 12 numbers, expected 1 or 8, the output channels$/,
    ],
    ['no quantiser', { 'bert.encoder.layer.0.output.dense.weight': state([1], 1) }, /^the checkpoint has no quantiser states$/],
  ])('are refused for %s', async (_, tensors, message) => {
    await expect(of(tensors)).rejects.toMatchObject({ code: 'calibrate.state', message: expect.stringMatching(message) })
  })

  it('belong to a model with its own name, which is BERT', () => {
    const file = { model_type: 'qdqbert', architectures: ['QDQBertForTokenClassification'], num_labels: 3 }
    const sizes = { vocab_size: 50, hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 2, intermediate_size: 12 }
    const read = parseBertConfig({ ...file, ...sizes, max_position_embeddings: 16, hidden_act: 'gelu' }, 'config.json')
    expect(read).toMatchObject({ family: 'bert', kind: 'token-classifier', classes: 3 })
  })
})
