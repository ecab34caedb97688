/** Loads of spans, as lowering makes them and as prices count them: one of the chunk, and one on each side with elements. */
import { describe, expect, it } from 'vitest'
import { passWalk } from '../../src/cost/pass_walks.js'
import { call, dim, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import { type Loaded, spansOf } from '../../src/loop/spans.js'

const loop = { index: 'j', length: dim('n') }
const row = (shift: number, guard?: Expr): Loaded => ({
  kind: 'loaded',
  name: `x${shift}`,
  type: 'f32',
  dtype: 'f16',
  loop,
  load: { kind: 'load', type: 'f32', tensor: 'x', indices: [index('i'), index('j')] },
  run: Number.POSITIVE_INFINITY,
  keep: false,
  shift,
  ...(guard === undefined ? {} : { guard }),
})
const above = call('ge', index('i'), i32(1))
const reads = (rows: readonly Loaded[]): number => {
  const counted = { index: 'j', count: 64 }
  return passWalk({ loop, rows, statements: [] }, { outer: [], loop: counted, order: [], vec: 8, serial: [], perChunk: 0 }).reads
    .length
}

describe('spans', () => {
  it('are one for all rows under a guard', () => {
    expect(spansOf([row(-2), row(0), row(1)]).map(({ span }) => [span.before, span.after, span.rows.length])).toEqual([[2, 1, 3]])
    expect(spansOf([row(3), row(1)]).map(({ span }) => [span.before, span.after])).toEqual([[0, 3]])
    expect(spansOf([row(-1), row(1, above)])).toHaveLength(2)
  })

  it('cost a load per side', () => {
    expect(reads([row(-2), row(-1), row(0), row(1)])).toBe(3)
    expect(reads([row(-2), row(-1), row(0)])).toBe(2)
    expect(reads([row(0)])).toBe(1)
    expect(reads([row(-1), row(1, above)])).toBe(4)
  })
})
