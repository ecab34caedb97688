/** The verifiers of graphs and templates: shipped ones pass, and each rule has a fault that it finds. */
import { describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { plans } from '../../specs/index.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import { index, local } from '../../src/ir/build.js'
import type { Graph, GraphNode } from '../../src/ir/graph.js'
import type { AttentionKernel, TemplateKernel } from '../../src/ir/template.js'
import { verifyGraph } from '../../src/ir/verify_graph.js'
import { verifyTemplate } from '../../src/ir/verify_template.js'

const { graph } = encoderLayerGelu
const { kernels, standard, layouts } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
const ops = new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel]))

const edited = (edit: (node: GraphNode) => GraphNode): Graph => ({ ...graph, nodes: graph.nodes.map(edit) })
const at = (name: string, edit: (node: GraphNode) => GraphNode) => edited((node) => (node.name === name ? edit(node) : node))

describe('a graph', () => {
  it('as declared passes', () => verifyGraph(graph, 'nothing', ops))

  it.each<[string, Graph, string]>([
    ['nodes in another order', { ...graph, nodes: graph.nodes.toReversed() }, 'is read before it is defined'],
    ['a value made twice', { ...graph, nodes: [...graph.nodes, ...graph.nodes.slice(0, 1)] }, 'another node has its name'],
    ['an output nobody makes', { ...graph, outputs: { y: graph.values.length } }, 'output y is never defined'],
    ['a product of other axes', at('fc1', (node) => (node.kind === 'matmul' ? { ...node, b: node.a } : node)), 'has extents'],
    [
      'an input that is not bound',
      at('queryBias', (node) => (node.kind === 'op' ? { ...node, inputs: {} } : node)),
      'nothing is bound to',
    ],
    [
      'a tensor of another rank',
      at('queryBias', (node) => (node.kind === 'op' ? { ...node, inputs: { ...node.inputs, bias: node.inputs.x ?? 0 } } : node)),
      'its value',
    ],
    [
      'a view of another size',
      edited((node) => (node.kind === 'view' ? { ...node, input: graph.weights.queryBias ?? 0 } : node)),
      'a view from',
    ],
  ])('with %s is refused, naming the pass', (_, wrong, problem) => {
    expect(() => verifyGraph(wrong, 'a pass', ops)).toThrow(problem)
    expect(() => verifyGraph(wrong, 'a pass', ops)).toThrow('internal: after a pass: graph encoder_layer_gelu')
  })
})

const plan = plans.find(({ name, graph: of }) => name === 'best-encoder' && of === graph.name)
const templates: readonly TemplateKernel[] = [
  ...(plan === undefined
    ? []
    : applyPlan(graph, plan, ops, new Map(layouts.map((layout) => [layout.name, layout]))).templates.values()),
]
const find = <K extends TemplateKernel['kind']>(kind: K) => {
  const found = templates.find((kernel): kernel is Extract<TemplateKernel, { kind: K }> => kernel.kind === kind)
  if (found === undefined) throw new Error(`no ${kind}`)
  return found
}

describe('a template', () => {
  it('as derived passes', () => {
    expect(templates.length).toBeGreaterThan(3)
    for (const kernel of templates) verifyTemplate(kernel, 'nothing')
  })

  it.each<[string, Partial<AttentionKernel>, string]>([
    ['a score of another key', { score: index('c') }, 'score reads c'],
    ['a range that depends on the key', { range: { lower: index('j'), upper: index('i') } }, 'range.lower reads j'],
    ['a denominator of a product', { denominator: local('raw') }, 'denominator reads raw'],
    ['a result that is a score', { stored: local('raw') }, 'stored reads raw'],
    ['a key at the place of a query', { key: { ...find('attention').key, indices: [index('i')] } }, 'key reads i'],
  ])('of attention with %s is refused', (_, wrong, problem) => {
    expect(() => verifyTemplate({ ...find('attention'), ...wrong }, 'a pass')).toThrow(problem)
  })

  it('of a product with axes exchanged is refused', () => {
    const kernel = find('matmul')
    expect(() => verifyTemplate({ ...kernel, m: kernel.k }, 'a pass')).toThrow('is not over')
    expect(() => verifyTemplate({ ...kernel, m: kernel.n, n: kernel.m }, 'a pass')).toThrow('does not have the axes')
    expect(() => verifyTemplate({ ...kernel, k: kernel.n }, 'a pass')).toThrow('does not have the axes')
  })
})
