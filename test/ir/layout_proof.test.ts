/** Layout proofs: the contiguous runs of known layouts, and layouts that must fail. */
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { type Layout, rowMajor } from '../../src/ir/layout.js'
import { proveLayout } from '../../src/ir/layout_proof.js'

const [r, c, m, n] = [index('r'), index('c'), dim('r'), dim('c')]
const add = (...terms: Expr[]): Expr => terms.reduce((a, b) => call('add', a, b))
const mul = (...terms: Expr[]): Expr => terms.reduce((a, b) => call('mul', a, b))
const roundUp = (extent: Expr, to: number): Expr => mul(call('idiv', add(extent, i32(to - 1)), i32(to)), i32(to))

const matrix = (name: string, offset: Expr, size: Expr = mul(m, n)): Layout => ({ name, axes: ['r', 'c'], offset, size })

/** Columns in blocks of 2^bits, each block row-major. */
const blocked = (bits: number): Layout =>
  matrix(
    'blocked',
    add(mul(call('shiftRight', c, i32(bits)), i32(2 ** bits), m), mul(r, i32(2 ** bits)), call('bitAnd', c, i32(2 ** bits - 1))),
    mul(m, roundUp(n, 2 ** bits)),
  )

/** Pairs of neighbours swapped. */
const swapped = matrix(
  'swapped',
  add(mul(r, roundUp(n, 2)), add(call('bitAnd', c, i32(62)), call('sub', i32(1), call('bitAnd', c, i32(1))))),
  mul(m, roundUp(n, 2)),
)

describe('contiguous runs', () => {
  const cases: readonly (readonly [name: string, layout: Layout, run: number | 'all'])[] = [
    ['row-major', rowMajor(['r', 'c']), 'all'],
    ['row-major of five axes', rowMajor(['a', 'b', 'c', 'd', 'e']), 'all'],
    ['a scalar', rowMajor([]), 'all'],
    ['column-major', matrix('columns', add(mul(c, m), r)), 1],
    ['blocks of 32 columns', blocked(5), 32],
    ['blocks of 4 columns', blocked(2), 4],
    ['swapped neighbours', swapped, 1],
  ]
  it.each(cases)('%s', (_, layout, run) => expect(proveLayout(layout).contiguousRun).toBe(run))
})

describe('aligned runs', () => {
  const rows16 = matrix('rows16', add(mul(r, roundUp(n, 16)), c), mul(m, roundUp(n, 16)))
  const cases: readonly (readonly [name: string, layout: Layout, run: number])[] = [
    ['row-major, whose rows begin anywhere', rowMajor(['r', 'c']), 1],
    ['rows padded to 16', rows16, 16],
    ['blocks of 32 columns', blocked(5), 32],
    ['blocks of 4 columns', blocked(2), 4],
    ['column-major', matrix('columns', add(mul(c, m), r)), 1],
    ['rows padded to 16, one element in', { ...rows16, offset: add(rows16.offset, i32(1)), size: add(rows16.size, i32(1)) }, 1],
    ['rows padded to 16, four elements in', { ...rows16, offset: add(rows16.offset, i32(4)), size: add(rows16.size, i32(4)) }, 4],
    ['rows of an odd pitch', matrix('odd', add(mul(r, i32(65)), c), add(mul(m, i32(65)), n)), 1],
  ]
  it.each(cases)('%s', (_, layout, run) => expect(proveLayout(layout).alignedRun).toBe(run))
})

describe('twins that must fail', () => {
  it('finds a clash', () =>
    expect(() => proveLayout(matrix('clash', add(mul(r, i32(4)), c), i32(10_000)))).toThrow(
      'layout clash: indices (0, 4) and (1, 0) at extents r=2, c=5 share offset 4',
    ))
  it('finds an offset beyond the size', () =>
    expect(() => proveLayout(matrix('large', add(mul(r, n), c, i32(1))))).toThrow(
      'layout large: index (0, 0) at extents r=1, c=1 has offset 1, outside its size 1',
    ))
  it('finds a clash only large extents show', () =>
    expect(() => proveLayout(matrix('mask', add(mul(r, n), call('bitAnd', c, i32(31)))))).toThrow('share offset'))
})
