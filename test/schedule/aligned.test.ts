/** Quotients and remainders in chunks that begin at multiples of their width, against the elements' own. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index, local } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { plainExpr } from '../../src/ir/print.js'
import { type AlignedChunk, inAlignedChunk, isOfChunk } from '../../src/schedule/normalise/aligned.js'

const [c, m, n] = [index('c'), index('m'), dim('n')]
const chunkOf = (...widths: number[]): AlignedChunk => ({
  index: 'c',
  first: 'c0',
  place: 'i',
  widths,
  same: new Map([['scale', 'scale']]),
})
const folded = (e: Expr, ...widths: number[]): string => plainExpr(inAlignedChunk(e, chunkOf(...widths)))
const word = call('idiv', c, i32(8))
const group = call('idiv', c, i32(128))

const env = (values: Readonly<Record<string, number>>) => ({ ...emptyEnv({ n: 5 }), values: new Map(Object.entries(values)) })

describe('an index of a chunk', () => {
  it('is divided once per chunk if chunks are in one block', () => {
    expect(folded(word, 8)).toBe(plainExpr(call('idiv', index('c0'), i32(8))))
    expect(folded(group, 8, 4)).toBe(plainExpr(call('idiv', index('c0'), i32(128))))
    expect(folded(call('mod', c, i32(8)), 8)).toBe('i')
    expect(folded(call('mod', c, i32(4)), 8)).toBe(plainExpr(call('mod', index('i'), i32(4))))
    expect(folded(call('mod', c, i32(32)), 8)).toBe(plainExpr(call('add', call('mod', index('c0'), i32(32)), index('i'))))
  })

  it('is unchanged if its chunk is not aligned', () => {
    for (const e of [
      call('idiv', c, i32(12)),
      call('idiv', c, n),
      call('idiv', call('add', c, i32(4)), i32(8)),
      // One that might be negative is rounded the other way.
      call('idiv', call('add', c, i32(-8)), i32(8)),
      call('idiv', call('add', c, call('mul', local('k', 'i32'), i32(8))), i32(8)),
      call('mod', call('mul', c, i32(2)), i32(8)),
    ])
      expect(folded(e, 8)).toBe(plainExpr(e))
    // Some of the widths are not enough.
    expect(folded(word, 8, 16)).not.toContain('c0, 8)')
    expect(isOfChunk(word, chunkOf(8, 16))).toBe(false)
  })

  it('finds values that are the same for the whole chunk', () => {
    const scale: Expr = { kind: 'load', type: 'f32', tensor: 'scales', indices: [m, group] }
    expect(isOfChunk(scale, chunkOf(8))).toBe(true)
    expect(isOfChunk({ ...scale, indices: [m, call('mod', c, i32(128))] }, chunkOf(8))).toBe(false)
    // A value that is the same in every chunk does not belong to the chunk.
    expect(isOfChunk({ ...scale, indices: [m, m] }, chunkOf(8))).toBe(false)
  })

  it("equals the element's value, for any divisor", () => {
    const constant = fc.constantFrom(1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 128)
    const { sum } = fc.letrec<{ sum: Expr; leaf: Expr }>((tie) => ({
      leaf: fc.oneof(fc.constant(c), fc.constant(c), fc.constant(m), constant.map(i32), fc.constant(n)),
      sum: fc.oneof(
        { depthSize: 'small' },
        tie('leaf'),
        fc.tuple(fc.constantFrom('idiv', 'mod', 'mul'), tie('sum'), constant).map(([fn, a, by]) => call(fn, a, i32(by))),
        fc.tuple(fc.constantFrom('add', 'sub'), tie('sum'), tie('sum')).map(([fn, a, b]) => call(fn, a, b)),
        fc.tuple(tie('sum'), fc.constantFrom(0, 1, 3, 5)).map(([a, by]) => call('shiftRight', a, i32(by))),
        fc.tuple(tie('sum'), fc.constantFrom(0, 1, 3, 7, 31, 6)).map(([a, by]) => call('bitAnd', a, i32(by))),
      ),
    }))
    const places = fc.record({ width: fc.constantFrom(1, 2, 4, 8), chunk: fc.nat(40), m: fc.nat(6) })
    fc.assert(
      fc.property(sum, places, (e, { width, chunk, m }) => {
        const first = chunk * width
        const widths = chunkOf(8, width)
        const [made, same] = [inAlignedChunk(e, widths), isOfChunk(e, widths)]
        const start = evaluateExpr(e, env({ c: first, m }))
        for (let i = 0; i < width; i++) {
          const own = evaluateExpr(e, env({ c: first + i, m }))
          expect(evaluateExpr(made, env({ c: first + i, c0: first, i, m }))).toBe(own)
          if (same) expect(own).toBe(start)
        }
      }),
      { numRuns: 400 },
    )
  })
})
