/** Rounding and saturation of stores to 8-bit integers are written into the IR once, unless the body already has them. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { beforeStore } from '../../src/emit/print/rounding.js'
import { deriveKernel } from '../../src/fuse/rows/derive.js'
import { call, f32, i32, local } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { printExpr, printKernel } from '../../src/ir/print.js'
import { loadedNumber, storedExpr, storedNumber } from '../../src/ir/store.js'
import { read } from '../frontend/refuse.js'

const a = local('a')

describe('the IR of a store', () => {
  it.each<[string, Expr]>([
    ['maximum(minimum(round(a), 127.0), -127.0)', a],
    ['maximum(minimum(round(a), 127.0), -127.0)', call('maximum', call('minimum', call('round', a), f32(127)), f32(-127))],
    ['maximum(minimum(round(a), 100.0), -127.0)', call('minimum', call('round', a), f32(100))],
    ['round(maximum(minimum(a, 9.5), -2.0))', call('maximum', call('minimum', a, f32(9.5)), f32(-2))],
    ['a < 1.0 ? 5.0 : maximum(minimum(round(a), 127.0), -127.0)', call('select', call('lt', a, f32(1)), f32(5), a)],
  ])('%s', (text, value) => {
    expect(printExpr(storedExpr('i8', value))).toBe(text)
    expect(storedExpr('i8', storedExpr('i8', value))).toEqual(storedExpr('i8', value))
  })
  it('clamps values outside of uint8', () =>
    expect(printExpr(storedExpr('u8', call('minimum', local('k', 'i32'), i32(9))))).toBe('maximum(minimum(k, 9), 0)'))
  it('clamps values outside of other small types, and keeps NaN in floats', () => {
    const k = local('k', 'i32')
    expect(printExpr(storedExpr('i16', k))).toBe('maximum(minimum(k, 32767), -32768)')
    expect(printExpr(storedExpr('u32', k))).toBe('maximum(k, 0)')
    expect(printExpr(storedExpr('f8e4m3', a))).toBe('maximum(minimum(a, 448.0), -448.0)')
    expect(printExpr(storedExpr('f8e5m2', call('round', a)))).toBe('maximum(minimum(round(a), 57344.0), -57344.0)')
    expect([storedNumber('f8e4m3', 500), storedNumber('f8e5m2', Number.NEGATIVE_INFINITY)]).toEqual([448, -57_344])
    expect([storedNumber('f8e4m3', Number.NaN), storedNumber('i16', Number.NaN)]).toEqual([Number.NaN, -32_768])
  })
  it('removes only operations from the source that the store does itself', () => {
    for (const dtype of ['i8', 'u8', 'i16', 'u32', 'f8e4m3', 'f8e5m2'] as const) {
      const value = dtype === 'i8' || dtype.startsWith('f8') ? a : local('k', 'i32')
      expect(beforeStore(storedExpr(dtype, value), dtype)).toEqual(value)
    }
    expect(printExpr(beforeStore(storedExpr('f8e4m3', call('round', a)), 'f8e4m3'))).toBe('round(a)')
    expect(printExpr(beforeStore(storedExpr('f8e5m2', a), 'f8e4m3'))).toBe('maximum(minimum(a, 57344.0), -57344.0)')
  })
  it('reads integers beyond int32 as its nearest', () => {
    for (const dtype of ['u32', 'i64'] as const) expect(loadedNumber(dtype, 2 ** 31)).toBe(2 ** 31 - 1)
    expect([loadedNumber('i64', -(2 ** 40)), loadedNumber('i64', -7), loadedNumber('f32', 2 ** 40)]).toEqual([
      -(2 ** 31),
      -7,
      2 ** 40,
    ])
  })
  it.each(['f32', 'f16', 'bf16', 'i32', 'i64', undefined] as const)('leaves values for %s', (dtype) =>
    expect(storedExpr(dtype, a)).toBe(a),
  )
  it('equals a store', () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true }), fc.boolean(), (x, half) => {
        const value = half ? Math.trunc(x) + 0.5 : x
        const env = { ...emptyEnv({}), values: new Map([['a', value]]) }
        expect(Number(evaluateExpr(storedExpr('i8', a), env)) + 0).toBe(storedNumber('i8', value) + 0)
      }),
    )
    expect(storedNumber('i8', 1.5)).not.toBe(1.5)
  })
})

const spec = `import { op, tensor, toInt } from 'heddle'
export const narrow = op('narrow', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('i8', 'n'), z: tensor('u8', 'n') },
  body: ({ x }) => (c) => ({ y: 3 * x(c), z: toInt(x(c)) }),
})
export const put = op('put', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n'), cache: tensor('i8', 'n'), at: tensor('i32', '') },
  outputs: { next: tensor('i8', 'n') },
  updates: { next: 'cache' },
  body: ({ x, cache, at }) => (c) => ({ next: c === at() ? x(c) : cache(c) }),
})
`

describe('a body that stores 8-bit integers', () => {
  const { kernels, diagnostics } = read(spec)
  const [narrow, put] = kernels
  it('contains the operations of the store', () => {
    expect(diagnostics).toEqual([])
    expect(narrow === undefined ? '' : printKernel(narrow)).toContain('y[c] = maximum(minimum(round(3.0 * x[c]), 127.0), -127.0)')
    expect(narrow === undefined ? '' : printKernel(narrow)).toContain('= maximum(minimum(toInt(x[c1]), 255), 0)')
  })
  it('may still replace elements in place', () =>
    expect(put === undefined ? '' : printKernel(put)).toContain(
      'c === at[] ? maximum(minimum(round(x[c]), 127.0), -127.0) : cache[c]',
    ))
  it('has the same result in a fused kernel without the store', () => {
    if (narrow === undefined) throw new Error('no kernel')
    const shape = [{ factor: 1, dims: ['n'] }]
    const value = (dtype: 'f32' | 'i8' | 'u8') => ({ dtype, shape, layout: 'row' })
    const node = (name: string, inputs: Record<string, number>, outputs: Record<string, number>) =>
      ({ kind: 'op', name, op: 'narrow', types: {}, inputs, outputs, attrs: {} }) as const
    const graph = {
      name: 'g',
      values: [value('f32'), value('i8'), value('u8'), value('i8'), value('u8')],
      nodes: [],
      inputs: { x: 0 },
      weights: {},
      outputs: { y: 3, z: 4 },
      attrs: [],
    }
    const members = [
      { node: node('first', { x: 0 }, { y: 1, z: 2 }), kernel: narrow },
      { node: node('second', { x: 1 }, { y: 3, z: 4 }), kernel: narrow },
    ]
    const { kernel } = deriveKernel(graph, 'both', members, [], new Set([3, 4]), new Map())
    const text = printKernel(kernel)
    expect(text).toContain('maximum(minimum(round(3.0 * x[c]), 127.0), -127.0)')
    expect(text.match(/round/g)).toHaveLength(2)
  })
})
