/**
 * The check of derived kernels against the bodies of their nodes: the data that it draws, the kernels that it passes, and those that it cannot
 * judge.
 */
import { describe, expect, it } from 'vitest'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived, type DerivedGroup } from '../../src/fuse/check/derived.js'
import { drawValues, randomFrom } from '../../src/fuse/check/inputs.js'
import { call, f32, i32 } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import { isTemplate } from '../../src/ir/template.js'
import { mapStmt, rewrite } from '../../src/ir/walk.js'
import { refusal } from '../refusal.js'
import { type Around, at, attention } from './attention_draft.js'
import { type At, Draft } from './random/draft.js'

/** The group of all nodes. */
function groupOf(draft: Draft): DerivedGroup {
  const plan = { name: 'p', graph: 'drawn', groups: [{ kernel: 'k', occurrences: [draft.members()] }] }
  const [group] = applyPlan(draft.graph(), plan, draft.kernels).groups
  if (group === undefined) throw new Error('no group')
  return group
}

/** An elementwise op over `m n`. */
function elementwise(value: (element: Expr) => Expr): Draft {
  const draft = new Draft()
  const x = { value: draft.input('m n'), dims: ['m', 'n'] }
  draft.output(draft.each(['m', 'n'], { m: 'm', n: 'n' }, { x }, ({ x: given }, { m, n }) => value(at(given, m, n))))
  return draft
}

/** Rows of a table that integers choose. */
function gather(place: (id: Expr) => Expr): Draft {
  const draft = new Draft()
  const [ids, table] = [draft.input('m', 'id'), draft.input('v n')]
  const reads = { ids: { value: ids, dims: ['m'] }, table: { value: table, dims: ['v', 'n'] } }
  draft.output(
    draft.each(['m', 'n'], { m: 'm', n: 'n', v: 'v' }, reads, ({ ids: id, table: rows }, { m, n }) =>
      at(rows, place(at(id, m)), n),
    ),
  )
  return draft
}

it('draws integers that index a tensor from all of its places', () => {
  const draft = gather((id) => id)
  const ids = draft.inputs.in0 ?? -1
  const drawn = drawValues(draft.graph(), draft.nodes, draft.kernels, { m: 400, n: 2, v: 7 }, randomFrom(1)).get(ids) ?? []
  expect([...new Set(drawn)].sort()).toEqual([0, 1, 2, 3, 4, 5, 6])
})

describe('a group', () => {
  it('whose bodies give no finite number cannot be judged', () => {
    const draft = elementwise((x) => call('log', call('sub', f32(-2), call('mul', x, x))))
    const { code, message } = refusal(() => checkDerived(groupOf(draft), draft.kernels))
    expect(code).toBe('plan.meaning')
    expect(message).toBe('group k: the bodies of op0 give no finite number on any data that was tried')
  })

  it('whose bodies give zeros is right if the kernel does too', () => {
    const draft = elementwise((x) => call('sub', x, x))
    expect(() => checkDerived(groupOf(draft), draft.kernels)).not.toThrow()
  })

  it('whose bodies read out of bounds on all data cannot be judged', () => {
    const inside = gather((id) => id)
    expect(() => checkDerived(groupOf(inside), inside.kernels)).not.toThrow()
    const outside = gather((id) => call('add', id, i32(1000)))
    expect(refusal(() => checkDerived(groupOf(outside), outside.kernels))).toMatchObject({
      code: 'plan.meaning',
      message: 'group k: no data was found on which the bodies of op0 stay within their tensors',
      hint: 'an op of the group indexes a tensor by integers of another; clamp them in its body',
    })
    // Without integer inputs, the sizes are the cause.
    const draft = new Draft()
    const x = { value: draft.input('m n'), dims: ['m', 'n'] }
    draft.output(
      draft.each(['m', 'n'], { m: 'm', n: 'n' }, { x }, ({ x: given }, { m, n }) => {
        if (m === undefined) throw new Error('no row')
        return at(given, call('add', m, i32(1000)), n)
      }),
    )
    const { hint } = refusal(() => checkDerived(groupOf(draft), draft.kernels))
    expect(hint).toMatch(
      /^\w+\[\d+, \d+\] is outside its shape .*, for extents from 2 to 7: .*facts: \{ n: \{ atLeast: 'm' \} \}$/,
    )
  })

  it('may differ by rounding, relative to the size of its numbers', () => {
    const draft = elementwise((x) => call('mul', x, f32(1e12)))
    const group = groupOf(draft)
    const { kernel } = group.derived
    if (isTemplate(kernel)) throw new Error('no row program')
    const off = (by: number): DerivedGroup => {
      const factor = (expr: Expr): Expr =>
        rewrite(expr, (node) => (node.kind === 'const' && node.value === 1e12 ? { ...node, value: 1e12 * (1 + by) } : node))
      const body = kernel.body.map((stmt) => mapStmt(stmt, factor))
      return { ...group, derived: { ...group.derived, kernel: { ...kernel, body } } }
    }
    expect(() => checkDerived(off(1e-11), draft.kernels)).not.toThrow()
    expect(refusal(() => checkDerived(off(1e-7), draft.kernels)).message).toContain('would give another result')
  })
})

describe('a query without keys gives zeros, as in a kernel', () => {
  const past = (score: Expr, i: Expr, j: Expr): Expr => call('select', call('lt', j, i), score, f32(-1e30))
  const pairs = (draft: Draft, x: ValueId, value: (score: Expr, i: Expr, j: Expr) => Expr): ValueId =>
    draft.each(
      ['i', 'j'],
      { i: 's', j: 's' },
      { x: { value: x, dims: ['i', 'j'] } },
      ({ x: given }, { i = i32(0), j = i32(0) }) => value(at(given, i, j), i, j),
    )
  it.each<[string, Around]>([
    ['where an op masks the scores', { scores: (draft, x) => pairs(draft, x, past) }],
    [
      'where it masks them behind another op',
      {
        scores: (draft, x) =>
          pairs(
            draft,
            pairs(draft, x, (score) => call('neg', score)),
            past,
          ),
      },
    ],
    ['where the softmax does', { score: (x: At | undefined, i: Expr, j: Expr) => past(at(x, i, j), i, j) }],
  ])('%s', (_, around) => {
    const draft = attention(around)
    expect(() => checkDerived(groupOf(draft), draft.kernels)).not.toThrow()
  })
})
