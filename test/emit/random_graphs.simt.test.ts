/**
 * Kernels fused from random graphs, as emitted source on the simt device, against their IR. Kernels share a few translation units; each runs at
 * several sizes.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { HeddleError } from '../../src/errors.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { attrOf, runNodes, shapeOf } from '../../src/fuse/check/compose.js'
import type { DerivedGroup } from '../../src/fuse/check/derived.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { factorsOf } from '../../src/ir/product.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import { isTemplate, type TemplateKernel } from '../../src/ir/template.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { compare } from '../../src/verify/compare.js'
import { type OpClass, tolerance } from '../../src/verify/tolerance.js'
import { type Case, Random } from '../fuse/random/draft.js'
import { planOf } from '../fuse/random/judge.js'
import { drawCase, type Family } from '../fuse/random_graphs.js'
import { listTurn, seedsInTurn } from '../turns.js'
import { type Host, launch, logical, openFiles } from './host.js'
import { inUnits } from './units.js'

/** Graphs of each family that become kernels, a rotating third of them, and the sizes of each. */
const wanted: readonly (readonly [Family, number, readonly Readonly<Record<string, number>>[]])[] = [
  [
    'rows',
    50,
    [
      { b: 1, s: 2, h: 1, d: 3 },
      { b: 2, s: 3, h: 3, d: 7 },
      { b: 3, s: 2, h: 4, d: 64 },
      { b: 1, s: 5, h: 2, d: 33 },
    ],
  ],
  [
    'products',
    26,
    [
      { m: 1, n: 2, k: 3, b: 2 },
      { m: 17, n: 33, k: 40, b: 2 },
      { m: 5, n: 64, k: 64, b: 3 },
      { m: 40, n: 72, k: 8, b: 1 },
    ],
  ],
  [
    'attention',
    12,
    [
      { b: 1, g: 1, r: 1, h: 1, n: 1, s: 1, t: 1, d: 8, e: 8 },
      { b: 2, g: 2, r: 2, h: 4, n: 2, s: 33, t: 17, d: 16, e: 16 },
      { b: 2, g: 2, r: 3, h: 2, n: 2, s: 70, t: 70, d: 64, e: 64 },
    ],
  ],
]
const share = listTurn() === undefined ? 1 : 1 / 3
const units = 8 * share

interface Subject {
  readonly key: string
  readonly drawn: Case
  readonly group: DerivedGroup
  readonly sizes: readonly Readonly<Record<string, number>>[]
}

const subjects: readonly Subject[] = wanted.flatMap(([family, count, sizes]) =>
  subjectsOf(family, Math.ceil(count * share), sizes),
)

/** The first graphs of a family in which a group becomes a kernel, alternating f32 and f16. */
function subjectsOf(family: Family, count: number, sizes: Subject['sizes']): Subject[] {
  const found: Subject[] = []
  for (const seed of seedsInTurn(Math.ceil((40 * count) / share))) {
    if (found.length === count) break
    const drawn = drawCase(family, seed)
    const plan = planOf(drawn)
    const name = `${family.replaceAll(' ', '_')}_${seed}`
    const groups = plan.groups.map((group, at) => ({ ...group, kernel: `${name}_${at}` }))
    const groupIn = (type: 'f32' | 'f16'): DerivedGroup | undefined =>
      groupsOf(drawn, { ...plan, groups, dtypes: [type] }).find(
        ({ nodes, derived: { kernel } }) => nodes.length > 1 && (isTemplate(kernel) || family === 'rows'),
      )
    const wide = groupIn('f32')
    if (wide === undefined) continue
    // Operands that are computed on the way are rounded to storage there, which the IR knows nothing of.
    const type = found.length % 2 === 0 || computes(wide.derived.kernel) ? 'f32' : 'f16'
    const group = type === 'f32' ? wide : groupIn(type)
    if (group !== undefined) found.push({ key: `${group.name}__${type}`, drawn, group, sizes })
  }
  return found
}

/** True if operands of a matmul are computed on load. */
function computes(kernel: Kernel | TemplateKernel): boolean {
  if (!isTemplate(kernel)) return false
  switch (kernel.kind) {
    case 'matmul':
      return factorsOf(kernel).some(({ prologue }) => prologue !== undefined)
    case 'attention':
      return [kernel.query, kernel.key, kernel.value].some(({ element }) => element !== undefined)
    case 'decode attention':
      return false
  }
}

/** Groups that a plan derives; empty if it is refused, which another test covers. */
function groupsOf({ draft }: Case, plan: PlanDecl): readonly DerivedGroup[] {
  try {
    return applyPlan(draft.graph(), plan, draft.kernels).groups
  } catch (error) {
    if (error instanceof HeddleError) return []
    throw error
  }
}

let host: Host

beforeAll(async () => {
  const kernels = subjects.map(({ group }) => group.derived.kernel)
  const rows = kernels.flatMap((kernel) => (isTemplate(kernel) ? [] : [kernel]))
  const templates = kernels.flatMap((kernel) => (isTemplate(kernel) ? [kernel] : []))
  host = await openFiles(inUnits(generate(rows, {}, templates), units))
})
afterAll(() => host?.close())

describe('kernels of random graphs on simt equal their IR', () => {
  it('are hundreds of cases', () => {
    expect(subjects.reduce((sum, { sizes }) => sum + sizes.length, 0)).toBeGreaterThanOrEqual(300 * share)
  })

  it.each(subjects.map((subject) => [subject.key, subject] as const))('%s', async (_, subject) => {
    const complaints: string[] = []
    for (const sizes of subject.sizes) complaints.push(...(await complaintsOf(subject, sizes)))
    expect(complaints).toEqual([])
  })

  it('tell a wrong result from a right one', async () => {
    const [subject] = subjects
    if (subject === undefined) throw new Error('no subject')
    expect(await complaintsOf(subject, subject.sizes[1] ?? {}, 1.01)).not.toEqual([])
  })
})

/** @param factor for expected values, to show that a difference is noticed */
async function complaintsOf(subject: Subject, sizes: Readonly<Record<string, number>>, factor = 1): Promise<string[]> {
  const { group, key } = subject
  const { kernel, inputs, outputs, attrs: bound } = group.derived
  const dims = extentsOf(group, sizes)
  const attrs = Object.fromEntries(Object.entries(bound).map(([name, value]) => [name, attrOf(value, sizes, {})]))
  const contents = new Map(inputs.map(({ param, value }) => [param, subject.drawn.draft.contents.get(value)]))
  const random = new Random(subject.drawn.seed)
  const draw = (tensor: string) => () => {
    const content = contents.get(tensor)
    if (content === 'id') return random.below(3)
    return content === 'length' ? random.below(1 + (sizes.s ?? 1)) : 3 * random.next() - 1.5
  }
  const outcome = await launch(host, kernel, host.entry(key), dims, draw, attrs)
  const expected = isTemplate(kernel)
    ? evaluateTemplate(kernel, outcome.inputs, dims, attrs)
    : evaluateKernel(kernel, outcome.inputs, dims, attrs)
  const given = new Map(inputs.map(({ param, value }) => [value, outcome.inputs[param]?.data ?? []] as const))
  const rule = ruleOf(subject, sizes, given)
  return outcome.outputs.flatMap(({ tensor, dtype, stored }) => {
    const values = Array.from(expected[tensor.name]?.data ?? [], (value) => value * factor)
    const result = compare(logical(tensor, stored, dims), values, tolerance({ dtype, ...rule }))
    const known = outputs.some(({ param }) => param === tensor.name)
    return result.passed && known ? [] : [`${tensor.name} at ${JSON.stringify(sizes)}: ${result.summary}`]
  })
}

function extentsOf({ derived: { kernel, inputs, outputs } }: DerivedGroup, sizes: Readonly<Record<string, number>>) {
  const dims: Record<string, number> = {}
  for (const { param, shape } of [...inputs, ...outputs])
    kernel.tensors
      .find(({ name }) => name === param)
      ?.dims.forEach((dim, axis) => {
        const extent = shape[axis]
        if (extent !== undefined) dims[dim] = evaluateExtent(extent, sizes)
      })
  return dims
}

/** Tolerance class of a kernel, its number of terms, and their size: chained members each contribute their own error. */
function ruleOf(
  { drawn, group, group: { graph, nodes, derived } }: Subject,
  sizes: Readonly<Record<string, number>>,
  given: ReadonlyMap<ValueId, ArrayLike<number>>,
): { readonly class: OpClass; readonly length: number; readonly scale: number } {
  const values = new Map(given)
  for (const node of graph.nodes)
    if (node.kind === 'view' && values.has(node.input)) values.set(node.out, values.get(node.input) ?? [])
  const inside = graph.nodes.filter((node) => node.kind === 'view' || nodes.some((member) => member === node))
  const made = runNodes(graph, inside, { values, dims: sizes, attrs: {}, kernels: drawn.draft.kernels })
  let largest = 1
  for (const node of nodes)
    for (const id of node.kind === 'op' ? Object.values(node.outputs) : [node.out])
      for (const value of Array.from(made.get(id) ?? []))
        if (Number.isFinite(value) && value > -1e20) largest = Math.max(largest, Math.abs(value))
  const scale = largest * group.nodes.length
  const { kernel } = derived
  if (!isTemplate(kernel)) return { class: 'reduction', length: (sizes.h ?? 1) * (sizes.d ?? 1), scale }
  const [product] = nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const inner =
    product === undefined
      ? 1
      : (shapeOf(graph, product.a, sizes)[product.subscripts.a.findIndex((axis) => !product.subscripts.out.includes(axis))] ?? 1)
  return { class: kernel.kind === 'matmul' ? 'matmul' : 'attention', length: inner, scale }
}
