/**
 * Layers of the LLaMA family under `best-llama`: they compute the same as the graphs, with heads that share keys, biases, norms of heads and
 * windows; queries, keys and values are parts of one matmul; and every plan launches the expected number of kernels per layer.
 */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, it } from 'vitest'
import { type LlamaFlags, llamaLayer } from '../../specs/graphs/llama_layer.js'
import { plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived } from '../../src/fuse/check/derived.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import { prepareGraph } from '../../src/fuse/passes.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import type { AttrValue, Graph } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import { normal, random } from '../../src/verify/random.js'
import { refusal } from '../refusal.js'
import { exactly, reordered } from './compare.js'
import { runGraph, shapeOf } from './host.js'

type Form = 'step' | 'prompt'
type Values = Readonly<Record<string, ArrayLike<number>>>

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map([...specs.kernels, ...specs.standard].map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

const plain: LlamaFlags = { bias: 'none', norm: false, window: false, caches: 'float' }
/** Qwen2 with a window, Qwen3, and everything at once. */
const families: readonly LlamaFlags[] = [
  { ...plain, bias: 'heads', window: true },
  { ...plain, norm: true },
  { ...plain, bias: 'all', norm: true, window: true },
  { ...plain, caches: 'int8' },
  { bias: 'heads', norm: true, window: true, caches: 'int8' },
]

// Three heads share keys, and a fourth of a head is not rotated.
const dims = { r: 3, u: 7, n: 5, h: 6, g: 2, d: 4, i: 5, p: 9, e: 1, t: 6, b: 2, s: 4 }
const attrs = { scale: 0.6, eps: 1e-6, window: 3 }

/** Rows at separate positions; and runs of three tokens and one after the cached part of their rows, with the other rows unused. */
const integers: Readonly<Record<Form, Values>> = {
  step: { places: [0, 6, 3] },
  prompt: {
    ...{ places: [2, 3, 4, 0, 0, 0], sequences: [0, 0, 0, 1, -1, -1], positions: [0, 1, 2, 0, 0, 0] },
    ...{ starts: [0, 3], lengths: [3, 1], first: [2, 0], slots: [2, 0], writers: [1, -1, 0] },
  },
}

function inputsOf(form: Form, { name, inputs, weights, ...graph }: Graph): Values {
  const next = random(name)
  const drawn = Object.entries({ ...inputs, ...weights }).map(([key, id]) => {
    const size = shapeOf({ name, inputs, weights, ...graph }, id, dims).reduce((a, b) => a * b, 1)
    return [key, integers[form][key] ?? Float64Array.from({ length: size }, () => normal(next) / 2)] as const
  })
  return Object.fromEntries(drawn)
}

/** A graph whose weights are stacked from the given ones, in the order of `order`. */
function run(
  planned: Graph,
  kernels: ReadonlyMap<string, PlannedKernel>,
  given: Values,
  order = (parts: readonly string[]) => parts,
): Values {
  const stacked = Object.entries(planned.stacked ?? {}).map(
    ([name, parts]) => [name, order(parts).flatMap((part) => Array.from(given[part] ?? []))] as const,
  )
  return runGraph(planned, kernels, given, dims, attrs, { ...given, ...Object.fromEntries(stacked) })
}

const planOf = (form: Form, flags: LlamaFlags) => {
  const layer = llamaLayer(form, flags)
  const found = plans.find(({ name, graph }) => name === 'best-llama' && graph === layer.name)
  if (found === undefined) throw new Error(`best-llama has no plan for ${layer.name}`)
  return { graph: layer.graph, plan: found }
}

/** The rows with tokens; the contents of others are never read. */
const tokens = { step: dims.r, prompt: 4 } as const

describe('best-llama computes the same as the graph', () => {
  const cases = families.flatMap((flags) => (['step', 'prompt'] as const).map((form) => [form, flags] as const))
  it.each(cases)('%s of %o', (form, flags) => {
    const { graph, plan } = planOf(form, flags)
    const made = applyPlan(graph, plan, ops, layouts)
    const given = inputsOf(form, graph)
    const found = run(made.graph, new Map<string, PlannedKernel>([...ops, ...made.kernels, ...made.templates]), given)
    const wanted = run(graph, ops, given)
    const rows = (hidden: ArrayLike<number> = []) => Array.from(hidden).slice(0, tokens[form] * dims.n)
    reordered(rows(found.hidden), rows(wanted.hidden))
    const caches = Object.keys(graph.outputs).filter((name) => name !== 'hidden')
    expect(caches).toEqual(['keys', 'values', ...(flags.caches === 'int8' ? ['keySteps', 'valueSteps'] : [])])
    for (const name of caches) {
      const same = name === 'values' || name === 'valueSteps' ? exactly : reordered
      same(Array.from(found[name] ?? []), Array.from(wanted[name] ?? []))
    }
  })
})

it('a step reads int8 caches in place, each row times its own scale', () => {
  const { graph, plan } = planOf('step', { ...plain, caches: 'int8' })
  const derived = applyPlan(graph, plan, ops, layouts).templates.get('past_attention_int8')
  if (derived?.kind !== 'decode attention') throw new Error(`derived as ${derived?.kind}`)
  const steps = [derived.key.scale, derived.value.scale].map((scale) => scale?.kind === 'load' && scale.indices.map(printExpr))
  expect(steps).toEqual([
    ['owner', 'h', 'j'],
    ['owner', 'h', 'j'],
  ])
})

describe('parts of one matmul with different numbers of columns', () => {
  const prepared = () => {
    const { graph, plan } = planOf('step', { ...plain, bias: 'heads' })
    const given = inputsOf('step', graph)
    return { stacked: prepareGraph(graph, plan, ops, layouts), given, wanted: run(graph, ops, given).hidden ?? [] }
  }
  const differs = (found: ArrayLike<number> | undefined, wanted: ArrayLike<number>) =>
    expect(() => exactly(Array.from(found ?? []), Array.from(wanted))).toThrow()

  it('equal the separate matmuls, and differ if weights are in another order', () => {
    const { stacked, given, wanted } = prepared()
    expect(stacked.stacked).toEqual({
      'qkv.weight': ['queryWeight', 'keyWeight', 'valueWeight'],
      'qkvBias.bias': ['queryBias', 'keyBias', 'valueBias'],
    })
    exactly(Array.from(run(stacked, ops, given).hidden ?? []), Array.from(wanted))
    differs(run(stacked, ops, given, ([query = '', key = '', value = '']) => [query, value, key]).hidden, wanted)
  })

  it.each([
    ['keyBias', { dim: 'g' }],
    ['valueBias', { dim: 'h' }],
    ['queryBias', 1],
  ] satisfies readonly (readonly [string, AttrValue])[])('differ if %s starts elsewhere', (part, first) => {
    const { stacked, given, wanted } = prepared()
    const nodes = stacked.nodes.map((node) => (node.name === part && node.kind === 'op' ? { ...node, attrs: { first } } : node))
    differs(run({ ...stacked, nodes }, ops, given).hidden, wanted)
  })

  it('are checked against their bodies in the kernel that reads them', () => {
    const { graph, plan } = planOf('step', { ...plain, norm: true })
    const group = applyPlan(graph, plan, ops, layouts).groups.find(({ name }) => name === 'past_attention_of_norms')
    if (group === undefined) throw new Error('no group')
    expect(() => checkDerived(group, ops)).not.toThrow()
    const { derived } = group
    const wrong = Object.fromEntries(
      Object.entries(derived.attrs).map(([name, value]): [string, AttrValue] => [
        name,
        typeof value === 'object' && 'dim' in value && value.dim === '(g+h)' ? { dim: 'h' } : value,
      ]),
    )
    const { code } = refusal(() => checkDerived({ ...group, derived: { ...derived, attrs: wrong } }, ops))
    expect(code).toBe('plan.meaning')
  })
})

describe('launches of a layer', () => {
  const { plans: planned } = JSON.parse(readFileSync('generated/manifest.json', 'utf8')) as {
    plans: Record<string, Record<string, Graph>>
  }
  const launches = (plan: string, form: Form, flags: LlamaFlags) =>
    planned[plan]?.[llamaLayer(form, flags).name]?.nodes.filter(({ kind }) => kind !== 'view').length
  const biased: LlamaFlags = { ...plain, bias: 'heads' }
  const normed: LlamaFlags = { ...plain, norm: true }

  it.each([
    // A step of LLaMA, of Qwen2 and of Qwen3; a prompt of each.
    ['best-llama', [5, 5, 5], [9, 9, 10]],
    ['best-llama-int8w', [5, 5, 5], [9, 9, 10]],
    ['best-llama-w8a8', [9, 9, 9], [11, 11, 12]],
    ['fasterllama-v1', [18, 18, 20], [21, 21, 23]],
  ] as const)('%s', (plan, steps, prompts) => {
    const counts = (form: Form) => [plain, biased, normed].map((flags) => launches(plan, form, flags))
    expect([counts('step'), counts('prompt')]).toEqual([steps, prompts])
  })

  // Casts of float32 caches are parts of other kernels.
  it.each([
    ['best-llama', [undefined, undefined, undefined], [undefined, undefined, undefined]],
    ['fasterllama-v1', [18, 18, 20], [21, 21, 23]],
  ] as const)('%s over float32 caches', (plan, steps, prompts) => {
    const counts = (form: Form) => [plain, biased, normed].map((flags) => launches(plan, form, { ...flags, caches: 'f32' }))
    expect([counts('step'), counts('prompt')]).toEqual([steps, prompts])
  })

  // The append to int8 caches is a separate kernel in a step, and replaces the float one in a prompt.
  it.each([
    ['best-llama', [6, 8], [9, 10]],
    ['best-llama-int8w', [6, 8], [9, 10]],
    ['best-llama-w8a8', [10, 12], [11, 12]],
    ['fasterllama-v1', [undefined, undefined], [undefined, undefined]],
  ] as const)('%s over int8 caches', (plan, steps, prompts) => {
    const counts = (form: Form) => [plain, normed].map((flags) => launches(plan, form, { ...flags, caches: 'int8' }))
    expect([counts('step'), counts('prompt')]).toEqual([steps, prompts])
  })
})
