/** Attention that stores values of rows of its softmax: their expressions, the comparison with the bodies, and refusals. */
import type { GraphDecl } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { readDeclarations, readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { checkDerived, type DerivedGroup } from '../../src/fuse/check/derived.js'
import { call, f32 } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import { type AttentionKernel, type DecodeAttentionKernel, isTemplate, type RowValue } from '../../src/ir/template.js'
import { graphOf } from '../../src/search/resolve.js'
import { lowest, paired } from '../projects/row_values/specs/index.js'
import { refusal } from '../refusal.js'

const specs = 'test/projects/row_values/specs'
let ops: ReadonlyMap<string, Kernel>
let declared: Awaited<ReturnType<typeof readDeclarations>>
beforeAll(async () => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: [specs] }).kernels.map((kernel) => [kernel.name, kernel]))
  declared = await readDeclarations(process.cwd(), specs)
})

function groupOf(name: string): DerivedGroup {
  const plan = declared.plans.find((each) => each.graph === name)
  if (plan === undefined) throw new Error(`no plan for ${name}`)
  const [group] = applyPlan(graphOf(plan, declared.graphs), plan, ops).groups
  if (group === undefined || !('derived' in group)) throw new Error('no group')
  return group
}

function attentionOf({ derived }: DerivedGroup): AttentionKernel | DecodeAttentionKernel {
  const { kernel } = derived
  if (!isTemplate(kernel) || kernel.kind === 'matmul') throw new Error('no attention kernel')
  return kernel
}

/** The group with other values of rows. */
function changed(group: DerivedGroup, change: (row: RowValue) => RowValue): DerivedGroup {
  const kernel = attentionOf(group)
  return { ...group, derived: { ...group.derived, kernel: { ...kernel, perRow: (kernel.perRow ?? []).map(change) } } }
}

const rows: readonly (readonly [string, readonly string[]])[] = [
  ['two', ['log(total) + top']],
  ['other', ['top + log(total)']],
  ['parts', ['top', 'total', 'log(total) + top']],
  ['windowed', ['top + log(total)']],
]

describe('values of rows are stored beside the result', () => {
  it.each(rows)('%s', (name, wanted) => {
    const group = groupOf(name)
    expect(attentionOf(group).perRow?.map(({ value }) => printExpr(value))).toEqual(wanted)
    checkDerived(group, ops)
  })

  it.each(rows)('%s with another value, or at another place, is found', (name) => {
    const group = groupOf(name)
    const wrong = changed(group, (row) => ({ ...row, value: call('add', row.value, f32(0.25)) }))
    expect(() => checkDerived(wrong, ops)).toThrow('would give another result')
    const moved = changed(group, (row) => ({
      ...row,
      indices: row.indices.map((at, n) => (n === 2 ? call('mul', at, { kind: 'const', type: 'i32', value: 0 }) : at)),
    }))
    expect(() => checkDerived(moved, ops)).toThrow('would give another result')
  })
})

describe('values that the sums of a softmax do not give are refused', () => {
  const groups = [{ kernel: 'made', occurrences: [['raw', 'low', 'o', 'l', 'y']] }]
  const refused = (decl: GraphDecl): string =>
    refusal(() => applyPlan(decl.graph, { name: 'one', graph: decl.name, groups }, ops)).message

  it('the smallest score', () => {
    expect(refused(lowest)).toContain('the maximum is not that of the exponentiated scores')
  })

  it('the weights themselves', () => {
    expect(refused(paired)).toContain('o is needed outside, but attention keeps it on chip')
  })
})
