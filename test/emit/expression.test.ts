import { describe, expect, it } from 'vitest'
import { expressionText, offsetText, type Scope, wideText } from '../../src/emit/print/expression.js'
import { createNames } from '../../src/emit/print/names.js'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import * as fixtures from '../schedule/fixtures.js'

function scopeOf(kernel: Kernel): Scope {
  const mapped = mapKernel({ kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: 'f16' } : {}, dims: {} })
  const used = { dims: new Set<string>(), attrs: new Set<string>(), indices: new Set<string>() }
  return { names: createNames(mapped), tensors: kernel.tensors, fixed: {}, elements: new Map([['v', 'v[i]']]), used }
}

const scope = scopeOf(fixtures.layerNorm)
const a = local('a')
const text = (e: Expr): string => expressionText(e, scope)

describe('expressions', () => {
  it.each<[string, Expr]>([
    ['a + 0.5f', call('add', a, f32(0.5))],
    ['(a - 1.0f) * a', call('mul', call('sub', a, f32(1)), a)],
    ['a - (-1.0f)', call('sub', a, f32(-1))],
    ['rsqrtf(a + a)', call('rsqrt', call('add', a, a))],
    ['heddle::larger(a, a * a)', call('maximum', a, call('mul', a, a))],
    ['max(m0, 3)', call('maximum', index('m0'), i32(3))],
    ['(a < 0.0f) ? (-a) : a', call('select', call('lt', a, f32(0)), call('neg', a), a)],
    ['__float2int_rz(a * 2.0f)', call('toInt', call('mul', a, f32(2)))],
    ['heddle::square(v[i] - a)', call('square', call('sub', fixtures.element('v', index('c')), a))],
    ['heddle::read(x, (static_cast<int64_t>(m0) * n) + c)', fixtures.load('x', index('m0'), index('c'))],
    ['heddle::read(gamma, c)', fixtures.load('gamma', index('c'))],
    [
      'heddle::fold<heddle::Max<float>>(n, [&](int j) { return heddle::read(gamma, j); })',
      { kind: 'fold', type: 'f32', monoid: 'max', length: dim('n'), index: 'j', value: fixtures.load('gamma', index('j')) },
    ],
  ])('%s', (expected, e) => expect(text(e)).toBe(expected))

  it('reports a row that is used before it is computed', () => {
    expect(() => text(fixtures.element('w', index('c')))).toThrow('row w is used before it is computed')
  })
})

describe('64-bit offsets', () => {
  it.each<[string, Expr]>([
    ['m0', index('m0')],
    ['(static_cast<int64_t>(m0) * n) + c', call('add', call('mul', index('m0'), dim('n')), index('c'))],
    ['static_cast<int64_t>(m0) + (static_cast<int64_t>(m0) * n)', call('add', index('m0'), call('mul', index('m0'), dim('n')))],
    ['static_cast<int64_t>(c >> 5) * n', call('mul', call('shiftRight', index('c'), i32(5)), dim('n'))],
    ['(static_cast<int64_t>(m0) * n) / 2', call('idiv', call('mul', index('m0'), dim('n')), i32(2))],
  ])('%s', (expected, e) => expect(wideText(e, scope)).toBe(expected))

  it('takes a layout from the tensor', () => {
    const blocks = scopeOf(fixtures.quantize)
    expect(offsetText('y', [index('m0'), index('c')], blocks)).toBe(
      '(((static_cast<int64_t>(c >> 5) * 32) * m) + (static_cast<int64_t>(m0) * 32)) + (c & 31)',
    )
  })
})

describe('names', () => {
  it('is renamed if C++ or the frame uses it', () => {
    const { names } = scopeOf(fixtures.integers)
    expect([names.tensor('chunk'), names.tensor('VEC'), names.dim('row'), names.dim('int')]).toEqual([
      'chunk_tensor',
      'VEC_tensor',
      'row_extent',
      'int_extent',
    ])
    expect([names.value('for'), names.value('abs'), names.attr('team')]).toEqual(['for_value', 'abs_value', 'team_attr'])
  })

  it('renames the dimension, not the index, of one name', () => {
    const stored: Stmt = {
      kind: 'store',
      tensor: 'y',
      indices: [index('m'), index('c')],
      value: fixtures.load('x', index('m'), index('c')),
    }
    const tensors = [fixtures.tensor('x', 'in', 'm n'), fixtures.tensor('y', 'out', 'm n')]
    const { names } = scopeOf(
      fixtures.kernel('copy', 'm n', [fixtures.axis('m', 'm'), fixtures.axis('c', 'n')], tensors, [stored]),
    )
    expect([names.value('m'), names.dim('m'), names.first('c')]).toEqual(['m', 'm_extent', 'c0'])
  })
})
