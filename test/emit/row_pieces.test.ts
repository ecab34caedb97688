/** Concatenated rows: the same elements, read in sequence wherever all elements of a chunk give a comparison the same result. */
import { describe, expect, it } from 'vitest'
import { elementStatements } from '../../src/emit/attention/computed_row.js'
import { alternatives, inPieces } from '../../src/emit/attention/row_segments.js'
import { notingScope } from '../../src/emit/attention/slots.js'
import { createNames } from '../../src/emit/print/names.js'
import { call, dim, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr, ExprOf } from '../../src/ir/expr.js'
import { add, attentionKernel, input, load, mul, sub } from './attention_subject.js'

const c = index('c')
const half = dim('e')
const isFirst = call('lt', c, half)
const isTurned = call('lt', c, mul(i32(2), half))
const at = (place: Expr): Expr => load('x', place)
const place = call('select', isFirst, c, call('select', isTurned, sub(c, half), i32(0)))
const partner = call('select', isFirst, call('neg', at(add(c, half))), at(sub(c, half)))
/** Rotated halves of a head, with the elements after them unchanged. */
const rotated = call('select', isTurned, add(mul(at(c), load('cos', place)), mul(partner, load('sin', place))), at(c))

const tensors = [input('x', 'd'), input('cos', 'e'), input('sin', 'e'), input('table', 'd', 'i32')]
const linesOf = (value: Expr) => {
  const kernel = attentionKernel('any')
  const names = createNames({
    instance: { kernel: { ...kernel, rows: [], body: [] }, types: {}, dims: {} },
    axes: [],
    program: { kind: 'elementwise', steps: [], threads: 0 },
  })
  const bounds: Expr[] = []
  const starts: (readonly Expr[])[] = []
  const lines = elementStatements(value, notingScope({ names, tensors }), 'Vec, Whole', ({ indices }) => starts.push(indices), {
    bounds: (bound) => bounds.push(bound),
  })
  const otherwise = lines.indexOf('} else {')
  return { whole: otherwise < 0 ? [] : lines.slice(1, otherwise), rest: lines.slice(otherwise + 1), bounds, starts }
}
const chunks = (lines: readonly string[]) => lines.filter((line) => line.includes('load_chunk')).length
const element = (lines: readonly string[]) => lines.filter((line) => line.includes('const auto element')).join()

describe('elements of a row', () => {
  it('of a rotated head are read by chunks, each in its own piece', () => {
    const { whole, rest, bounds } = linesOf(rotated)
    expect(element(whole)).not.toContain('heddle::read')
    expect(chunks(whole)).toBe(6)
    // Only an element's own condition decides if its partner exists.
    expect(whole.filter((line) => line.includes('load_chunk') && !line.includes(' ? heddle::load_chunk'))).toEqual([])
    // Rows that end inside of a chunk are read element by element.
    expect(chunks(rest)).toBe(0)
    expect(element(rest)).toContain('heddle::read')
    expect(bounds.map((bound) => Number(evaluateExpr(bound, emptyEnv({ e: 8, d: 20 })))).sort((a, b) => a - b)).toEqual([8, 16])
  })

  it('state where each alternative of an index begins', () => {
    const { starts } = linesOf(rotated)
    const env = emptyEnv({ e: 8, d: 20 })
    env.values.set('c', 8)
    const places = starts.map(([start = i32(-1)]) => Number(evaluateExpr(start, env)))
    // Indices into the table: the position itself in the first half, half a head before it in the second.
    expect(new Set(places)).toEqual(new Set([8, 0, 16]))
  })

  it.each([
    ['without a comparison', at(c)],
    ['whose bound is not known before the launch', call('select', call('lt', c, load('table', i32(0))), at(c), at(i32(0)))],
    ['that compare something else', call('select', call('lt', mul(c, i32(2)), half), at(c), at(i32(0)))],
  ])('%s are in one piece', (_, value) => expect(linesOf(value).whole).toEqual([]))

  it('that are apart within a piece stay apart', () => {
    const { whole } = linesOf(call('select', isFirst, at(mul(c, i32(2))), at(c)))
    expect(chunks(whole)).toBe(1)
    expect(element(whole)).toContain('heddle::read')
  })
})

it('other uses of a comparison are unchanged', () => {
  const pieced = inPieces(at(call('select', isFirst, c, sub(c, half))), 'c')
  expect(alternatives(pieced.value as ExprOf<'load'>, pieced)).toHaveLength(2)
  const both = call('and', isFirst, call('lt', i32(1), half))
  const mixed = inPieces(at(call('select', both, c, i32(0))), 'c')
  expect(alternatives(mixed.value as ExprOf<'load'>, mixed)).toEqual([mixed.value])
})
