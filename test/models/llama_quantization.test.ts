import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Checkpoint, openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { formatSafetensors } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import {
  checkLlamaTensors,
  type LlamaTensor,
  llamaTensors,
  takeLlamaInt8,
  takeLlamaTensor,
} from '../../src/models/llama/tensor_names.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { refusal } from '../refusal.js'
import { int8Checkpoint, smallCheckpoint, smallLlama, smallPhi3, w8a8 } from './llama_fixtures.js'

type Fields = Record<string, unknown>
const parse = (fields: Fields) => parseLlamaConfig(fields, 'config.json')
const withGroup = (changes: Fields): Fields => ({
  ...w8a8,
  config_groups: { group_0: { ...w8a8.config_groups.group_0, ...changes } },
})
const { weights, input_activations: inputs } = w8a8.config_groups.group_0

/** A weight of the second layer. */
const weightOf = (fields: Fields, weight: string): LlamaTensor => {
  const tensor = llamaTensors(parse({ ...fields, quantization_config: w8a8 }))[`layer1.${weight}`]
  if (tensor === undefined) throw new Error(`no weight ${weight}`)
  return tensor
}

async function int8Of(file: Checkpoint, { steps, ...tensor }: LlamaTensor): Promise<{ values: number[]; steps: number[] }> {
  if (steps === undefined) throw new Error(`${tensor.name} has no steps`)
  const taken = takeLlamaInt8(file, { ...tensor, steps })
  expect([taken.values.dtype, taken.steps.dtype, taken.steps.shape]).toEqual(['i8', 'f32', [taken.values.shape[0]]])
  const held = await inMemory(taken.values)
  return { values: [...new Int8Array(held.data.buffer)], steps: [...decode('f32', (await inMemory(taken.steps)).data)] }
}

describe('int8 weights of compressed-tensors', () => {
  it('are known by what the configuration says', () => {
    expect(parse(smallLlama).quantization).toBeUndefined()
    expect(parse({ ...smallLlama, quantization_config: w8a8 }).quantization).toBe('w8a8')
    expect(parse({ ...smallLlama, compression_config: { ...w8a8, ignore: ['re:.*lm_head'] } }).quantization).toBe('w8a8')
    expect(parse({ ...smallLlama, quantization_config: { ...w8a8, sparsity_config: {} } }).quantization).toBe('w8a8')
  })

  it('are refused in every other scheme, by the field', () => {
    for (const [quantization, texts] of [
      [{ quant_method: 'awq', bits: 4 }, ['quant_method', '"awq"']],
      [{ bits: 4 }, ['quant_method', 'nothing']],
      ['int8', ['quant_method']],
      [{ ...w8a8, format: 'pack-quantized' }, ['quantization_config.format', '"pack-quantized"']],
      [{ ...w8a8, format: 'float-quantized' }, ['quantization_config.format']],
      [{ ...w8a8, kv_cache_scheme: { num_bits: 8 } }, ['kv_cache_scheme']],
      [{ ...w8a8, sparsity_config: { format: 'sparse-24-bitmask' } }, ['sparsity_config']],
      [{ ...w8a8, transform_config: { config_groups: {} } }, ['transform_config']],
      [withGroup({ weights: { ...weights, num_bits: 4 } }), ['weights.num_bits', '4']],
      [
        withGroup({ weights: { ...weights, strategy: 'group', group_size: 128 } }),
        ['weights.strategy', '"group"', 'weights.group_size', '128'],
      ],
      [withGroup({ weights: { ...weights, symmetric: false } }), ['weights.symmetric', 'false']],
      [withGroup({ weights: { ...weights, actorder: 'static' } }), ['weights.actorder', '"static"']],
      [withGroup({ input_activations: null }), ['input_activations']],
      [withGroup({ input_activations: { ...inputs, dynamic: false } }), ['input_activations.dynamic', 'false']],
      [withGroup({ input_activations: { ...inputs, strategy: 'tensor' } }), ['input_activations.strategy', '"tensor"']],
      [withGroup({ targets: ['re:.*mlp.*'] }), ['targets', '"re:.*mlp.*"']],
      [{ ...w8a8, config_groups: {} }, ['config_groups has 0 groups']],
      [{ ...w8a8, ignore: ['lm_head', 'model.layers.0.mlp.down_proj'] }, ['ignore has "model.layers.0.mlp.down_proj"']],
      [{ ...w8a8, ignore: [] }, ['ignore leaves lm_head in']],
    ] as const) {
      const { code, message } = refusal(() => parse({ ...smallLlama, quantization_config: quantization }))
      expect(code).toMatch(/^config\.(quantization|field)$/)
      for (const text of texts) expect(message).toContain(text)
    }
  })

  it('come as they are, with a step for each row', async () => {
    const key = weightOf(smallLlama, 'keyWeight')
    expect([key.steps, weightOf(smallLlama, 'attentionGamma').steps]).toEqual([
      'layers.1.self_attn.k_proj.weight_scale',
      undefined,
    ])
    const file = int8Checkpoint(smallLlama)
    checkLlamaTensors(parse({ ...smallLlama, quantization_config: w8a8 }), file)
    const { values, steps } = await int8Of(file, key)
    expect([values.length, values.slice(0, 3), values[255]]).toEqual([16 * 48, [-127, -126, -125], -127])
    expect(steps).toEqual(Array.from({ length: 16 }, (_, row) => (row + 1) / 64))
    expect((await int8Of(file, weightOf(smallLlama, 'projectionWeight'))).steps).toHaveLength(48)
  })

  it('are rows of fused ones, from files too', async () => {
    const file = int8Checkpoint(smallPhi3)
    const dir = await mkdtemp(join(tmpdir(), 'heddle-int8-'))
    try {
      await writeFile(join(dir, 'model.safetensors'), formatSafetensors(file.tensors))
      const value = weightOf(smallPhi3, 'valueWeight')
      for (const source of [file, await openCheckpoint(dir)]) {
        const { values, steps } = await int8Of(source, value)
        expect(values[0]).toBe(((64 * 48) % 255) - 127)
        expect([values.length, steps[0], steps.length]).toEqual([16 * 48, 65 / 64, 16])
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('are the floats that they stand for where a plan has none', async () => {
    const key = weightOf(smallPhi3, 'keyWeight')
    const file = int8Checkpoint(smallPhi3)
    const { values, steps } = await int8Of(file, key)
    for (const dtype of ['f32', 'bf16'] as const) {
      const taken = takeLlamaTensor(file, key, dtype)
      expect([taken.dtype, taken.shape]).toEqual([dtype, [16, 48]])
      const floats = decode(dtype, (await inMemory(taken)).data)
      const expected = values.map((integer, i) => integer * (steps[Math.floor(i / 48)] ?? 0))
      if (dtype === 'f32') expect([...floats]).toEqual(expected)
      else
        for (const [i, value] of floats.entries())
          expect(Math.abs(value - (expected[i] ?? 0))).toBeLessThanOrEqual(Math.abs(value) / 256)
    }
  })

  it('and their steps are named where they are missing, misshapen or of another type', () => {
    const file = int8Checkpoint(smallLlama)
    const [key, value] = [weightOf(smallLlama, 'keyWeight'), weightOf(smallLlama, 'valueWeight')]
    const up = weightOf(smallLlama, 'upWeight')
    file.tensors.delete(`model.${key.name}_scale`)
    expect(refusal(() => takeLlamaTensor(file, key, 'f32')).message).toContain('k_proj.weight_scale [16, 1] is missing')
    file.tensors.set(`model.${value.name}_scale`, { dtype: 'F32', shape: [16], data: new Uint8Array(64) })
    expect(refusal(() => takeLlamaTensor(file, value, 'f32')).message).toMatch(/v_proj.weight_scale has shape \[16\].*\[16, 1\]/)
    expect(refusal(() => takeLlamaTensor(smallCheckpoint(smallLlama), up, 'f32')).message).toContain('is F32, expected I8')
    // Steps that the configuration does not know of, and int8 weights without it.
    expect(refusal(() => checkLlamaTensors(parse(smallLlama), file)).code).toBe('weights.unknown')
    const { steps: _, ...plain } = up
    expect(refusal(() => takeLlamaTensor(int8Checkpoint(smallLlama), plain, 'f32')).message).toContain(
      'is I8, expected F32, F16, BF16',
    )
  })
})
