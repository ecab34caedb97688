import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { call, dim, i32, index } from '../../src/ir/build.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import { classify, offsetOf } from '../../src/schedule/access/access.js'
import { loadInt, quantize, splitHeads, tensor } from './fixtures.js'

const c = index('c')
const n = dim('n')

describe('how an access moves with the loop', () => {
  it.each<[string, Expr, object]>([
    ['the last axis', call('add', call('mul', index('m'), n), c), { kind: 'contiguous', run: Number.POSITIVE_INFINITY }],
    ['another axis', call('add', call('mul', c, n), index('m')), { kind: 'gather' }],
    ['no axis', call('mul', index('m'), n), { kind: 'uniform' }],
    [
      'a chosen row',
      call('add', call('mul', loadInt('ids', index('m')), n), c),
      { kind: 'contiguous', run: Number.POSITIVE_INFINITY },
    ],
    ['a chosen column', loadInt('ids', c), { kind: 'gather' }],
    ['backwards', call('sub', n, c), { kind: 'gather' }],
    ['every second', call('mul', c, i32(2)), { kind: 'gather' }],
    [
      'blocks of 32',
      call('add', call('mul', call('shiftRight', c, i32(5)), n), call('bitAnd', c, i32(31))),
      { kind: 'contiguous', run: 32 },
    ],
    [
      'blocks by quotient',
      call('add', call('mul', call('idiv', c, i32(24)), n), call('mod', c, i32(24))),
      { kind: 'contiguous', run: 24 },
    ],
    ['blocks that begin elsewhere', call('mod', call('add', c, i32(1)), i32(32)), { kind: 'gather' }],
    ['a mask that is no block', call('bitAnd', c, i32(5)), { kind: 'gather' }],
    [
      'blocks of a quotient within longer ones',
      call('add', call('mul', call('idiv', c, i32(16)), n), call('mod', c, i32(48))),
      { kind: 'contiguous', run: 16 },
    ],
    [
      'blocks of 8 and of 12, which share blocks of 4',
      call('add', c, call('mul', call('add', call('idiv', c, i32(8)), call('idiv', c, i32(12))), n)),
      { kind: 'contiguous', run: 4 },
    ],
    [
      'blocks that begin at a quotient',
      call('mod', call('add', c, call('idiv', index('m'), i32(32))), i32(32)),
      { kind: 'gather' },
    ],
    [
      'blocks that begin at a product',
      call('mod', call('add', c, call('mul', index('m'), i32(32))), i32(32)),
      { kind: 'contiguous', run: 32 },
    ],
  ])('%s', (_, offset, access) => {
    expect(classify(offset, 'c')).toEqual(access)
  })

  it('takes a run-time number for the multiple that facts state', () => {
    const d = dim('d')
    const placed = (at: Expr): Expr => call('add', call('mul', call('idiv', at, d), n), call('mod', at, d))
    const beside = (rest: Expr): Expr => placed(call('add', c, rest))
    const eights = new Map([['d', 8]])
    expect(classify(placed(c), 'c', eights)).toEqual({ kind: 'contiguous', run: 8 })
    expect(classify(beside(call('mul', index('m'), d)), 'c', eights)).toEqual({ kind: 'contiguous', run: 8 })
    expect(classify(placed(c), 'c', new Map([['d', 12]]))).toEqual({ kind: 'contiguous', run: 4 })
    // Twins: no fact, too short a part, one of another dimension, and parts that begin elsewhere.
    expect(classify(placed(c), 'c')).toEqual({ kind: 'gather' })
    expect(classify(placed(c), 'c', new Map([['d', 6]]))).toEqual({ kind: 'gather' })
    expect(classify(placed(c), 'c', new Map([['n', 8]]))).toEqual({ kind: 'gather' })
    expect(classify(beside(index('m')), 'c', eights)).toEqual({ kind: 'gather' })
    expect(classify(beside(call('mul', index('m'), i32(4))), 'c', eights)).toEqual({ kind: 'gather' })
  })

  it('sees through layouts', () => {
    const [, stored] = splitHeads.tensors
    const [, blocks] = quantize.tensors
    if (stored === undefined || blocks === undefined) throw new Error('fixture')
    const heads = offsetOf(stored, ['bi', 'si', 'hi', 'di'].map(index), {})
    expect(classify(heads, 'di')).toEqual({ kind: 'contiguous', run: Number.POSITIVE_INFINITY })
    expect(classify(heads, 'hi')).toEqual({ kind: 'gather' })
    expect(classify(offsetOf(blocks, [index('m'), c], {}), 'c')).toEqual({ kind: 'contiguous', run: 32 })
  })

  /** Heads side by side in the columns of COL32, whose columns `h * d + c` runs over. */
  const columns = (headDim: number | undefined): Expr => {
    const axes = ['s', 'h', 'd']
    const flat = call('add', call('mul', index('h'), dim('d')), index('d'))
    const block = call('mul', call('shiftRight', flat, i32(5)), call('mul', i32(32), dim('s')))
    const offset = call('add', call('add', block, call('mul', index('s'), i32(32))), call('bitAnd', flat, i32(31)))
    const x = tensor('x', 'in', 's h d', undefined, { name: 'col32:1+2', axes, offset, size: dim('s') })
    return offsetOf(x, [index('si'), index('hi'), c], headDim === undefined ? {} : { d: headDim })
  }

  it.each([
    ['of 64', 64, { kind: 'contiguous', run: 32 }],
    ['of 32', 32, { kind: 'contiguous', run: 32 }],
    ['of a size that is no multiple of 32', 24, { kind: 'gather' }],
    ['of any size', undefined, { kind: 'gather' }],
  ])('finds the runs in columns of heads %s', (_, headDim, access) => expect(classify(columns(headDim), 'c')).toEqual(access))

  it('finds that values computed from a block are uniform in it', () => {
    const block = call('shiftRight', c, i32(5))
    const folded = call('bitAnd', call('mul', block, i32(3)), i32(7))
    expect(classify(call('add', folded, call('bitAnd', c, i32(31))), 'c')).toEqual({ kind: 'contiguous', run: 32 })
    // The twin: half a block is not uniform, and values computed from it vary.
    const half = call('shiftRight', call('add', c, i32(16)), i32(5))
    expect(classify(call('add', call('bitAnd', half, i32(7)), call('bitAnd', c, i32(31))), 'c')).toEqual({ kind: 'gather' })
  })

  it('puts fixed extents into the offset', () => {
    const offset = offsetOf(tensor('x', 'in', 'm n'), [index('m'), c], { n: 64 })
    expect(
      evaluateExpr(offset, {
        ...emptyEnv({}),
        values: new Map([
          ['m', 3],
          ['c', 5],
        ]),
      }),
    ).toBe(3 * 64 + 5)
  })

  const leaf = fc.constantFrom<Expr>(c, index('m'), n, i32(1), i32(3), i32(32))
  const { tree } = fc.letrec<{ tree: Expr }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4, depthSize: 'small' },
      leaf,
      fc
        .tuple(fc.constantFrom('add', 'sub', 'mul', 'idiv', 'mod', 'bitAnd', 'shiftRight' as const), tie('tree'), tie('tree'))
        .map(([fn, a, b]) => call(fn as 'add', a, b)),
    ),
  }))

  it('never calls an access contiguous or uniform that is not', () => {
    fc.assert(
      fc.property(tree, fc.integer({ min: 1, max: 70 }), fc.integer({ min: 0, max: 9 }), (offset, extent, m) => {
        const access = classify(offset, 'c')
        if (access.kind === 'gather') return
        const at = (value: number) =>
          Number(
            evaluateExpr(offset, {
              ...emptyEnv({ n: extent }),
              values: new Map([
                ['c', value],
                ['m', m],
              ]),
            }),
          )
        const run = access.kind === 'contiguous' ? Math.min(access.run, 96) : 96
        for (let value = 0; value < 96; value++) {
          const start = value - (value % run)
          const moved = at(value) - at(start)
          // Quotients by zero have no value; the author's own mistake.
          if (Number.isNaN(moved)) continue
          if (moved !== (access.kind === 'contiguous' ? value - start : 0)) throw new Error(`${access.kind} moves by ${moved}`)
        }
      }),
      { numRuns: 500, seed: 7 },
    )
  })
})
