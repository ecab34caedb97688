/**
 * Attention variants requested by users of other tools, in graphs that share nothing with the shipped ones. Each becomes one kernel, whose
 * derivation checks it against the bodies of its nodes.
 */

import { type GraphDecl, graph, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { HeddleError } from '../../src/errors.js'
import { readDeclarations, readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan, type PlannedGraph } from '../../src/fuse/apply.js'
import { runNodes } from '../../src/fuse/check/compose.js'
import { checkDerived } from '../../src/fuse/check/derived.js'
import { drawValues, randomFrom } from '../../src/fuse/check/inputs.js'
import { maskedRules } from '../../src/fuse/check/masked.js'
import type { DType } from '../../src/ir/dtype.js'
import { outputsOf } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import type { AttentionKernel, DecodeAttentionKernel } from '../../src/ir/template.js'
import { graphOf } from '../../src/search/resolve.js'
import { plans } from '../projects/attention/specs/index.js'
import * as own from '../projects/attention/specs/ops.js'
import { refusal } from '../refusal.js'

const specs = 'test/projects/attention/specs'
let ops: ReadonlyMap<string, Kernel>
let declared: Awaited<ReturnType<typeof readDeclarations>>
beforeAll(async () => {
  const { kernels } = readSpecsOrThrow({ root: process.cwd(), specs: [specs] })
  ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
  declared = await readDeclarations(process.cwd(), specs)
})

function planned(name: string): PlannedGraph {
  const plan = declared.plans.find((each) => each.name === `one_kernel_attend_${name}`)
  if (plan === undefined) throw new Error(`no plan for ${name}`)
  return applyPlan(graphOf(plan, declared.graphs), plan, ops)
}

function attentionOf({ templates }: PlannedGraph): AttentionKernel | DecodeAttentionKernel {
  const [kernel] = templates.values()
  if (kernel === undefined || kernel.kind === 'matmul') throw new Error('no attention kernel')
  return kernel
}

const names = plans.map(({ name }) => name.replace('one_kernel_attend_', ''))

describe('each graph is one kernel, with the same meaning as its nodes', () => {
  it.each(names)('%s', (name) => {
    const made = planned(name)
    expect(made.graph.nodes.filter(({ kind }) => kind !== 'view')).toHaveLength(1)
    for (const group of made.groups) checkDerived(group, ops)
  })
})

it('queries without keys give zeros where the nodes of a group run separately, and only there', () => {
  const declaration = planned('ragged').groups[0]?.graph
  if (declaration === undefined) throw new Error('no group')
  const dims = { b: 2, s: 3, h: 2, d: 2, e: 3 }
  const drawn = drawValues(declaration, declaration.nodes, ops, dims, randomFrom(1))
  const values = new Map(drawn).set(declaration.inputs.lengths ?? -1, Float64Array.of(0, 3))
  const resultOf = (groups: readonly (readonly string[])[]): number[] => {
    const revise = maskedRules(declaration, groups, ops)
    const found = runNodes(declaration, declaration.nodes, { values, dims, attrs: {}, kernels: ops, revise })
    return Array.from(found.get(Object.values(declaration.outputs)[0] ?? -1) ?? [])
  }
  const group = declaration.nodes.flatMap((node) => (node.kind === 'view' ? [] : [node.name]))
  const [ruled, bare] = [resultOf([group]), resultOf([])]
  const first = bare.length / 2
  expect(ruled.slice(0, first)).toEqual(new Array(first).fill(0))
  expect(bare.slice(0, first).filter((each) => each === 0)).toEqual([])
  expect(ruled.slice(first)).toEqual(bare.slice(first))
})

describe('properties inferred from the bodies', () => {
  it.each([
    ['causal', '0', 'i + 1'],
    ['causal_added', '0', 'i + 1'],
    ['window', 'i + 1 - size', 'i + 1'],
    ['dilated', 'i - 5', 'i + 6'],
    ['ragged', '0', 'minimum(lengths[b], i + 1)'],
    ['prefix', '0', 'maximum(i + 1, lengths[b])'],
  ])('%s attends keys from %s to %s', (name, lower, upper) => {
    const { range } = attentionOf(planned(name))
    expect([printExpr(range.lower), printExpr(range.upper)]).toEqual([lower, upper])
  })

  it('a sink joins the denominator', () => {
    expect(printExpr(attentionOf(planned('sink')).denominator)).toContain('exp(sink[h] - ')
    expect(printExpr(attentionOf(planned('off_by_one')).denominator)).toBe('total + exp(-top)')
    expect(printExpr(attentionOf(planned('plain')).denominator)).toBe('total')
  })

  it('heads that share keys are read in place', () => {
    const { key } = attentionOf(planned('grouped'))
    expect(key.indices.map(printExpr)).toContain('h idiv (h_extent idiv g_extent)')
  })
})

describe('a kernel is for the storage types that all of its members are for', () => {
  const typesWith = (limits: Readonly<Record<string, readonly DType[]>>): unknown => {
    const narrowed = [...ops].map(
      ([name, kernel]) => [name, { ...kernel, types: { T: limits[name] ?? kernel.types.T ?? [] } }] as const,
    )
    const plan = declared.plans.find((each) => each.name === 'one_kernel_attend_gated')
    if (plan === undefined) throw new Error('no plan')
    return attentionOf(applyPlan(graphOf(plan, declared.graphs), plan, new Map(narrowed))).types
  }

  it('and for all of them if none is limited', () => {
    expect(typesWith({})).toEqual({ T: ['f32', 'f16', 'bf16'] })
  })

  it.each(['scaled', 'weigh'])('%s', (name) => {
    expect(typesWith({ [name]: ['f32', 'f16'] })).toEqual({ T: ['f32', 'f16'] })
  })

  it('or is refused where there is none', () => {
    expect(() => typesWith({ scaled: ['f32'], weigh: ['bf16'] })).toThrow('they have no storage type in common')
  })
})

/** Changes of a kernel that a rule of derivation could get wrong. */
type Change = (kernel: AttentionKernel) => Partial<AttentionKernel>
const one = { kind: 'const', type: 'i32', value: 1 } as const
const planted: readonly (readonly [string, string, Change])[] = [
  [
    'a range that is one key too long',
    'causal',
    ({ range }) => ({ range: { ...range, upper: { kind: 'call', type: 'i32', fn: 'add', args: [range.upper, one] } } }),
  ],
  ['a range without a lower end', 'window', ({ range }) => ({ range: { ...range, lower: { ...one, value: 0 } } })],
  ['a sink that is dropped', 'sink', () => ({ denominator: { kind: 'local', type: 'f32', name: 'total' } })],
  ['a scale that is dropped', 'plain', () => ({ score: { kind: 'local', type: 'f32', name: 'raw' } })],
  ['keys for values', 'plain', ({ key }) => ({ value: key })],
  [
    'heads modulo for heads over the number that share',
    'grouped',
    ({ key }) => ({
      key: {
        ...key,
        indices: key.indices.map((at) => (at.kind === 'call' && at.fn === 'idiv' ? { ...at, fn: 'mod' as const } : at)),
      },
    }),
  ],
  [
    'a query that is not rotated',
    'rotated',
    ({ query: { element, ...row }, key }) => ({ query: { ...row, tensor: row.tensor, indices: key.indices } }),
  ],
  ['a gate that is dropped', 'gated', () => ({ stored: { kind: 'local', type: 'f32', name: 'result' } })],
]

describe('planted faults are refused', () => {
  it.each(planted)('%s', (_, name, change) => {
    const { groups } = planned(name)
    for (const group of groups) {
      const { kernel } = group.derived
      if (!('kind' in kernel) || kernel.kind !== 'attention') throw new Error('no attention kernel')
      const wrong = { ...group, derived: { ...group.derived, kernel: { ...kernel, ...change(kernel) } } }
      expect(() => checkDerived(wrong, ops)).toThrow(HeddleError)
    }
  })
})

describe('a look-alike of a softmax is refused with the actual reason', () => {
  it.each([
    ['squares of weights', 'weigh_squared', 'exponentials times another factor that differs by key'],
    [
      'scores as weights',
      'scaled',
      'a kernel holds one matmul, or two with a softmax between them; nothing between these combines',
    ],
  ])('%s', (_, op, reason) => {
    const plan = declared.plans.find(({ name }) => name === 'one_kernel_attend_off_by_one')
    if (plan === undefined) throw new Error('no plan')
    const graph = graphOf(plan, declared.graphs)
    const nodes = graph.nodes.map((node) =>
      node.kind === 'op' && node.name === 'weights' && op !== 'scaled' ? { ...node, op } : node,
    )
    const left = op === 'scaled' ? ['scores', 'scaled', 'context'] : undefined
    const source = op === 'scaled' ? bypassed(graph) : { ...graph, nodes }
    const groups = [
      { kernel: 'made', occurrences: [left ?? graph.nodes.flatMap(({ kind, name }) => (kind === 'view' ? [] : [name]))] },
    ]
    expect(() => applyPlan(source, { ...plan, groups }, ops)).toThrow(reason)
  })
})

describe('attention that fits no main loop is refused with the reason of each', () => {
  const inputs = { query: tensor('T', 'h d b s'), key: tensor('T', 't b d h'), value: tensor('T', 'e t h b') }
  const refused = (decl: GraphDecl): string =>
    refusal(() =>
      applyPlan(decl.graph, { name: 'one', graph: decl.name, groups: [{ kernel: 'made', occurrences: [decl.nodes] }] }, ops),
    ).message
  it('a result with elements apart in memory, of a past in another order', () => {
    const decl = graph('apart', {
      inputs,
      weights: {},
      build: (g, x) => {
        const scores = g.matmul('h d b s, t b d h -> b h s t', x.query, x.key)
        const weights = g.apply(own.weigh, { logits: g.view(scores, 'b*h*s t') }).weights
        const context = g.matmul('b h s t, e t h b -> e s h b', g.view(weights, 'b h s t'), x.value)
        return { nodes: { scores, weights, context }, outputs: { context } }
      },
    })
    const message = refused(decl)
    expect(message).toContain(
      'scores reads the past as "t b d h": attention reads the past in rows along d, one per position, so store it with d last, as "t b h d". The other main loop does not run it either',
    )
    expect(message).toContain('node context cannot be in the kernel: the elements of a result are not contiguous')
  })
})

it('loops inside of loops of a row that is computed are gone through once', () => {
  const { templates } = planned('layer_normed')
  const text = generate([], {}, [...templates.values()]).get('cuda/fused_attend_layer_normed__f32.cu') ?? ''
  const folds = text.split('\n').map((line) => line.split('heddle::fold<').length - 1)
  expect(Math.max(...folds)).toBe(1)
  expect(folds.filter((count) => count === 1)).toHaveLength(4)
})

/** The graph whose second matmul reads the scaled scores themselves. */
function bypassed(graph: PlannedGraph['graph']): PlannedGraph['graph'] {
  const scaled = graph.nodes.find((node) => node.kind === 'op' && node.name === 'scaled')
  const id = scaled?.kind === 'op' ? Object.values(scaled.outputs)[0] : undefined
  if (id === undefined) throw new Error('no scaled scores')
  const removed = graph.nodes.filter(({ name }) => name === 'weights').flatMap(outputsOf)
  const nodes = graph.nodes.flatMap((node) => {
    if (node.name === 'weights' || (node.kind === 'view' && removed.includes(node.input))) return []
    return node.kind === 'matmul' && node.name === 'context' ? [{ ...node, a: id }] : [node]
  })
  return { ...graph, nodes }
}
