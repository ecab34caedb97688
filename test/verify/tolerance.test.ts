import { describe, expect, it } from 'vitest'
import { roundTo } from '../../src/runtime/numbers.js'
import { compare } from '../../src/verify/compare.js'
import { integer, normal, random, smallInteger, uniform, unit } from '../../src/verify/random.js'
import { modelTolerance, tolerance, unitRoundoff, withStoredPart } from '../../src/verify/tolerance.js'

const types = ['f32', 'f16', 'bf16'] as const

/** A naive dot product: float32 throughout, in loop order, one rounding at the end. */
function naiveDot(x: ArrayLike<number>, y: ArrayLike<number>, skip = -1): number {
  let sum = 0
  for (let i = 0; i < x.length; i++) if (i !== skip) sum = Math.fround(sum + Math.fround((x[i] ?? 0) * (y[i] ?? 0)))
  return sum
}

function trueDot(x: ArrayLike<number>, y: ArrayLike<number>): number {
  let sum = 0
  for (let i = 0; i < x.length; i++) sum += (x[i] ?? 0) * (y[i] ?? 0)
  return sum
}

describe('the tolerance table, compared with naive implementations', () => {
  it.each(types)('accepts naive dot products in %s, of any length, and refuses them with a term dropped', (dtype) => {
    for (const length of [1, 7, 64, 1024, 4096]) {
      const next = random(`dot ${dtype} ${length}`)
      const vectors = Array.from({ length: 50 }, () =>
        [0, 1].map(() =>
          roundTo(
            dtype,
            Float64Array.from({ length }, () => normal(next)),
          ),
        ),
      )
      const bound = tolerance({ dtype, class: 'matmul', length })
      const expected = vectors.map(([x, y]) => trueDot(x ?? [], y ?? []))
      const naive = vectors.map(([x, y]) => naiveDot(x ?? [], y ?? []))
      expect(compare(roundTo(dtype, naive), expected, bound), `length ${length}`).toMatchObject({ passed: true })
      const dropped = vectors.map(([x, y]) => naiveDot(x ?? [], y ?? [], length >> 1))
      expect(compare(roundTo(dtype, dropped), expected, bound).passed, `length ${length}`).toBe(false)
    }
  })

  it('accepts one naive dot product that gates another, and refuses both a bound that does not grow and a term dropped', () => {
    const [length, count] = [1024, 300]
    const next = random('gated')
    const drawn = (): Float64Array => Float64Array.from({ length }, () => Math.fround(normal(next)))
    const vectors = Array.from({ length: 2 * count }, () => [drawn(), drawn()] as const)
    const gated = (dot: (x: Float64Array, y: Float64Array) => number, round: (value: number) => number): number[] => {
      const sums = vectors.map(([x, y]) => dot(x, y))
      const silu = (gate: number): number => round(gate / round(1 + round(Math.exp(-gate))))
      return sums.slice(0, count).flatMap((gate) => sums.slice(count).map((up) => round(silu(gate) * up)))
    }
    const expected = gated(trueDot, (value) => value)
    const bound = { dtype: 'f32', class: 'matmul', length, scale: 1 } as const
    const passed = (found: number[], roots: number): boolean => compare(found, expected, tolerance({ ...bound, roots })).passed
    const naive = gated(naiveDot, Math.fround)
    expect([passed(naive, 1), passed(naive, 0)]).toEqual([true, false])
    expect(
      passed(
        gated((x, y) => naiveDot(x, y, length >> 1), Math.fround),
        1,
      ),
    ).toBe(false)
  })

  it('accepts naive softmax in float32 and refuses a term left out of its sum', () => {
    for (const length of [2, 33, 1024, 4096]) {
      const next = random(`softmax ${length}`)
      const x = roundTo(
        'f32',
        Float64Array.from({ length }, () => normal(next)),
      )
      const softmax = (round: (value: number) => number, skip: number) => {
        const e = Array.from(x, (value) => round(Math.exp(value)))
        const total = e.reduce((sum, value, i) => (i === skip ? sum : round(sum + value)), 0)
        return e.map((value) => round(value / total))
      }
      const bound = tolerance({ dtype: 'f32', class: 'reduction', length, scale: 0 })
      const expected = softmax((value) => value, -1)
      expect(compare(softmax(Math.fround, -1), expected, bound), `length ${length}`).toMatchObject({ passed: true })
      expect(compare(softmax(Math.fround, length >> 1), expected, bound).passed, `length ${length}`).toBe(false)
    }
  })

  it.each([...types, 'f8e4m3', 'f8e5m2'] as const)(
    'lets one rounding of storage pass in %s, and two in the same direction fail',
    (dtype) => {
      const bound = tolerance({ dtype, class: 'elementwise' })
      const next = random(`storage ${dtype}`)
      const values = Float64Array.from({ length: 1000 }, () => uniform(next, 1, 2))
      expect(compare(roundTo(dtype, values), values, bound).passed).toBe(true)
      const slip = 2 * unitRoundoff[dtype] + 2 * bound.absolute + 2 * bound.relative
      expect(
        compare(
          values.map((value) => value * (1 + slip)),
          values,
          bound,
        ).passed,
      ).toBe(false)
    },
  )

  it.each(types)('lets a stored part of a sum pass in %s, and no other part of it', (dtype) => {
    const next = random(`stored part ${dtype}`)
    const stored = (value: number) => roundTo(dtype, Float64Array.of(value))[0] ?? Number.NaN
    const parts = Float64Array.from({ length: 2000 }, () => 4 * normal(next))
    const others = roundTo(
      dtype,
      parts.map((part) => normal(next) - part),
    )
    const expected = parts.map((part, i) => part + (others[i] ?? 0))
    const once = tolerance({ dtype, class: 'elementwise', scale: 0 })
    const twice = (i: number) => withStoredPart(once, dtype, parts[i] ?? 0)
    const actual = roundTo(
      dtype,
      parts.map((part, i) => stored(part) + (others[i] ?? 0)),
    )
    expect(compare(roundTo(dtype, expected), expected, once).passed).toBe(true)
    expect(compare(actual, expected, twice).passed).toBe(true)
    expect(compare(actual, expected, once).passed).toBe(false)
    const wrong = parts.map((part, i) => (actual[i] ?? 0) + 2 * unitRoundoff[dtype] * part)
    expect(compare(wrong, expected, twice).passed).toBe(false)
    expect(compare(actual, expected, () => withStoredPart(once, dtype, 0)).passed).toBe(false)
  })

  it('is exact where it states so', () => {
    for (const dtype of types) expect(tolerance({ dtype, class: 'exact' })).toEqual({ absolute: 0, relative: 0 })
    expect(tolerance({ dtype: 'i32', class: 'elementwise' }).relative).toBeLessThan(2 ** -20)
  })

  it('is one step where results are quantised, at any length', () => {
    for (const opClass of ['elementwise', 'transcendental', 'reduction', 'matmul', 'attention'] as const) {
      for (const length of [1, 4096]) {
        const bound = tolerance({ dtype: 'i8', class: opClass, length, scale: 1000 })
        expect(compare([64, -127, 1], [63, -126, 0], bound).passed, opClass).toBe(true)
        for (const expected of [62, 66]) expect(compare([64], [expected], bound).passed, opClass).toBe(false)
      }
    }
    expect(tolerance({ dtype: 'i8', class: 'exact' })).toEqual({ absolute: 0, relative: 0 })
  })

  it('accepts a naive softmax in steps of 1/127 and refuses a term left out of its sum', () => {
    const next = random('quantised softmax')
    const x = roundTo(
      'f32',
      Float64Array.from({ length: 1024 }, () => 5 * normal(next)),
    )
    const top = Array.from(x).indexOf(Math.max(...Array.from(x)))
    const softmax = (round: (value: number) => number, skip: number) => {
      const e = Array.from(x, (value) => round(Math.exp(value)))
      const total = e.reduce((sum, value, i) => (i === skip ? sum : round(sum + value)), 0)
      return e.map((value) => Math.round(round(value / total) * 127))
    }
    const bound = tolerance({ dtype: 'i8', class: 'reduction', length: x.length, scale: 0 })
    const expected = softmax((value) => value, -1)
    expect(compare(softmax(Math.fround, -1), expected, bound).passed).toBe(true)
    expect(compare(softmax(Math.fround, top), expected, bound).passed).toBe(false)
  })

  it('grows with reduction length and storage type', () => {
    const at = (dtype: (typeof types)[number], length: number) => tolerance({ dtype, class: 'reduction', length }).relative
    expect(at('f32', 4096)).toBeGreaterThan(at('f32', 16))
    expect(at('bf16', 16)).toBeGreaterThan(at('f16', 16))
    expect(at('f16', 16)).toBeGreaterThan(at('f32', 16))
  })
})

describe('the tolerance of attention with normed queries and keys', () => {
  const normals = (count: number, next: ReturnType<typeof random>, dtype: 'f16' | 'bf16' | 'f32') =>
    roundTo(
      dtype,
      Float64Array.from({ length: count }, () => normal(next)),
    )
  interface Faults {
    readonly eps?: number
    readonly withoutGain?: boolean
    readonly dropped?: number
  }
  /** A few queries over a few positions, the last of which has a key that is normed, and rounded where `store` rounds. */
  function attended(
    dtype: 'f16' | 'bf16',
    length: number,
    seed: string,
    size: number,
    store: boolean,
    faults: Faults = {},
  ): number[] {
    const { eps = 1e-5, withoutGain = false, dropped = -1 } = faults
    const next = random(seed)
    const [gain, tables] = [normals(length, next, dtype), normals(length, next, 'f32')]
    const norm = (row: ArrayLike<number>, of = gain) => {
      const rms = Math.sqrt(trueDot(row, row) / length + eps)
      return Float64Array.from({ length }, (_, c) => ((row[c] ?? 0) / rms) * (of[c] ?? 0) * (tables[c] ?? 0))
    }
    const small = () => Float64Array.from(normals(length, next, dtype), (value) => value * size)
    const key = norm(small(), withoutGain ? new Float64Array(length).fill(1) : gain)
    const queries = Array.from({ length: 3 }, () => norm(small()))
    const keys = [...Array.from({ length: 5 }, () => normals(length, next, dtype)), store ? roundTo(dtype, key) : key]
    const values = Array.from({ length: keys.length }, () => normals(64, next, dtype))
    return queries.flatMap((query) => {
      const weights = keys.map((row, j) => (j === dropped ? 0 : Math.exp(trueDot(query, row) / 8)))
      const total = weights.reduce((a, b) => a + b, 0)
      const results = Float64Array.from(
        { length: 64 },
        (_, c) =>
          trueDot(
            weights,
            values.map((row) => row[c] ?? 0),
          ) / total,
      )
      return Array.from(store ? roundTo(dtype, results) : results)
    })
  }
  const tries = 40
  /** Number of runs with results that pass. */
  const passes = (dtype: 'f16' | 'bf16', length: number, covers: boolean, size = 1, faults: Faults = {}) => {
    const bound = tolerance({ dtype, class: 'attention', length, ...(covers ? { rounded: { rms: 0.125, roots: 1 } } : {}) })
    const runs = Array.from({ length: tries }, (_, i) => `attended ${dtype} ${length} ${i}`)
    return runs.filter((seed) => {
      const expected = attended(dtype, length, seed, size, false)
      return compare(attended(dtype, length, seed, size, true, faults), expected, bound).passed
    }).length
  }

  it.each(['f16', 'bf16'] as const)('accepts keys in storage precision in %s, and refuses faults', (dtype) => {
    for (const length of [5, 515]) {
      const faulty = (faults: Faults, size = 1) => passes(dtype, length, true, size, faults)
      expect(passes(dtype, length, true), `length ${length}`).toBe(tries)
      // A key may have no weight to speak of, as most have among long ones.
      expect(faulty({ dropped: 2 }), `length ${length}, a key dropped`).toBeLessThan(tries / 2)
      expect(faulty({ withoutGain: true }), `length ${length}, no gain`).toBeLessThan(tries / 2)
      // Of small rows, whose squares are about as large.
      expect(faulty({ eps: 0 }, 2 ** -8), `length ${length}, no eps`).toBeLessThan(tries / 2)
    }
    // The twin: a value in memory is not rounded again, and has no tolerance for it.
    expect(passes(dtype, 515, false)).toBeLessThan(tries)
  })

  it('does not change that of rows in memory', () => {
    for (const length of [1, 64, 1024]) {
      const bound = tolerance({ dtype: 'f16', class: 'attention', length })
      expect(tolerance({ dtype: 'f16', class: 'attention', length, rounded: undefined })).toEqual(bound)
      expect(tolerance({ dtype: 'f16', class: 'attention', length, rounded: { rms: 0, roots: 1 } })).toEqual(bound)
      expect(tolerance({ dtype: 'f16', class: 'attention', length, rounded: { rms: 1, roots: 1 } }).absolute).toBeGreaterThan(
        bound.absolute,
      )
    }
  })
})

describe('modelTolerance', () => {
  it('keeps the promise of 1e-4 in float32 and allows no label to differ', () => {
    expect(modelTolerance('f32', 4)).toMatchObject({ absolute: 1e-4, labelsDiffer: 0 })
  })

  it('keeps the promise of F1 within 1e-3 in float32 and f16, and widens it in bf16 only', () => {
    expect(modelTolerance('f32', 4).f1).toBe(1e-3)
    expect(modelTolerance('f16', 4).f1).toBe(1e-3)
    expect(modelTolerance('bf16', 4).f1).toBeGreaterThan(1e-3)
  })

  it('orders the storage types', () => {
    const [f32 = 0, f16 = 0, bf16 = 0] = types.map((dtype) => modelTolerance(dtype, 12).relativeL2)
    expect(f32).toBeLessThan(f16)
    expect(f16).toBeLessThan(bf16)
  })
})

describe('random', () => {
  const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length

  it('is a function of its name', () => {
    const [a, b, c] = [random('a'), random('a'), random('b')]
    const words = (next: () => number) => Array.from({ length: 8 }, next)
    const first = words(a)
    expect(words(b)).toEqual(first)
    expect(words(c)).not.toEqual(first)
  })

  it('has the distributions it names', () => {
    const next = random('distributions')
    const draws = Array.from({ length: 20_000 }, () => normal(next))
    expect(Math.abs(mean(draws))).toBeLessThan(5 / Math.sqrt(draws.length))
    expect(Math.abs(mean(draws.map((value) => value * value)) - 1)).toBeLessThan(5 * Math.sqrt(2 / draws.length))
    const counts = new Map<number, number>()
    for (let i = 0; i < 20_000; i++) {
      const value = smallInteger(next)
      counts.set(value, (counts.get(value) ?? 0) + 1)
    }
    expect([...counts.keys()].sort((a, b) => a - b)).toEqual([-2, -1, 1, 2])
    // Chi-square with 3 degrees of freedom exceeds 16.27 once in a thousand.
    const square = [...counts.values()].reduce((sum, count) => sum + (count - 5000) ** 2 / 5000, 0)
    expect(square).toBeLessThan(16.27)
  })

  it('stays inside its ranges', () => {
    const next = random('ranges')
    for (let i = 0; i < 1000; i++) {
      expect(unit(next)).toBeGreaterThan(0)
      expect(unit(next)).toBeLessThan(1)
      expect([3, 4, 5]).toContain(integer(next, 3, 5))
    }
  })
})
