/** Refusals and costs of groups of nodes, in small graphs that share nothing with the shipped ones. */
import { describe, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived } from '../../src/fuse/check/derived.js'
import { sameKernel } from '../../src/fuse/planned_kernel.js'
import { call, dim, f32, i32, index, toFloat } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Stmt } from '../../src/ir/kernel.js'
import { isTemplate } from '../../src/ir/template.js'
import { mapStmt, rewrite } from '../../src/ir/walk.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { searchPlan } from '../../src/search/auto.js'
import { type Candidate, Candidates } from '../../src/search/candidates.js'
import { diffReports, explainPlan } from '../../src/search/explain.js'
import { refusal } from '../refusal.js'
import { at, attention } from './attention_draft.js'
import { Draft } from './random/draft.js'

const axes = ['m', 'n'] as const
const extents = { m: 'm', n: 'n' }
/** An elementwise op over `m n`. */
const step = (draft: Draft, x: ValueId, value: (element: Expr, column: Expr) => Expr): ValueId =>
  draft.each(axes, extents, { x: { value: x, dims: axes } }, ({ x: given }, { m, n }) => value(at(given, m, n), n ?? i32(0)))

const planOf = (...groups: readonly (readonly string[])[]): PlanDecl => ({
  name: 'p',
  graph: 'drawn',
  groups: groups.map((nodes, i) => ({ kernel: `k${i}`, occurrences: [nodes] })),
})
const said = (draft: Draft, plan: PlanDecl): readonly (string | undefined)[] => {
  const { code, message, hint } = refusal(() => applyPlan(draft.graph(), plan, draft.kernels))
  return [code, message, hint]
}

describe('a row program', () => {
  it('may not exceed the limits of any pass', () => {
    const draft = new Draft()
    let x = draft.input('m n')
    for (let i = 0; i < 20; i++) x = step(draft, x, (element) => call('add', call('mul', element, element), element))
    draft.output(x)
    const [code, message, hint] = said(draft, planOf(draft.members()))
    expect([code, hint]).toEqual(['plan.size', 'make two groups of it'])
    expect(message).toMatch(
      /^group k0: a value of op0, op1, .*, op19 is too large: it has .* operations with shared ones expanded, at most 200000 are/,
    )
  })

  it('is one kernel under one name', () => {
    const draft = new Draft()
    const x = draft.input('m n')
    draft.output(step(draft, x, (element) => call('mul', element, f32(2))))
    draft.output(step(draft, x, (element) => call('mul', element, f32(3))))
    const plan = { ...planOf(), groups: [{ kernel: 'same', occurrences: [['op0'], ['op1']] }] }
    expect(said(draft, plan)).toEqual([
      'plan.differ',
      'plan p: the occurrences of same derive different kernels',
      'give the occurrences different kernel names',
    ])
    const [one, other] = applyPlan(draft.graph(), planOf(['op0'], ['op1']), draft.kernels).kernels.values()
    if (one === undefined || other === undefined) throw new Error('two groups have two kernels')
    expect(sameKernel(one, other)).toBe(false)
    expect(sameKernel({ ...one, source: { file: 'elsewhere.ts', line: 9, column: 9 } }, one)).toBe(true)
  })

  it('that reads elsewhere than its nodes is refused', () => {
    const draft = new Draft()
    draft.output(
      step(
        draft,
        step(draft, draft.input('m n'), (element) => call('abs', element)),
        (element) => call('neg', element),
      ),
    )
    const [group] = applyPlan(draft.graph(), planOf(['op0', 'op1']), draft.kernels).groups
    if (group === undefined || isTemplate(group.derived.kernel)) throw new Error('no row program')
    checkDerived(group, draft.kernels)
    const { kernel } = group.derived
    const beyond = (stmt: Stmt): Stmt =>
      mapStmt(stmt, (expr) =>
        rewrite(expr, (node) =>
          node.kind === 'load' ? { ...node, indices: node.indices.map((each) => call('add', each, i32(1))) } : node,
        ),
      )
    const wrong = { ...group, derived: { ...group.derived, kernel: { ...kernel, body: kernel.body.map(beyond) } } }
    const { code, message } = refusal(() => checkDerived(wrong, draft.kernels))
    expect(code).toBe('plan.meaning')
    expect(message).toContain('group k0: one kernel of nodes op0, op1 would read outside of a tensor where they do not: ')
  })
})

it('an epilogue reads its own row of the matmul', () => {
  const draft = new Draft()
  const product = draft.matmul('m k, n k -> m n', draft.input('m k'), draft.input('n k'))
  draft.output(draft.each(axes, extents, { x: { value: product, dims: axes } }, ({ x: given }, { n }) => at(given, i32(0), n)))
  const [code, message] = said(draft, planOf(draft.members()))
  expect([code, message]).toEqual(['plan.illegal', expect.stringContaining('another row of the matmul')])
})

describe('two matmuls', () => {
  const silu = (x: Expr): Expr => call('div', x, call('add', f32(1), call('exp', call('neg', x))))
  const layers = (between: (x: Expr) => Expr): Draft => {
    const draft = new Draft()
    const hidden = draft.matmul('m k, n k -> m n', draft.input('m k'), draft.input('n k'))
    draft.output(draft.matmul('m n, k n -> m k', step(draft, hidden, between), draft.input('k n')))
    return draft
  }

  it.each([silu, (x: Expr) => call('maximum', x, f32(0))])('with an activation between them are not an attention', (between) => {
    const draft = layers(between)
    const [code, message] = said(draft, planOf(draft.members()))
    expect([code, message]).toEqual([
      'plan.illegal',
      'group k0: nodes mm0 and mm2 cannot be one kernel: a kernel holds one matmul, or two with a softmax between them; ' +
        'nothing between these combines elements of a row',
    ])
  })

  it('with an activation between them get that error if the first has it as its epilogue', () => {
    const draft = layers(silu)
    const dims = Object.fromEntries(['m', 'n', 'k'].map((dim) => [dim, 64]))
    const pricing = { device: costDevice('h200'), dims, dtype: 'f16' } as const
    const { edges } = explainPlan(draft.graph(), planOf(['mm0', 'op1']), draft.kernels, pricing)
    expect(edges.map(({ legal, reason }) => [legal, reason])).toEqual([
      [false, expect.stringMatching(/^nodes mm0 and mm2 cannot be one kernel: a kernel holds one matmul, or two with a softmax/)],
    ])
  })
})

it('an operand is computed along the axes of the matmul, the summed one last', () => {
  const turned = new Draft()
  const x = step(turned, turned.input('m n'), (element) => call('abs', element))
  turned.output(turned.matmul('r c, o r -> c o', x, turned.input('o m')))
  expect(said(turned, planOf(turned.members()))[1]).toBe(
    'group k0: nodes op0 and mm1 cannot be one kernel: mm1 reads op0 as "r c" and sums over r: a factor is computed in rows along the summed axis, so let op0 make "c r"',
  )
  const parts = new Draft()
  const over = ['i', 's', 'c'] as const
  const y = parts.each(
    over,
    { i: 'i', s: 's', c: 'c' },
    { x: { value: parts.input('i s c'), dims: over } },
    ({ x: given }, { i, s, c }) => call('abs', at(given, i, s, c)),
  )
  parts.output(parts.matmul('a k, o k -> a o', parts.view(y, 'i s*c'), parts.input('o s*c')))
  expect(said(parts, planOf(parts.members()))[1]).toBe(
    'group k0: nodes op0 and mm2 cannot be one kernel: op0 makes "i s c", which mm2 reads as "i c*s" through a view, and a factor is computed along the axes of the matmul: let an op of two dimensions make "i c*s" itself, with its places by idiv and %, or store it',
  )
})

describe('attention', () => {
  const rows = { over: ['i', 'c'], extents: { i: 's', c: 'd' } } as const
  const reading = (x: ValueId) => ({ x: { value: x, dims: ['i', 'c'] } })
  const running = (draft: Draft, x: ValueId): ValueId =>
    draft.op({
      ...rows,
      reads: reading(x),
      body: ({ x: given }, { i }) => [
        {
          kind: 'scan',
          name: 'sums',
          type: 'f32',
          monoid: 'sum',
          length: dim('c'),
          index: 'c1',
          value: at(given, i, index('c1')),
        },
        {
          kind: 'storeRow',
          tensor: 'y',
          rows: [i ?? i32(0)],
          length: dim('c'),
          index: 'c2',
          value: { kind: 'element', type: 'f32', row: 'sums', index: index('c2') },
        },
      ],
    })
  const changed = (draft: Draft, x: ValueId, value: (element: Expr, column: Expr) => Expr): ValueId =>
    draft.each(rows.over, rows.extents, reading(x), ({ x: given }, { i, c }) => value(at(given, i, c), c ?? i32(0)))

  it('is one kernel', () => {
    const draft = attention({ behind: (made, x) => changed(made, x, (element) => call('tanh', element)) })
    const { groups } = applyPlan(draft.graph(), planOf(draft.members()), draft.kernels)
    for (const group of groups) checkDerived(group, draft.kernels)
  })

  it('computes operands element by element only', () => {
    const reason = 'attention reads and stores elements that can each be computed alone, and these ops do more'
    const alone = attention({ query: running })
    expect(said(alone, planOf(alone.members()))[1]).toBe(`group k0: nodes mm3 and op0 cannot be one kernel: ${reason}`)
    const two = attention({
      query: (draft, x) =>
        running(
          draft,
          changed(draft, x, (element) => call('neg', element)),
        ),
    })
    expect(said(two, planOf(two.members()))[1]).toBe(`group k0: nodes op0 and op1 cannot be one kernel: ${reason}`)
  })

  it('shows how to write scores that are transposed between the matmuls', () => {
    const turned = attention({ score: (x, i, j) => at(x, j, i) })
    expect(said(turned, planOf(turned.members()))[1]).toContain(
      'queries and keys are transposed between the two matmuls: let the first one store its axes',
    )
  })

  it('is distinguished from pairs of other queries and keys', () => {
    const pairs = attention({ score: (x, i, j) => call('add', at(x, i, j), at(x, j, i)) })
    expect(said(pairs, planOf(pairs.members()))[1]).toBe(
      'group k0: nodes mm0 and op1 cannot be one kernel: a score depends on another pair of query and key',
    )
  })

  it('refuses a node that is not part of it', () => {
    const draft = attention({})
    draft.output(changed(draft, draft.input('s d'), (element) => call('neg', element)))
    expect(said(draft, planOf(draft.members()))[1]).toBe(
      'group k0: nodes op3 and mm0 cannot be one kernel: it is neither before, between nor after the two matmuls',
    )
  })

  it('visits keys with a stride if one index varies, and computes each element if two do', () => {
    const keyOf = (dims: readonly string[], keys: string, ...places: readonly string[]) => {
      const draft = attention({
        keys,
        key: (made, x) =>
          made.each(['j', 'c'], { j: 's', c: 'd' }, { x: { value: x, dims } }, ({ x: given }, where) =>
            at(given, ...places.map((place) => where[place])),
          ),
      })
      const { groups } = applyPlan(draft.graph(), planOf(draft.members()), draft.kernels)
      const [kernel] = groups.map(({ derived }) => derived.kernel)
      if (kernel === undefined || !isTemplate(kernel) || kernel.kind !== 'attention') throw new Error('no attention')
      return kernel.key.element === undefined
    }
    expect(keyOf(['j', 'c'], 's d', 'j', 'c')).toBe(true)
    expect(keyOf(['j', 'j', 'c'], 's s d', 'j', 'j', 'c')).toBe(false)
  })

  it('stores results along their own axes', () => {
    const draft = attention({
      behind: (made, x) => made.each(rows.over, rows.extents, reading(x), ({ x: given }, { i }) => at(given, i, i32(0))),
    })
    expect(said(draft, planOf(draft.members()))[1]).toBe(
      'group k0: nodes mm2 and op3 cannot be one kernel: results are stored along an axis that they do not have',
    )
  })

  it('stores functions of an element and its index', () => {
    const draft = attention({
      behind: (made, x) => changed(made, x, (element, column) => call('mul', element, toFloat(column))),
    })
    const { groups } = applyPlan(draft.graph(), planOf(draft.members()), draft.kernels)
    expect(groups).toHaveLength(1)
    for (const group of groups) checkDerived(group, draft.kernels)
  })
})

describe('candidates and reports', () => {
  const chain = (): Draft => {
    const draft = new Draft()
    const first = step(draft, draft.input('m n'), (element) => call('abs', element))
    draft.output(
      step(
        draft,
        step(draft, first, (element) => call('neg', element)),
        (element) => call('exp', element),
      ),
    )
    return draft
  }
  const pricing = { device: costDevice('h200'), dims: { m: 8, n: 16 }, dtype: 'f16' } as const

  it('name the nodes there are', () => {
    const draft = chain()
    const candidates = new Candidates(draft.graph(), planOf(), draft.kernels, pricing)
    const { code, message, hint } = refusal(() => candidates.of(['op0', 'gone']))
    expect([code, message, hint]).toEqual(['plan.node', 'drawn has no node gone', 'nodes: op0, op1, op2'])
  })

  it('merge a matmul with the ops that compute its operand, if that is cheaper', () => {
    const draft = new Draft()
    const factor = step(draft, draft.input('m n'), (element) => call('neg', element))
    draft.output(draft.matmul('i c, j c -> i j', factor, draft.input('k n')))
    const dims = { m: 8, n: 16, k: 8 }
    const candidates = new Candidates(draft.graph(), planOf(), draft.kernels, { ...pricing, dims })
    const [apart, whole] = [draft.members().map((name) => candidates.of([name])), candidates.of(draft.members())]
    const seconds = (...groups: readonly Candidate[]) =>
      groups.reduce((sum, group) => sum + (group.kind === 'legal' ? group.cost.seconds : Number.NaN), 0)
    expect(seconds(whole)).toBeLessThan(0.8 * seconds(...apart))
    const { groups } = searchPlan('found', draft.graph(), { device: 'h200', ops: draft.kernels, dims })
    expect(groups.flatMap(({ occurrences }) => occurrences)).toEqual([draft.members()])
  })

  it('differ in the smallest sets of steps that cover the same nodes', () => {
    const draft = chain()
    const explained = (...groups: readonly (readonly string[])[]) =>
      explainPlan(draft.graph(), planOf(...groups), draft.kernels, pricing)
    const apart = explained()
    const { differences } = diffReports(apart, explained(['op0', 'op1']))
    expect(differences.map(({ a, b }) => [a.map(({ nodes }) => nodes), b.map(({ nodes }) => nodes)])).toEqual([
      [[['op0'], ['op1']], [['op0', 'op1']]],
    ])
    expect(diffReports(apart, explained()).differences).toEqual([])
    expect(diffReports(explained(['op0', 'op1']), explained(['op1', 'op2'])).differences).toHaveLength(1)
  })
})
