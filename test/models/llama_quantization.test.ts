import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Checkpoint, openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { formatSafetensors } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import {
  areAllInt8,
  checkLlamaTensors,
  type LlamaTensor,
  llamaTensors,
  takeLlamaInt8,
  takeLlamaTensor,
} from '../../src/models/llama/tensor_names.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { refusal } from '../refusal.js'
import { int8Checkpoint, packed, packedW8a16, smallCheckpoint, smallLlama, smallPhi3, w8a8, w8a16 } from './llama_fixtures.js'

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
  it('are identified by the configuration', () => {
    const schemeOf = (quantization: Fields) => parse({ ...smallLlama, ...quantization }).quantization
    const both = { scheme: 'w8a8', packed: false, perTensor: false, inputScales: false, ignore: ['lm_head'] }
    expect(schemeOf({})).toBeUndefined()
    expect(schemeOf({ quantization_config: w8a8 })).toEqual(both)
    expect(schemeOf({ compression_config: { ...w8a8, ignore: ['re:.*lm_head'] } })).toEqual({ ...both, ignore: ['re:.*lm_head'] })
    expect(schemeOf({ quantization_config: { ...w8a8, sparsity_config: {} } })).toEqual(both)
    expect(schemeOf({ quantization_config: { ...w8a8, format: 'naive-quantized' } })).toEqual(both)
    expect(schemeOf({ quantization_config: w8a16 })).toEqual({ ...both, scheme: 'w8a16' })
    expect(schemeOf({ quantization_config: packedW8a16 })).toEqual({ ...both, scheme: 'w8a16', packed: true })
    const own = withGroup({ input_activations: null, format: 'pack-quantized', weights: { ...weights, group_size: -1 } })
    expect(schemeOf({ quantization_config: { ...own, format: 'mixed-precision' } })).toMatchObject({
      scheme: 'w8a16',
      packed: true,
    })
  })

  it('are refused in every other scheme, in one sentence', () => {
    const by4 = { ...weights, num_bits: 4, strategy: 'group', group_size: 128, actorder: 'weight' }
    const fp8 = { ...weights, type: 'float' }
    for (const [quantization, text] of [
      [{ quant_method: 'awq', bits: 4 }, ' has quant_method "awq"'],
      [{ bits: 4 }, ' has quant_method nothing'],
      [{ quant_method: 'modelopt', quant_algo: 'FP8' }, " is ModelOpt's, with quant_algo FP8"],
      ['int8', ' has quant_method nothing'],
      [
        { ...withGroup({ input_activations: null, weights: by4 }), format: 'pack-quantized' },
        ' is compressed-tensors with 4-bit int weights by group of 128 (actorder weight), stored as pack-quantized',
      ],
      [
        { ...withGroup({ weights: fp8, input_activations: { ...inputs, type: 'float' } }), format: 'float-quantized' },
        ' is compressed-tensors with 8-bit float weights by channel and 8-bit float activations by token, stored as float-quantized',
      ],
      [
        withGroup({ weights: { ...fp8, strategy: 'block', block_structure: [128, 128] }, input_activations: null }),
        ' is compressed-tensors with 8-bit float weights by block of [128,128], stored as int-quantized',
      ],
      [
        withGroup({ weights: { ...weights, symmetric: false } }),
        ' is compressed-tensors with 8-bit int weights by channel (not symmetric) and 8-bit int activations by token, stored as int-quantized',
      ],
      [
        withGroup({ input_activations: { ...inputs, dynamic: false } }),
        ' is compressed-tensors with 8-bit int weights by channel and 8-bit int activations by token (static), stored as int-quantized',
      ],
      [
        withGroup({ weights: null }),
        ' is compressed-tensors with float weights and 8-bit int activations by token, stored as int-quantized',
      ],
      // Packed integers of a scheme that has none, and a format that is not known.
      [
        { ...w8a8, format: 'pack-quantized' },
        ' is compressed-tensors with 8-bit int weights by channel and 8-bit int activations by token, stored as pack-quantized',
      ],
      [{ ...w8a16, format: 'marlin-24' }, ' is compressed-tensors with 8-bit int weights by channel, stored as marlin-24'],
      [{ ...w8a8, config_groups: {} }, '.config_groups has 0 groups, expected one for all matmuls'],
      [{ ...w8a8, ignore: [] }, '.ignore does not exclude lm_head, expected it to stay in floats'],
    ] as const) {
      const { code, message } = refusal(() => parse({ ...smallLlama, quantization_config: quantization }))
      expect([code, message]).toEqual(['config.quantization', `config.json: quantization_config${text}`])
    }
  })

  it('are refused with the first field that supported schemes do not have', () => {
    for (const [quantization, ...texts] of [
      [{ ...w8a8, kv_cache_scheme: { num_bits: 8 } }, 'kv_cache_scheme'],
      [{ ...w8a8, sparsity_config: { format: 'sparse-24-bitmask' } }, 'sparsity_config'],
      [{ ...w8a8, transform_config: { config_groups: {} } }, 'transform_config'],
      [withGroup({ targets: ['re:.*mlp.*'] }), 'targets', '"re:.*mlp.*"'],
      [withGroup({ output_activations: inputs }), 'output_activations'],
      [{ ...w8a16, ignore: 'lm_head' }, 'ignore'],
    ] as const) {
      const { code, message } = refusal(() => parse({ ...smallLlama, quantization_config: quantization }))
      expect(code).toBe('config.field')
      for (const text of texts) expect(message).toContain(text)
    }
  })

  it('stay in floats if the configuration ignores them', () => {
    const config = (...ignore: string[]) =>
      parse({ ...smallLlama, quantization_config: { ...w8a16, ignore: ['lm_head', ...ignore] } })
    const floatsOf = (...ignore: string[]): string[] =>
      Object.values(llamaTensors(config(...ignore)))
        .filter(({ shape, steps, name }) => shape.length === 2 && steps === undefined && name.startsWith('layers'))
        .map(({ name }) => name)
    expect([floatsOf(), areAllInt8(config())]).toEqual([[], true])
    // A name is whole, and an expression is looked for at the beginning.
    const some = [
      'model.layers.1.mlp.down_proj',
      're:model\\.layers\\.0\\.self_attn',
      're:mlp',
      'mlp',
      'model.layers.1',
      'LlamaMLP',
    ]
    const attention = ['q', 'k', 'v', 'o'].map((part) => `layers.0.self_attn.${part}_proj.weight`)
    expect([floatsOf(...some), areAllInt8(config(...some))]).toEqual([[...attention, 'layers.1.mlp.down_proj.weight'], false])
    const file = int8Checkpoint(smallLlama)
    expect(refusal(() => checkLlamaTensors(config(...some), file)).message).toContain('layers.0.self_attn.q_proj.weight_scale')
    for (const [entry, text] of [
      ['re:(', '"re:(" of quantization_config.ignore is not a supported regular expression'],
      ['re:(?P<layer>a)', 'is not a supported regular expression'],
      ['re:(.*)*(.*)*(.*)*$^', 'takes more than 1 s for model.layers.0.self_attn.q_proj'],
    ] as const) {
      const { code, message } = refusal(() => floatsOf(entry))
      expect([code, message]).toEqual(['config.quantization', expect.stringContaining(text)])
    }
  })

  it('packed in int32 are the same', async () => {
    for (const [fields, weight] of [
      [smallLlama, 'downWeight'],
      [smallPhi3, 'valueWeight'],
    ] as const) {
      const config = parse({ ...fields, quantization_config: packedW8a16 })
      const [plain, file] = [int8Checkpoint(fields), int8Checkpoint(fields)]
      packed(file)
      checkLlamaTensors(config, file)
      const tensor = llamaTensors(config)[`layer1.${weight}`]
      if (tensor === undefined) throw new Error(`no weight ${weight}`)
      const expected = await int8Of(plain, weightOf(fields, weight))
      expect(await int8Of(file, tensor)).toEqual(expected)
      const dir = await mkdtemp(join(tmpdir(), 'heddle-int8-'))
      try {
        await writeFile(join(dir, 'model.safetensors'), formatSafetensors(file.tensors))
        expect(await int8Of(await openCheckpoint(dir), tensor)).toEqual(expected)
      } finally {
        await rm(dir, { recursive: true })
      }
      // Packed weights are not read as unpacked ones, nor the other way round.
      expect(refusal(() => checkLlamaTensors(config, plain)).code).toBe('weights.unknown')
      expect(refusal(() => checkLlamaTensors(parse({ ...fields, quantization_config: w8a16 }), file)).code).toBe(
        'weights.unknown',
      )
    }
    const odd = { ...smallLlama, intermediate_size: 42, quantization_config: packedW8a16 }
    const down = llamaTensors(parse(odd))['layer1.downWeight']
    expect(down).toBeDefined()
    if (down !== undefined)
      expect(refusal(() => takeLlamaTensor(int8Checkpoint(odd), down, 'f32')).message).toContain('packs 42 columns')
  })

  it('of GPTQ and AWQ are known by their tensors too', () => {
    const file = smallCheckpoint(smallLlama)
    const name = 'model.layers.0.self_attn.q_proj'
    file.tensors.delete(`${name}.weight`)
    file.tensors.set(`${name}.qweight`, { dtype: 'I32', shape: [6, 48], data: new Uint8Array(6 * 48 * 4) })
    const { code, message, hint } = refusal(() => checkLlamaTensors(parse(smallLlama), file))
    expect([code, message, hint]).toEqual([
      'config.quantization',
      `tensor ${name}.qweight holds packed integers, as written by GPTQ and AWQ, which are not supported`,
      expect.stringContaining('compressed-tensors'),
    ])
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

  it('may have one step per matrix, and scales of activations that are not used', async () => {
    const perTensor = withGroup({
      weights: { ...weights, strategy: 'tensor' },
      input_activations: { ...inputs, strategy: 'tensor', dynamic: false },
    })
    for (const [fields, weight, rows] of [
      [smallLlama, 'keyWeight', 16],
      [smallPhi3, 'valueWeight', 16],
    ] as const) {
      const config = parse({ ...fields, quantization_config: perTensor })
      expect(config.quantization).toMatchObject({ scheme: 'w8a8', perTensor: true, inputScales: true })
      const file = int8Checkpoint(fields)
      const scale = { dtype: 'F32', shape: [1], data: new Uint8Array(Float32Array.of(0.25).buffer) } as const
      for (const name of [...file.tensors.keys()].filter((each) => each.endsWith('_scale'))) {
        file.tensors.set(name, scale)
        file.tensors.set(name.replace('weight_scale', 'input_scale'), scale)
      }
      checkLlamaTensors(config, file)
      const tensor = llamaTensors(config)[`layer1.${weight}`]
      if (tensor === undefined) throw new Error(`no weight ${weight}`)
      const { values, steps } = await int8Of(file, tensor)
      expect(steps).toEqual(Array<number>(rows).fill(0.25))
      const floats = decode('f32', (await inMemory(takeLlamaTensor(file, tensor, 'f32'))).data)
      expect([...floats]).toEqual(values.map((integer) => integer / 4))
      // Steps per row are not taken for one, and scales of activations without their configuration are unknown.
      const byRow = int8Checkpoint(fields)
      expect(refusal(() => takeLlamaTensor(byRow, tensor, 'f32')).message).toMatch(/weight_scale has shape \[\d+, 1\].*\[1\]/)
      const dynamic = parse({ ...fields, quantization_config: withGroup({ weights: { ...weights, strategy: 'tensor' } }) })
      expect(refusal(() => checkLlamaTensors(dynamic, file)).message).toContain('input_scale')
    }
  })

  it('of a model in training are refused by the name of a state', () => {
    const file = smallCheckpoint(smallLlama)
    const name = 'model.layers.0.mlp.up_proj.input_quantizer._amax'
    file.tensors.set(name, { dtype: 'F32', shape: [], data: new Uint8Array(4) })
    const { code, message } = refusal(() => checkLlamaTensors(parse(smallLlama), file))
    expect([code, message]).toEqual([
      'config.quantization',
      expect.stringContaining(`tensor ${name} is the state of a quantiser`),
    ])
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

  it('are read as floats if a plan has no int8', async () => {
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

  it('and their scales are named if they are missing, misshapen or of another type', () => {
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
