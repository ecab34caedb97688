import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Checkpoint, openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { formatSafetensors } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { checkLlamaTensors, type LlamaTensor, llamaTensors, takeLlamaTensor } from '../../src/models/llama/tensor_names.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { refusal } from '../refusal.js'
import { allSmall, smallCheckpoint, smallLlama, smallPhi3, smallQwen2, smallQwen3 } from './llama_fixtures.js'

type Fields = Record<string, unknown>
const tensorsOf = (fields: Fields) => llamaTensors(parseLlamaConfig(fields, 'config.json'))
const check = (fields: Fields, file: Checkpoint) => checkLlamaTensors(parseLlamaConfig(fields, 'config.json'), file)

async function valuesOf(file: Checkpoint, tensor: LlamaTensor): Promise<number[]> {
  const { data } = await inMemory(takeLlamaTensor(file, tensor, 'f32'))
  return [...decode('f32', data)]
}

/** The weights of the second layer. */
const layerOf = (fields: Fields): Record<string, LlamaTensor> =>
  Object.fromEntries(
    Object.entries(tensorsOf(fields)).flatMap(([name, tensor]) => {
      const [, weight] = /^layer1\.(\w+)$/.exec(name) ?? []
      return weight === undefined ? [] : [[weight, tensor]]
    }),
  )

const weightOf = (fields: Fields, name: string): LlamaTensor => {
  const found = tensorsOf(fields)[name]
  if (found === undefined) throw new Error(`no weight ${name}`)
  return found
}

describe('tensors of LLaMA-like checkpoints', () => {
  it('have the shapes of the configuration', () => {
    expect(tensorsOf(smallQwen3)).toMatchObject({
      'embeddings.words': { name: 'embed_tokens.weight', shape: [96, 48] },
      'head.gamma': { name: 'norm.weight', shape: [48] },
      'head.weight': { name: 'lm_head.weight', shape: [96, 48] },
    })
    const at = 'layers.1'
    expect(layerOf({ ...smallQwen3, attention_bias: true })).toEqual({
      attentionGamma: { name: `${at}.input_layernorm.weight`, shape: [48] },
      queryWeight: { name: `${at}.self_attn.q_proj.weight`, shape: [96, 48] },
      keyWeight: { name: `${at}.self_attn.k_proj.weight`, shape: [32, 48] },
      valueWeight: { name: `${at}.self_attn.v_proj.weight`, shape: [32, 48] },
      queryBias: { name: `${at}.self_attn.q_proj.bias`, shape: [96] },
      keyBias: { name: `${at}.self_attn.k_proj.bias`, shape: [32] },
      valueBias: { name: `${at}.self_attn.v_proj.bias`, shape: [32] },
      queryGamma: { name: `${at}.self_attn.q_norm.weight`, shape: [16] },
      keyGamma: { name: `${at}.self_attn.k_norm.weight`, shape: [16] },
      projectionWeight: { name: `${at}.self_attn.o_proj.weight`, shape: [48, 96] },
      projectionBias: { name: `${at}.self_attn.o_proj.bias`, shape: [48] },
      innerGamma: { name: `${at}.post_attention_layernorm.weight`, shape: [48] },
      gateWeight: { name: `${at}.mlp.gate_proj.weight`, shape: [40, 48] },
      upWeight: { name: `${at}.mlp.up_proj.weight`, shape: [40, 48] },
      downWeight: { name: `${at}.mlp.down_proj.weight`, shape: [48, 40] },
    })
    const tied = { ...smallLlama, tie_word_embeddings: true }
    expect(weightOf(tied, 'head.weight')).toEqual(weightOf(tied, 'embeddings.words'))
    expect(Object.keys(layerOf(smallLlama))).not.toContain('queryBias')
    expect(Object.keys(layerOf(smallQwen2))).toContain('queryBias')
    expect(Object.keys(layerOf(smallQwen2))).not.toContain('projectionBias')
  })

  it('are rows of fused ones, read from memory and from files alike', async () => {
    const file = smallCheckpoint(smallPhi3)
    const dir = await mkdtemp(join(tmpdir(), 'heddle-llama-'))
    try {
      await writeFile(join(dir, 'model.safetensors'), formatSafetensors(file.tensors))
      const stored = await openCheckpoint(dir)
      const whole = async (name: string) => valuesOf(file, { name, shape: file.tensors.get(`model.${name}`)?.shape ?? [] })
      const qkv = await whole('layers.1.self_attn.qkv_proj.weight')
      const gateUp = await whole('layers.1.mlp.gate_up_proj.weight')
      for (const source of [file, stored]) {
        expect(await valuesOf(source, weightOf(smallPhi3, 'layer1.queryWeight'))).toEqual(qkv.slice(0, 48 * 48))
        expect(await valuesOf(source, weightOf(smallPhi3, 'layer1.keyWeight'))).toEqual(qkv.slice(48 * 48, 64 * 48))
        expect(await valuesOf(source, weightOf(smallPhi3, 'layer1.valueWeight'))).toEqual(qkv.slice(64 * 48))
        expect(await valuesOf(source, weightOf(smallPhi3, 'layer1.gateWeight'))).toEqual(gateUp.slice(0, 40 * 48))
        expect(await valuesOf(source, weightOf(smallPhi3, 'layer1.upWeight'))).toEqual(gateUp.slice(40 * 48))
      }
      const key = weightOf(smallPhi3, 'layer1.keyWeight')
      expect(takeLlamaTensor(file, key, 'f16')).toMatchObject({ shape: [16, 48], bytes: 16 * 48 * 2 })
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('names rows of a fused tensor with NaN', async () => {
    const file = smallCheckpoint(smallPhi3)
    const key = weightOf(smallPhi3, 'layer1.keyWeight')
    const { data } = file.tensors.get(`model.${key.name}`) ?? { data: new Uint8Array() }
    new Float32Array(data.buffer)[50 * 48 + 3] = Number.NaN
    await expect(valuesOf(file, key)).rejects.toMatchObject({
      code: 'weights.value',
      message: expect.stringMatching(/qkv_proj.weight, rows 48 to 63, is NaN at \[2, 3\]/),
    })
  })

  it('are all there for every type', () => {
    for (const fields of Object.values(allSmall)) {
      const file = smallCheckpoint(fields)
      check(fields, file)
      for (const tensor of Object.values(tensorsOf(fields))) takeLlamaTensor(file, tensor, 'bf16')
    }
  })

  it('may be without the prefix', async () => {
    const { tensors } = smallCheckpoint(smallLlama)
    const bare = new Map([...tensors].map(([name, tensor]) => [name.replace(/^model\./, ''), tensor]))
    check(smallLlama, { tensors: bare })
    const query = weightOf(smallLlama, 'layer1.queryWeight')
    expect(await valuesOf({ tensors: bare }, query)).toEqual(await valuesOf({ tensors }, query))
  })

  it('that are missing or have another shape are named with the shape expected and the one found', () => {
    const file = smallCheckpoint(smallLlama)
    const key = weightOf(smallLlama, 'layer1.keyWeight')
    file.tensors.delete(`model.${key.name}`)
    const missing = refusal(() => takeLlamaTensor(file, key, 'f32'))
    expect([missing.code, missing.message]).toEqual(['weights.missing', `tensor model.${key.name} [16, 48] is missing`])
    file.tensors.delete('lm_head.weight')
    expect(refusal(() => takeLlamaTensor(file, weightOf(smallLlama, 'head.weight'), 'f32')).message).toContain(
      'tensor lm_head.weight [96, 48]',
    )
    const other = weightOf({ ...smallPhi3, num_key_value_heads: 6 }, 'layer1.keyWeight')
    const wrong = refusal(() => takeLlamaTensor(smallCheckpoint(smallPhi3), other, 'f32'))
    expect([wrong.code, wrong.message]).toEqual(['weights.shape', expect.stringMatching(/\[80, 48\].*expects \[144, 48\]/)])
  })

  it('that no weight uses are refused, except tables in the configuration and a second head', () => {
    const biased = smallCheckpoint({ ...smallLlama, attention_bias: true })
    const { code, message } = refusal(() => check(smallLlama, biased))
    expect([code, message]).toEqual(['weights.unknown', expect.stringMatching(/self_attn\.\w_proj\.bias.*and 7 more/)])
    const deeper = smallCheckpoint({ ...smallLlama, num_hidden_layers: 3 })
    expect(refusal(() => check(smallLlama, deeper)).message).toContain('model.layers.2.')
    const file = smallCheckpoint(smallLlama)
    file.tensors.set('model.layers.0.self_attn.rotary_emb.inv_freq', { dtype: 'F32', shape: [4], data: new Uint8Array(16) })
    check(smallLlama, file)
    check({ ...smallLlama, tie_word_embeddings: true }, file)
    expect(refusal(() => check({ ...smallLlama, num_hidden_layers: 4000 }, file)).code).toBe('config.count')
  })
})
