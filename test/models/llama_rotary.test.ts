import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { inverseFrequencies, rotaryTable } from '../../src/models/llama/rotary.js'
import { checkCapacity } from '../../src/models/llama/shapes.js'
import { checkCases } from '../../src/models/parts/token_cases.js'
import { refusal } from '../refusal.js'
import { smallLlama, smallPhi3, smallQwen2 } from './llama_fixtures.js'

interface Case {
  readonly name: string
  readonly config: Record<string, unknown>
  readonly positions: readonly number[]
  /** Length of the text whose last position is the last of `positions`. */
  readonly length: number
  readonly frequencies: string
  readonly cos: string
  readonly sin: string
}

/** Results of HF's own modules. */
const { cases }: { cases: Case[] } = JSON.parse(
  readFileSync(fileURLToPath(new URL('../data/llama_rotary.json', import.meta.url)), 'utf8'),
)

function floats(text: string): Float32Array {
  const bytes = new Uint8Array(Buffer.from(text, 'base64'))
  return new Float32Array(bytes.buffer)
}

/** Distance from `b` up to `a`, in float32 values. */
function ulps(a: number, b: number): number {
  const ordered = new Int32Array(Float32Array.of(a, b).buffer).map((bits) => (bits < 0 ? -2147483648 - bits : bits))
  return (ordered[0] ?? 0) - (ordered[1] ?? 0)
}

const dynamic = { rope_type: 'dynamic', rope_theta: 10_000, factor: 4 }

const configOf = (fields: Record<string, unknown>) => parseLlamaConfig(fields, 'config.json')

/**
 * The powers of torch are not rounded correctly everywhere: of these cases one frequency is one float32 off, and then its angles are off
 * by as much times the position. All others agree in every bit.
 */
const misrounded: Readonly<Record<string, number>> = {
  'yarn 128': 37,
  'longrope short': 20,
  'longrope long': 20,
  'longrope partial short': 20,
  'longrope partial long': 20,
  'longrope factor short': 20,
  'longrope factor long': 20,
}

/** Cases whose tables are made to the last position; of the others 8,192 rows do. */
const whole = ['llama3 8B', 'longrope partial long']

describe('tables of rotations', () => {
  it.each(cases)('agree with HF: $name', ({ name, config, positions, length, frequencies, cos, sin }) => {
    const { rotary, headDim } = configOf({ sliding_window: null, ...config })
    const expected = floats(frequencies)
    const got = inverseFrequencies(rotary, headDim, length)
    const off = Array.from(got, (value, k) => ulps(value, expected[k] ?? Number.NaN))
    expect(off.findIndex((ulp, k) => (k === misrounded[name] ? Math.abs(ulp) > 1 : ulp !== 0))).toBe(-1)
    const rows = whole.includes(name) ? length : Math.min(length, 8192)
    const table = rotaryTable(rotary, headDim, rows, length)
    expect(table.half).toBe(expected.length)
    const [cosines, sines] = [floats(cos), floats(sin)]
    // Torch's sines are off by one here and there; multiplied and rounded again, by two.
    const allowed = table.cos[0] === 1 ? 1 : 2
    const wrong: string[] = []
    for (const [row, position] of positions.entries()) {
      if (position >= rows) continue
      for (let k = 0; k < table.half; k++) {
        if (k === misrounded[name]) continue
        const [at, there] = [position * table.half + k, row * table.half + k]
        const distance = Math.max(
          Math.abs(ulps(table.cos[at] ?? Number.NaN, cosines[there] ?? 0)),
          Math.abs(ulps(table.sin[at] ?? Number.NaN, sines[there] ?? 0)),
        )
        if (!(distance <= allowed)) wrong.push(`position ${position}, pair ${k}: ${distance}`)
      }
    }
    expect(wrong).toEqual([])
  })

  it('begin with no rotation, multiplied by the attention factor', () => {
    const plain = rotaryTable({ type: 'default', theta: 1e4, fraction: 1 }, 8, 2)
    expect([...plain.cos.slice(0, 4), ...plain.sin.slice(0, 4)]).toEqual([1, 1, 1, 1, 0, 0, 0, 0])
    expect(plain.sin[4]).toBe(Math.fround(Math.sin(1)))
    const yarn = { rope_type: 'yarn', rope_theta: 1e4, factor: 4, attention_factor: 1.5, original_max_position_embeddings: 64 }
    const { rotary, headDim } = configOf({ ...smallLlama, rope_parameters: yarn })
    expect(rotaryTable(rotary, headDim, 1).cos).toEqual(Float32Array.of(1.5, 1.5, 1.5, 1.5))
  })

  it('have long factors only for texts beyond the original positions, for any rows', () => {
    const rope = { rope_type: 'longrope', rope_theta: 1e4, short_factor: [1, 1, 1, 1], long_factor: [2, 2, 2, 2] }
    const { rotary, headDim } = configOf({ ...smallPhi3, original_max_position_embeddings: 64, rope_parameters: rope })
    const firstTurn = (positions: number, length?: number) => rotaryTable(rotary, headDim, positions, length).sin[4]
    const scale = Math.fround(Math.sqrt(1 + Math.log(4) / Math.log(64)))
    const [short, long] = [1, 0.5].map((angle) => Math.fround(Math.fround(Math.sin(angle)) * scale))
    expect([firstTurn(64), firstTurn(65), firstTurn(65, 64), firstTurn(64, 65)]).toEqual([short, long, short, long])
  })

  it('rotate a part of a head if a model states it', () => {
    const { rotary, headDim } = configOf({ ...smallPhi3, rope_parameters: { rope_theta: 1e4, partial_rotary_factor: 0.75 } })
    expect(rotaryTable(rotary, headDim, 3)).toMatchObject({ half: 3 })
    expect(rotary).toEqual({ type: 'default', theta: 1e4, fraction: 0.75 })
  })
})

describe('rotations in a configuration', () => {
  const rope = (
    fields: Record<string, unknown> | null,
    more: Record<string, unknown> = {},
    base: Record<string, unknown> = smallLlama,
  ) => configOf({ ...base, rope_parameters: fields, ...more }).rotary
  const yarn = { rope_type: 'yarn', rope_theta: 1e4, factor: 4, original_max_position_embeddings: 64 }
  const llama3 = { rope_type: 'llama3', rope_theta: 1e4, factor: 8, low_freq_factor: 1, high_freq_factor: 4 }
  const longrope = { rope_type: 'longrope', rope_theta: 1e4, short_factor: [1, 1, 1, 1], long_factor: [1, 2, 3, 4] }

  it('is read from all the places it may have', () => {
    const expected = rope(yarn)
    const { rope_theta: theta, ...rest } = yarn
    expect(rope(null, { rope_theta: theta, rope_scaling: rest })).toEqual(expected)
    expect(rope(rest, { rope_theta: theta })).toEqual(expected)
    const { rope_type: type, original_max_position_embeddings: original, ...scaling } = rest
    const outer = {
      rope_theta: theta,
      original_max_position_embeddings: original,
      rope_scaling: { ...scaling, type, rope_type: type },
    }
    expect(rope(null, outer)).toEqual(expected)
    // The origin of the weights changes no angle.
    expect(rope({ ...yarn, finetuned: true })).toEqual(expected)
    // Null means unset.
    expect(rope({ ...yarn, beta_fast: null, truncate: null })).toEqual(expected)
    expect(rope({ ...longrope, type: 'su', rope_type: undefined }, { original_max_position_embeddings: 64 }, smallPhi3)).toEqual(
      rope({ ...longrope, original_max_position_embeddings: 64 }, { original_max_position_embeddings: null }, smallPhi3),
    )
  })

  it('of dynamic types is the default for all positions that a model has', () => {
    const { rotary, beyond, positions } = configOf({ ...smallLlama, rope_parameters: dynamic })
    expect(rotary).toEqual({ type: 'dynamic', factor: 4, theta: 10_000, fraction: 1 })
    const same = inverseFrequencies({ type: 'default', theta: 10_000, fraction: 1 }, 16, 256)
    for (const length of [1, 255, 256]) expect(inverseFrequencies(rotary, 16, length)).toEqual(same)
    const old = { rope_parameters: null, rope_theta: 10_000, rope_scaling: { type: 'dynamic', factor: 4 } }
    expect(configOf({ ...smallLlama, ...old }).rotary).toEqual(rotary)
    // Longer texts are refused, with the reason.
    const inputIds = Array.from({ length: 257 }, () => 1)
    const limits = { positions, vocab: 96, continued: true }
    expect(refusal(() => checkCases({ ...limits, beyond }, [{ inputIds }], 1))).toMatchObject({
      code: 'run.sequence',
      hint: expect.stringContaining('its rotation is dynamic'),
    })
    expect(refusal(() => checkCases(limits, [{ inputIds }], 1)).hint).toContain('shorten the prompt')
    const config = configOf({ ...smallLlama, rope_parameters: dynamic })
    const generation = resolveGeneration({ maxNewTokens: 7 }, { vocab: 96, positions, cases: 1, endTokens: [] })
    const short = [{ inputIds: inputIds.slice(0, 250) }]
    expect(refusal(() => checkCapacity(config, short, generation, undefined)).hint).toMatch(
      /^ask for at most 6 new tokens; its rot/,
    )
    expect(refusal(() => checkCapacity(configOf(smallLlama), short, generation, undefined)).hint).toBe(
      'ask for at most 6 new tokens',
    )
    expect(configOf(smallLlama).beyond).toBeUndefined()
  })

  it('of mrope is the default, for text only', () => {
    const plain = configOf(smallQwen2).rotary
    for (const rope_parameters of [
      { rope_type: 'mrope', rope_theta: 10_000, mrope_section: [2, 1, 1] },
      { rope_type: 'default', type: 'default', rope_theta: 10_000, mrope_section: [2, 1, 1] },
      { type: 'mrope', mrope_section: [2, 1, 1], mrope_interleaved: true },
    ]) {
      expect(configOf({ ...smallQwen2, rope_parameters }).rotary).toEqual(plain)
    }
    const { code } = refusal(() => rope({ rope_type: 'default', mrope_section: [2, 1, 1] }, {}, smallPhi3))
    expect(code).toBe('config.field')
  })

  it('is refused if it is unknown, contradicts itself or lacks a required field', () => {
    const llama3Full = { ...llama3, original_max_position_embeddings: 64 }
    for (const [fields, more, text] of [
      [
        { ...yarn, rope_type: 'ntk' },
        {},
        'rope_type is "ntk", expected one of default, linear, dynamic, mrope, llama3, yarn, longrope',
      ],
      [
        { ...dynamic, original_max_position_embeddings: 64 },
        {},
        'original_max_position_embeddings is 64 for a dynamic type, expected max_position_embeddings, 256',
      ],
      [{ ...yarn, rope_type: 3 }, {}, 'rope_type is 3'],
      [{ ...yarn, rope_type: 'constructor' }, {}, 'rope_type is "constructor"'],
      [{ ...yarn, type: 'linear' }, {}, 'rope_type is "yarn", and rope_parameters.type is "linear"'],
      [{ rope_theta: 1e4, factor: 2 }, {}, 'is missing, but factor is present'],
      [yarn, { rope_theta: 5 }, 'rope_theta is 5, and rope_parameters.rope_theta is 10000'],
      [yarn, { original_max_position_embeddings: 128 }, 'original_max_position_embeddings is 128'],
      [yarn, { rope_scaling: { type: 'linear', factor: 2 } }, 'it has rope_parameters and rope_scaling'],
      [llama3, {}, 'original_max_position_embeddings is missing'],
      [{ ...llama3Full, high_freq_factor: 1 }, {}, 'low_freq_factor is 1, expected less than high_freq_factor 1'],
      [{ ...yarn, beta_slow: 32 }, {}, 'beta_fast is 32, expected more than beta_slow 32'],
      [longrope, {}, 'original_max_position_embeddings is missing'],
      [{ ...longrope, long_factor: [1, 2] }, {}, 'long_factor has 2 numbers, expected 4'],
      [
        { rope_theta: 1e4, partial_rotary_factor: 0.5 },
        {},
        'partial_rotary_factor is 0.5, models of type llama rotate whole heads',
      ],
      [[], {}, 'rope_parameters is []'],
    ] as const) {
      const { code, message } = refusal(() => configOf({ ...smallLlama, rope_parameters: fields, ...more }))
      expect([code, message]).toEqual(['config.rope', expect.stringContaining(text)])
    }
    expect(refusal(() => rope(yarn, { original_max_position_embeddings: 64 }, smallPhi3)).message).toContain(
      'expected one of default, longrope',
    )
    const odd = { rope_theta: 1e4, partial_rotary_factor: 0.4 }
    expect(refusal(() => rope(odd, {}, smallPhi3)).message).toContain('3 of 8 channels')
    expect(refusal(() => configOf({ ...smallLlama, head_dim: 9 })).message).toContain('9 of 9 channels')
  })

  it('is refused if a field is wrong or unknown', () => {
    for (const [fields, texts] of [
      [{ ...yarn, factor: 0.5 }, ['rope_parameters.factor', '0.5']],
      [{ ...yarn, factor: '4' }, ['rope_parameters.factor', '"4"']],
      [{ ...yarn, mscale: -1 }, ['rope_parameters.mscale', '-1']],
      [{ ...yarn, mrope_section: [16, 24] }, ['rope_parameters', 'mrope_section']],
      [{ rope_type: 'default', rope_theta: 1e4, factor: 2 }, ['rope_parameters', 'factor']],
      [{ rope_type: 'linear', rope_theta: 1e4 }, ['rope_parameters.factor']],
      [{ rope_type: 'dynamic', rope_theta: 1e4 }, ['rope_parameters.factor']],
      [{ ...dynamic, alpha: 1000 }, ['rope_parameters.alpha', 'type dynamic']],
      [{ rope_type: 'linear', factor: 2, mrope_section: [2, 2] }, ['mrope_section', 'type linear']],
      [{ rope_type: 'default', rope_theta: 1 }, ['rope_parameters.rope_theta', '1']],
      [
        { ...longrope, short_factor: [1, 0, 1, 1], original_max_position_embeddings: 64 },
        ['rope_parameters.short_factor.1', '0'],
      ],
    ] as const) {
      const { code, message } = refusal(() => configOf({ ...smallLlama, rope_parameters: fields }))
      expect(code).toBe('config.field')
      for (const text of texts) expect(message).toContain(text)
    }
    const { message, hint } = refusal(() => configOf({ ...smallLlama, rope_parameters: { ...yarn, mrope_section: [16, 24] } }))
    expect(message).toContain('rope_parameters.mrope_section is [16,24], type yarn has no such field')
    expect(hint).toContain('beta_fast')
  })
})
