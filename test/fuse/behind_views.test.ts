/**
 * Ops before and after a matmul whose operands and results are seen through views: each group is derived correctly or refused with a reason. A
 * search that triggers a compiler defect skips that group, reports it, and continues.
 */
import { describe, expect, it } from 'vitest'
import { usageError } from '../../src/errors.js'
import { call, dim, f32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { findPlan } from '../../src/search/auto.js'
import { fitted } from '../../src/search/fitted.js'
import { planAll } from '../../src/search/plans.js'
import { Draft } from './random/draft.js'
import { judge } from './random/judge.js'

const shown = (shape: string): string[] => shape.split(' ')
const extentsOf = (axes: readonly string[]) => Object.fromEntries(axes.map((axis) => [axis, axis]))

/** Ops over the axes of a value, by the axes that they reduce. */
const ops = {
  doubled: (draft: Draft, x: ValueId, axes: readonly string[]) =>
    draft.each(axes, extentsOf(axes), { x: { value: x, dims: axes } }, ({ x: given }, at) =>
      call('mul', given?.(...axes.map((axis) => at[axis] ?? index(axis))) ?? f32(0), f32(2)),
    ),
  /** Each element is a sum over an axis of its own, which a second tensor has. */
  summed: (draft: Draft, x: ValueId, axes: readonly string[]) => {
    const last = axes.at(-1) ?? ''
    const taps = draft.input(`u ${last}`)
    const reads = { x: { value: x, dims: axes }, w: { value: taps, dims: ['u', last] } }
    const name = `op${draft.nodes.length}`
    const out = draft.op({ over: axes, extents: { ...extentsOf(axes), u: 'u' }, reads, body: () => [] })
    const rows = axes.map((axis) => ({ index: `${axis}1`, dim: axis }))
    const at = rows.map((row) => index(row.index))
    const load = (tensor: string, ...indices: readonly Expr[]): Expr => ({ kind: 'load', type: 'f32', tensor, indices })
    const value = call('mul', load('x', ...at), load('w', index('i'), at.at(-1) ?? index('i')))
    const body: Stmt[] = [
      { kind: 'reduce', name: 'sum', type: 'f32', monoid: 'sum', length: dim('u'), index: 'i', value },
      { kind: 'store', tensor: 'y', indices: at, value: { kind: 'local', type: 'f32', name: 'sum' } },
    ]
    draft.kernels.set(name, { ...kernelOf(draft, name), rows, body })
    return out
  },
  /** Each element without the sum of its row. */
  centred: (draft: Draft, x: ValueId, axes: readonly string[]) =>
    draft.op({
      over: axes,
      extents: extentsOf(axes),
      reads: { x: { value: x, dims: axes } },
      body: ({ x: given }, at) => {
        const rows = axes.slice(0, -1).map((axis) => at[axis] ?? index(axis))
        const element = (column: string): Expr => given?.(...rows, index(column)) ?? f32(0)
        const length = dim(axes.at(-1) ?? '')
        return [
          { kind: 'reduce', name: 'sum', type: 'f32', monoid: 'sum', length, index: 'i', value: element('i') },
          {
            kind: 'storeRow',
            tensor: 'y',
            rows,
            length,
            index: 'c',
            value: call('sub', element('c'), { kind: 'local', type: 'f32', name: 'sum' }),
          },
        ]
      },
    }),
}
type Op = keyof typeof ops
const names = Object.keys(ops) as readonly Op[]

function kernelOf(draft: Draft, name: string): Kernel {
  const found = draft.kernels.get(name)
  if (found === undefined) throw new Error(`no kernel ${name}`)
  return found
}

const dims = { b: 3, t: 2, n: 4, h: 2, d: 3, u: 2, j: 5, q: 3 }
const viewed = (draft: Draft, value: ValueId, from: string, to: string, twice: boolean): ValueId => {
  const flat = shown(from).join('*')
  return draft.view(twice ? draft.view(value, flat) : value, to)
}

/** A matmul after ops and one or two views, or before them. */
function drawn(shape: string, to: string, steps: readonly Op[], twice: boolean, isBehind: boolean): Draft {
  const draft = new Draft()
  const [axes, seen] = [shown(shape), shown(to)]
  const apply = (x: ValueId): ValueId => steps.reduce((value, step) => ops[step](draft, value, axes), x)
  const text = `${seen.slice(0, -1).join(' ')} k, n2 k -> ${seen.slice(0, -1).join(' ')} n2`
  const named = text.replaceAll('*', '_')
  if (isBehind) {
    const product = draft.matmul(named, draft.input(`${seen.slice(0, -1).join(' ')} q`), draft.input(`${seen.at(-1)} q`))
    draft.output(apply(viewed(draft, product, to, shape, twice)))
  } else {
    const factor = viewed(draft, apply(draft.input(shape)), shape, to, twice)
    draft.output(draft.matmul(named, factor, draft.input(`j ${seen.at(-1)}`)))
  }
  return draft
}

const views: readonly (readonly [shape: string, to: string])[] = [
  ['b t n', 'b*t n'],
  ['b t n', 'b t*n'],
  ['b t h d', 'b*t h*d'],
  ['b t h d', 'b t h*d'],
  ['b t h d', 'b*t*h d'],
]

describe('a matmul and views', () => {
  it.each(views)('of "%s" as "%s": groups with ops that reduce are right, or refused with a reason', (shape, to) => {
    const verdicts = names.flatMap((one) =>
      names.flatMap((other) =>
        [false, true].flatMap((twice) =>
          [false, true].map((isBehind) => {
            const draft = drawn(shape, to, [one, other], twice, isBehind)
            const verdict = judge({ family: 'views', seed: 1, draft, groups: [draft.members()], dims })
            return `${one} ${other} ${twice} ${isBehind}: ${verdict.kind}`
          }),
        ),
      ),
    )
    expect(verdicts.filter((verdict) => verdict.endsWith('wrong'))).toEqual([])
    expect(verdicts.filter((verdict) => verdict.endsWith('accepted')).length).toBeGreaterThan(0)
  })

  it('leave the ops before it as a separate kernel', () => {
    const draft = drawn('b t n', 'b*t n', ['summed', 'doubled'], false, false)
    const [first = '', second = ''] = draft.members()
    expect(judge({ family: 'views', seed: 1, draft, groups: [[first, second]], dims }).kind).toBe('accepted')
  })
})

describe('a search that meets a defect', () => {
  const auto: PlanDecl = { name: 'auto', graph: 'drawn', groups: [], auto: { device: 'h200', dims } }

  /** Four ops in a row, the second of which cannot become a kernel. */
  function broken(): Draft {
    const draft = new Draft()
    const axes = ['b', 'n']
    draft.output([1, 2, 3, 4].reduce((x) => ops.doubled(draft, x, axes), draft.input('b n')))
    const wrong = kernelOf(draft, 'op1')
    const body = wrong.body.map((stmt): Stmt => (stmt.kind === 'storeRow' ? { ...stmt, value: index('nowhere') } : stmt))
    draft.kernels.set('op1', { ...wrong, body })
    return draft
  }

  it('skips the groups that it cannot derive, with a note', () => {
    const draft = broken()
    const { plan, defects } = findPlan('auto', draft.graph(), { device: 'h200', ops: draft.kernels, dims })
    expect(plan.groups.flatMap(({ occurrences }) => occurrences)).toEqual([['op2', 'op3']])
    expect(defects[0]?.nodes).toContain('op1')
    const planned = planAll([auto], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()])
    expect(planned.kernels).toHaveLength(1)
    expect(planned.left[0]).toMatchObject({ code: 'plan.defect', about: { plan: 'auto', graph: 'drawn' } })
  })

  it('has no note if it can derive all', () => {
    const draft = drawn('b t n', 'b*t n', ['summed', 'doubled'], false, false)
    const planned = planAll([auto], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()])
    expect([planned.left, planned.kernels.length]).toEqual([[], 1])
  })

  it('is no reason to leave a group that is written: that is refused at its place', () => {
    const draft = broken()
    const plan: PlanDecl = { name: 'mine', graph: 'drawn', groups: [{ kernel: 'k', occurrences: [['op0', 'op1']] }] }
    const planned = () => planAll([plan], { drawn: { graph: draft.graph() } }, [...draft.kernels.values()])
    const about = { plan: 'mine', graph: 'drawn', path: ['groups', 'k'], nodes: ['op0', 'op1'] }
    expect(planned).toThrow(expect.objectContaining({ code: 'plan.defect', about }))
  })

  it('skips a group with another result, and all of them if the wrong one is unknown', () => {
    const groups = ['first', 'second'].map((kernel) => ({ kernel, occurrences: [[kernel]] }))
    const refuse = (path?: readonly string[]) => (plan: PlanDecl) => {
      const kernels = plan.groups.map(({ kernel }) => kernel)
      if (kernels.includes('first')) throw usageError('plan.meaning', 'no', { about: { path } })
      return kernels
    }
    const plan: PlanDecl = { name: 'auto', graph: 'drawn', groups }
    const one = fitted(plan, refuse(['groups', 'first']))
    expect([one.applied, one.left.map(({ about }) => about?.nodes)]).toEqual([['second'], [['first']]])
    const all = fitted(plan, refuse())
    expect([all.applied, all.left.map(({ about }) => about?.nodes)]).toEqual([[], [['first', 'second']]])
    expect(() => fitted({ ...plan, groups: [] }, () => refuse()(plan))).toThrow('no')
  })
})
