/**
 * Independent ops of one kernel whose rows differ in one axis: the kernel's results, shared computation if they do the same, and ops that cannot be
 * one kernel.
 */
import { describe, expect, it } from 'vitest'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived } from '../../src/fuse/check/derived.js'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { refusal } from '../refusal.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'

const k = 'k'
const planned = (draft: Draft) =>
  applyPlan(draft.graph(), { name: 'p', graph: 'drawn', groups: [{ kernel: k, occurrences: [draft.members()] }] }, draft.kernels)

/** The one kernel of all nodes, after it was checked against their bodies. */
function kernelOf(draft: Draft): Kernel {
  const { groups, kernels } = planned(draft)
  for (const group of groups) checkDerived(group, draft.kernels)
  const kernel = kernels.get(k)
  if (kernel === undefined) throw new Error('no kernel')
  return kernel
}

/** An element and its neighbour times a factor of the row, for `heads` heads. */
function turn(draft: Draft, heads: string, places: ValueId, inner = 'd'): void {
  const extents = { m: 'm', h: heads, c: inner }
  const reads = { x: { value: draft.input(`m ${heads} ${inner}`), dims: ['m', 'h', 'c'] }, f: { value: places, dims: ['m'] } }
  draft.output(
    draft.each(['m', 'h', 'c'], extents, reads, ({ x, f }, { m, h, c = i32(0) }) => {
      const next = call('select', call('lt', c, i32(1)), c, call('sub', c, i32(1)))
      return call('add', call('mul', at(x, m, h, c), at(f, m)), at(x, m, h, next))
    }),
  )
}

/** A row over the sum of its elements. */
function normed(draft: Draft, heads: string): void {
  const extents = { m: 'm', h: heads, c: 'd' }
  const reads = { x: { value: draft.input(`m ${heads} d`), dims: ['m', 'h', 'c'] } }
  draft.output(
    draft.op({
      over: ['m', 'h', 'c'],
      extents,
      reads,
      body: ({ x }, { m = i32(0), h = i32(0) }): readonly Stmt[] => {
        const square = (c: Expr): Expr => call('mul', at(x, m, h, c), at(x, m, h, c))
        const sum: Stmt = {
          kind: 'reduce',
          name: 's',
          type: 'f32',
          monoid: 'sum',
          length: dim('c'),
          index: 'c1',
          value: square(index('c1')),
        }
        const total: Expr = { kind: 'local', type: 'f32', name: 's' }
        const value = call('div', at(x, m, h, index('c2')), call('add', total, f32(1)))
        return [sum, { kind: 'storeRow', tensor: 'y', rows: [m, h], length: dim('c'), index: 'c2', value }]
      },
    }),
  )
}

const doubled = (draft: Draft, shape: string): void => {
  const [, heads = '', inner = ''] = shape.split(' ')
  const reads = { x: { value: draft.input(shape), dims: ['m', 'h', 'c'] } }
  draft.output(
    draft.each(['m', 'h', 'c'], { m: 'm', h: heads, c: inner }, reads, ({ x }, { m, h, c }) =>
      call('mul', at(x, m, h, c), f32(2)),
    ),
  )
}

const rowsOf = (kernel: Kernel): string[] =>
  printKernel(kernel)
    .split('\n')
    .filter((line) => line.startsWith('for '))

describe('ops side by side', () => {
  it('that do the same are computed once, for the rows of both', () => {
    const draft = new Draft()
    const places = draft.input('m')
    turn(draft, 'h', places)
    turn(draft, 'g', places)
    const kernel = kernelOf(draft)
    expect(rowsOf(kernel)).toEqual(['for i_m < m, i_h < h + h2'])
    expect(kernel.tensors.map(({ name }) => name)).toEqual(['x', 'f', 'x2', 'y', 'y2'])
    // One value of the row, which both results store under their conditions.
    expect(kernel.body.map(({ kind }) => kind)).toEqual(['row', 'storeRow', 'storeRow'])
  })

  it('may be three, and their common axis any of the rows', () => {
    const draft = new Draft()
    for (const rows of ['a', 'b', '2*a']) {
      const reads = { x: { value: draft.input(`${rows} n d`), dims: ['r', 'n', 'c'] } }
      draft.output(
        draft.each(['r', 'n', 'c'], { r: rows, n: 'n', c: 'd' }, reads, ({ x }, { r, n, c }) => call('exp', at(x, r, n, c))),
      )
    }
    expect(rowsOf(kernelOf(draft))).toEqual(['for i_r < r + r2 + r3, i_n < n'])
  })

  it('may reduce their rows if they do the same', () => {
    const draft = new Draft()
    normed(draft, 'h')
    normed(draft, 'g')
    expect(kernelOf(draft).body.map(({ kind }) => kind)).toEqual(['reduce', 'row', 'storeRow', 'storeRow'])
  })

  it('that differ are each computed on their own rows', () => {
    const draft = new Draft()
    turn(draft, 'h', draft.input('m'))
    doubled(draft, 'm g d')
    expect(kernelOf(draft).body.map(({ kind }) => kind)).toEqual(['row', 'storeRow', 'storeRow'])
  })

  it('of more statements than the other are written out', () => {
    const draft = new Draft()
    const places = draft.input('m')
    turn(draft, 'h', places)
    const reads = { f: { value: places, dims: ['m'] } }
    draft.output(
      draft.op({
        over: ['m', 'h', 'c'],
        extents: { m: 'm', h: 'g', c: 'd' },
        reads,
        body: ({ f }, { m = i32(0), h = i32(0) }): readonly Stmt[] => [
          { kind: 'let', name: 'l', type: 'f32', value: call('add', at(f, m), f32(1)) },
          {
            kind: 'storeRow',
            tensor: 'y',
            rows: [m, h],
            length: dim('c'),
            index: 'c1',
            value: { kind: 'local', type: 'f32', name: 'l' },
          },
        ],
      }),
    )
    expect(kernelOf(draft).body.map(({ kind }) => kind)).toEqual(['storeRow', 'storeRow'])
  })

  it('of equal rows share them, as before', () => {
    const draft = new Draft()
    doubled(draft, 'm h d')
    doubled(draft, 'm h d')
    expect(rowsOf(kernelOf(draft))).toEqual(['for i_m < m, i_h < h'])
  })

  it('are checked: a part that stores at the indices of the other is found', () => {
    const draft = new Draft()
    doubled(draft, 'm h d')
    doubled(draft, 'm g d')
    const [group] = planned(draft).groups
    if (group === undefined || !('body' in group.derived.kernel)) throw new Error('no kernel')
    const { kernel } = group.derived
    const body = kernel.body.map((stmt) =>
      stmt.kind === 'storeRow' && stmt.tensor === 'y2' && stmt.when !== undefined
        ? { ...stmt, when: call('gt', index('i_h'), dim('h')) }
        : stmt,
    )
    const wrong = { ...group, derived: { ...group.derived, kernel: { ...kernel, body } } }
    expect(refusal(() => checkDerived(wrong, draft.kernels))).toMatchObject({ code: 'plan.meaning' })
  })

  it('cannot differ in how long their rows are', () => {
    const draft = new Draft()
    doubled(draft, 'm h d')
    doubled(draft, 'm h e')
    expect(refusal(() => planned(draft)).code).toBe('plan.illegal')
  })

  it('cannot differ in two axes', () => {
    const draft = new Draft()
    doubled(draft, 'm h d')
    const reads = { x: { value: draft.input('r g d'), dims: ['m', 'h', 'c'] } }
    draft.output(draft.each(['m', 'h', 'c'], { m: 'r', h: 'g', c: 'd' }, reads, ({ x }, { m, h, c }) => at(x, m, h, c)))
    expect(refusal(() => planned(draft)).code).toBe('plan.illegal')
  })

  it('cannot reduce rows unless they do the same', () => {
    const draft = new Draft()
    normed(draft, 'h')
    doubled(draft, 'm g d')
    const { code, message } = refusal(() => planned(draft))
    expect(code).toBe('plan.illegal')
    expect(message).toContain('they run over different axes, and only ops that do the same, or compute each element by itself')
  })
})
