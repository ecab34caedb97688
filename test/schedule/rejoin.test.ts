/** Quotients and remainders of one number, rejoined in offsets: the offset is the same at every place, and contiguous where axes are one. */
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { printExpr } from '../../src/ir/print.js'
import { classify } from '../../src/schedule/access/access.js'
import { rejoin } from '../../src/schedule/normalise/rejoin.js'

const [e, b, n, m] = [index('e'), index('b'), dim('n'), dim('m')]
const quotient = call('idiv', e, n)
const remainder = call('mod', e, n)
const times = (x: Expr, y: Expr): Expr => call('mul', x, y)
const plus = (x: Expr, y: Expr): Expr => call('add', x, y)

/** An offset and the same after rejoining, at several places, negative ones included. */
function values(offset: Expr): { readonly before: readonly number[]; readonly after: readonly number[] } {
  const all = [-7, -1, 0, 1, 5, 6, 11].flatMap((at) => [0, 3].map((row) => [at, row] as const))
  const of = (expr: Expr) =>
    all.map(([at, row]) =>
      Number(
        evaluateExpr(expr, {
          ...emptyEnv({ n: 3, m: 4 }),
          values: new Map([
            ['e', at],
            ['b', row],
          ]),
        }),
      ),
    )
  return { before: of(offset), after: of(rejoin(offset)) }
}

describe('rejoining', () => {
  it.each([
    ['two axes', plus(times(quotient, n), remainder), 'e'],
    ['the remainder first', plus(remainder, times(n, quotient)), 'e'],
    ['inner axes of a tensor', plus(times(plus(times(b, m), quotient), n), remainder), 'b * m * n + e'],
    ['with an offset of the quotient', plus(times(plus(plus(quotient, i32(2)), b), n), remainder), '(2 + b) * n + e'],
  ])('%s', (_, offset, printed) => {
    expect(printExpr(rejoin(offset))).toBe(printed)
    expect(classify(rejoin(offset), 'e')).toEqual({ kind: 'contiguous', run: Number.POSITIVE_INFINITY })
    expect(values(offset).after).toEqual(values(offset).before)
  })
  it.each([
    ['by another number', plus(times(quotient, n), call('mod', e, m))],
    ['of another number', plus(times(quotient, n), call('mod', b, n))],
    ['multiplied by another number', plus(times(quotient, m), remainder)],
    ['with an axis in between', plus(times(plus(times(quotient, m), b), n), remainder)],
  ])('leaves those %s', (_, offset) => {
    expect(rejoin(offset)).toEqual(offset)
    expect(classify(offset, 'e').kind).toBe('gather')
  })
})
