/** Attention groups that end in a chain of elementwise ops: the stored form of a result, and refusals that name two nodes. */
import { type GraphBuilder, type GraphTensor, graph, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { plans } from '../../specs/index.js'
import { add } from '../../specs/ops/add.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { col32FromRows } from '../../specs/ops/int8_col32.js'
import { scale } from '../../specs/ops/scale.js'
import { softmax } from '../../specs/ops/softmax.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { LayoutsByName } from '../../src/fuse/graph/edit.js'
import type { PlannedKernel } from '../../src/fuse/planned_kernel.js'
import { call, index, toFloat } from '../../src/ir/build.js'
import type { AttrValue, Graph } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr } from '../../src/ir/print.js'
import { printTemplate } from '../../src/ir/print_template.js'
import type { AttentionKernel } from '../../src/ir/template.js'
import { mapStmt, rewrite } from '../../src/ir/walk.js'
import type { GraphDecl } from '../../src/lang/graph.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { quantize } from '../../src/std/index.js'
import { refusal as refused } from '../refusal.js'
import { exactly, reordered } from './compare.js'
import { runGraph } from './host.js'

let ops: ReadonlyMap<string, Kernel>
let layouts: LayoutsByName
beforeAll(() => {
  const specs = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map(specs.kernels.map((kernel) => [kernel.name, kernel]))
  layouts = new Map(specs.layouts.map((layout) => [layout.name, layout]))
})

type Nodes = Readonly<Record<string, GraphTensor>>
interface Given {
  readonly rows: GraphTensor
  readonly other: GraphTensor
  readonly bias: GraphTensor
  readonly inverse: AttrValue
}

/** Attention of row-major heads, followed by nodes that see its result as rows; the graph returns the last one and the node `needed`. */
const tailed = (name: string, tail: (g: GraphBuilder, given: Given) => Nodes, needed = '') =>
  graph(`attention_${name}`, {
    inputs: {
      query: tensor('T', 'b s h d'),
      key: tensor('T', 'b s h d'),
      value: tensor('T', 'b s h d'),
      other: tensor('T', 'b*s h*d'),
    },
    weights: { bias: tensor('T', 'h*d') },
    attrs: ['inverse'],
    build: (g, { query, key, value, other }, { bias }, { inverse }) => {
      const scores = g.matmul('b s h d, b t h d -> b h s t', query, key)
      const probabilities = g.apply(softmax, { x: g.view(scores, 'b*h*s s') }).y
      const context = g.matmul('b h s t, b t h d -> b s h d', g.view(probabilities, 'b h s s'), value)
      const behind = tail(g, { rows: g.view(context, 'b*s h*d'), other, bias, inverse })
      const nodes: Nodes = { scores, probabilities, context, ...behind }
      const last = Object.values(nodes).at(-1) ?? context
      return { nodes, outputs: { last, needed: nodes[needed] ?? last } }
    },
  })

const apply = ({ graph: made }: GraphDecl, nodes: readonly string[], rest: Partial<PlanDecl> = {}) =>
  applyPlan(made, { name: 'test', graph: made.name, ...rest, groups: [{ kernel: 'made', occurrences: [nodes] }] }, ops, layouts)

function attentionOf({ templates }: ReturnType<typeof apply>, name = 'made'): AttentionKernel {
  const kernel = templates.get(name)
  if (kernel?.kind !== 'attention') throw new Error('no attention kernel')
  return kernel
}

const core = ['scores', 'probabilities', 'context']
const rounded = (value: string): string => `maximum(minimum(round(${value}), 127.0), -127.0)`
const toInt8 = (g: GraphBuilder, { rows, inverse }: Given): Nodes => ({ rounded: g.apply(quantize, { x: rows }, { inverse }).y })
const scaled = (g: GraphBuilder, { rows, inverse }: Given): Nodes => {
  const half = g.apply(scale, { x: rows }, { factor: 0.5 }).y
  return { half, rounded: g.apply(quantize, { x: half }, { inverse }).y }
}

const added = (g: GraphBuilder, { rows, other }: Given): Nodes => ({ sum: g.apply(add, { x: rows, y: other }).z })
const biased = (g: GraphBuilder, { rows, bias }: Given): Nodes => ({ sum: g.apply(addBias, { x: rows, bias }).y })

describe('stored form of a result', () => {
  it('is the result itself if only its address changes', () => {
    const made = apply(tailed('plain', toInt8), core)
    expect(attentionOf(made).stored).toEqual({ kind: 'local', type: 'f32', name: 'result' })
    expect(printTemplate(attentionOf(made))).not.toContain('stored')
  })

  it('is a chain of elementwise ops on it, with attributes only', () => {
    const made = attentionOf(apply(tailed('chain', scaled), [...core, 'half', 'rounded']))
    expect(printExpr(made.stored)).toBe(rounded('result * factor * inverse'))
    expect(made.tensors.at(-1)).toMatchObject({ access: 'out', dtype: 'i8' })
    expect(made.types).toEqual({ T: ['f32', 'f16', 'bf16'] })
    expect(printTemplate(made)).toContain(`stored ${rounded('result * factor * inverse')}`)
  })

  it('is int8 after merged heads, and after the packing of best-encoder-int8', () => {
    const layer = ['queryHeads', 'keyHeads', 'valueHeads', 'scores', 'scaled', 'masked', 'probabilities', 'context', 'merged']
    const quantised = { values: ['merged'], dynamic: [], weightOnly: [], only: [], across: [], weights: 'row' }
    const padded = attentionOf(apply(encoderLayerGelu, [...layer, 'merged.int8'], { quantised }))
    expect(printExpr(padded.stored)).toBe(rounded('result * inverse'))
    expect(padded.tensors.at(-1)).toMatchObject({ dtype: 'i8', layout: { name: 'row' } })
    expect(padded.tensors.at(-1)?.dims).toHaveLength(4)
    const plan = plans.find((each) => each.name === 'best-encoder-int8' && each.graph === encoderLayerGelu.name)
    if (plan === undefined) throw new Error('no plan')
    const packed = applyPlan(encoderLayerGelu.graph, plan, ops, layouts)
    expect(attentionOf(packed, 'attention_quantize').stored).toEqual(padded.stored)
    const launched = packed.graph.nodes.filter((node) => node.kind !== 'view')
    expect(launched.map((node) => node.kind)).toEqual(new Array(7).fill('op'))
    const node = launched.find((each) => each.kind === 'op' && each.op === 'attention_quantize')
    expect(node).toMatchObject({ attrs: { inverse: { attr: 'merged.inverse' } } })
  })

  it.each([
    ['another tensor', tailed('added', added)],
    ['a weight', tailed('biased', biased)],
  ] as const)('may read %s at its place', (_, decl) => {
    const { graph: fused, templates } = apply(decl, [...core, 'sum'])
    expect(fused.nodes.filter(({ kind }) => kind !== 'view')).toHaveLength(1)
    const dims = { b: 2, s: 3, h: 5, d: 4 }
    const given = Object.fromEntries(
      ['query', 'key', 'value', 'other', 'bias'].map((name, n) => [
        name,
        Float64Array.from({ length: name === 'bias' ? 20 : 120 }, (__, i) => Math.sin(7 * i + n)),
      ]),
    )
    const all = new Map<string, PlannedKernel>([...ops, ...templates])
    const run = (made: Graph) => Array.from(runGraph(made, all, given, dims, {}).last ?? [])
    reordered(run(fused), run(decl.graph))
  })

  it('equals the separate nodes; another scale is noticed', () => {
    const { graph: one } = tailed('chain', scaled)
    const { graph: fused, templates } = apply(tailed('chain', scaled), [...core, 'half', 'rounded'])
    const dims = { b: 2, s: 3, h: 2, d: 4 }
    const size = dims.b * dims.s * dims.h * dims.d
    const given = Object.fromEntries(
      Object.keys(one.inputs).map((name, n) => [name, Float64Array.from({ length: size }, (_, i) => Math.sin(7 * i + n))]),
    )
    const all = new Map<string, PlannedKernel>([...ops, ...templates])
    const run = (made: typeof one, inverse: number) => Array.from(runGraph(made, all, given, dims, { inverse }).last ?? [])
    const expected = run(one, 100)
    expect(new Set(expected).size).toBeGreaterThan(10)
    exactly(run(fused, 100), expected)
    expect(() => exactly(run(fused, 110), expected)).toThrow()
  })
})

describe('a group is refused', () => {
  function refusal(decl: GraphDecl, nodes: readonly string[]): HeddleError {
    try {
      apply(decl, nodes)
    } catch (error) {
      if (error instanceof HeddleError) return error
      throw error
    }
    throw new Error('the plan was accepted')
  }

  const reduced = (g: GraphBuilder, { rows }: Given): Nodes => ({ soft: g.apply(softmax, { x: rows }).y })
  const col32 = (g: GraphBuilder, { rows }: Given): Nodes => ({ panels: g.apply(col32FromRows, { x: rows }).y })
  const doubled = (g: GraphBuilder, { rows }: Given): Nodes => {
    const half = g.apply(scale, { x: rows }, { factor: 0.5 }).y
    return { half, sum: g.apply(add, { x: half, y: rows }).z }
  }

  it.each([
    ['where an op behind it reduces a row', tailed('reduced', reduced), ['soft'], 'depends on another result'],
    ['where it would be stored in panels', tailed('col32', col32), ['panels'], 'got layout col32'],
    ['where the result itself is needed', tailed('shared', toInt8, 'context'), ['rounded'], 'context is needed outside'],
  ] as const)('%s', (_, decl, behind, words) => {
    const error = refusal(decl, [...core, ...behind])
    expect(error.code).toBe('plan.illegal')
    expect(error.message).toContain('context')
    expect(error.message).toContain(behind[0])
    expect(error.message).toContain(words)
  })

  it('if ops after the packing change elements by their index', () => {
    const plan = plans.find((each) => each.name === 'best-encoder-int8' && each.graph === encoderLayerGelu.name)
    const kernel = ops.get(quantize.name)
    if (plan === undefined || kernel === undefined) throw new Error('no plan')
    const body = kernel.body.map((stmt) => {
      if (stmt.kind !== 'storeRow') return stmt
      const place = toFloat(index(stmt.index))
      return mapStmt(stmt, (expr) => rewrite(expr, (node) => (node.kind === 'load' ? call('mul', node, place) : node)))
    })
    const other = new Map([...ops, [quantize.name, { ...kernel, body }]])
    expect(refused(() => applyPlan(encoderLayerGelu.graph, plan, other, layouts))).toMatchObject({
      code: 'plan.illegal',
      message: expect.stringContaining('a stored element may depend only on itself and attributes'),
    })
  })

  it('if a part of the chain is needed, but not if the chain forks and joins', () => {
    const error = refusal(tailed('halved', scaled, 'half'), [...core, 'half', 'rounded'])
    expect(error.message).toContain('nodes half and rounded cannot be one kernel: half is needed outside')
    const made = attentionOf(apply(tailed('doubled', doubled), [...core, 'half', 'sum']))
    expect(printExpr(made.stored)).toBe('result * factor + result')
  })
})
