/** Groups for the matmul library: supported epilogues, their results, and refusals that name two nodes and the reason. */
import { type GraphTensor, graph, op, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { gelu, geluTanh, relu, tanh } from '../../specs/ops/activations.js'
import { add } from '../../specs/ops/add.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { castF32 } from '../../specs/ops/cast_f32.js'
import { scale } from '../../specs/ops/scale.js'
import { costDevice } from '../../src/cost/device.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { Graph, NodeOf } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rewrite } from '../../src/ir/walk.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { planGroups } from '../../src/search/auto.js'
import { Candidates } from '../../src/search/candidates.js'
import { exactly } from './compare.js'
import { runGraph } from './host.js'

/** `add_bias` with an element for each row. */
const rowBias = op('row_bias', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16', 'bf16'] },
  inputs: { x: tensor('T', 'm n'), bias: tensor('T', 'm') },
  outputs: { y: tensor('T', 'm n') },
  body:
    ({ x, bias }) =>
    (m, c) => ({ y: x(m, c) + bias(m) }),
})

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  const known = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels.map(
    (kernel) => [kernel.name, kernel] as const,
  )
  ops = new Map(known)
  const biased = ops.get('add_bias')
  if (biased === undefined) throw new Error('no add_bias')
  ops = new Map([...known, ['row_bias', overRows(biased)]])
})

function overRows(kernel: Kernel): Kernel {
  const tensors = kernel.tensors.map((param) =>
    param.name === 'bias' ? { ...param, dims: ['m'], layout: { ...param.layout, dims: ['m'] } } : param,
  )
  const [row] = kernel.rows
  const body = kernel.body.map((stmt) =>
    stmt.kind === 'storeRow' && row !== undefined
      ? {
          ...stmt,
          value: rewrite(stmt.value, (expr) =>
            expr.kind === 'load' && expr.tensor === 'bias'
              ? { ...expr, indices: [{ kind: 'index', type: 'i32', name: row.index }] }
              : expr,
          ),
        }
      : stmt,
  )
  return { ...kernel, name: 'row_bias', tensors, body }
}

type Behind = 'bias' | 'residual' | 'relu' | 'gelu_tanh' | 'gelu' | 'tanh' | 'scale' | 'row bias' | 'cast' | 'other bias'

/** A matmul with a chain of ops after it, named `product`, `0`, `1`, ... @param kept a node whose value the graph returns too */
const chain = (behind: readonly Behind[], kept?: string) =>
  graph('chain', {
    inputs: { x: tensor('T', 'm k'), residual: tensor('T', 'm n'), rows: tensor('T', 'm') },
    weights: { weight: tensor('T', 'n k'), bias: tensor('T', 'n'), other: tensor('T', 'n') },
    build: (g, { x, residual, rows }, w) => {
      const nodes: Record<string, GraphTensor> = { product: g.matmul('m k, n k -> m n', x, w.weight) }
      const apply = (what: Behind, y: GraphTensor): GraphTensor => {
        switch (what) {
          case 'bias':
            return g.apply(addBias, { x: y, bias: w.bias }).y
          case 'other bias':
            return g.apply(addBias, { x: y, bias: w.other }).y
          case 'row bias':
            return g.apply(rowBias, { x: y, bias: rows }).y
          case 'residual':
            return g.apply(add, { x: y, y: residual }).z
          case 'relu':
            return g.apply(relu, { x: y }).y
          case 'gelu_tanh':
            return g.apply(geluTanh, { x: y }).y
          case 'gelu':
            return g.apply(gelu, { x: y }).y
          case 'tanh':
            return g.apply(tanh, { x: y }).y
          case 'scale':
            return g.apply(scale, { x: y }, { factor: 2 }).y
          case 'cast':
            return g.apply(castF32, { x: y }).y
        }
      }
      let last = nodes.product
      for (const [i, what] of behind.entries()) {
        if (last !== undefined) last = apply(what, last)
        if (last !== undefined) nodes[i] = last
      }
      const outputs: Record<string, GraphTensor> = { y: last ?? x, ...(kept === undefined ? {} : { kept: nodes[kept] ?? x }) }
      return { nodes, outputs }
    },
  }).graph

const planOf = (given: Graph, rest: Partial<PlanDecl> = {}): PlanDecl => {
  const names = given.nodes.map(({ name }) => name)
  return { name: 'test', graph: 'chain', groups: [{ kernel: 'whole', occurrences: [names] }], library: ['whole'], ...rest }
}
const apply = (given: Graph, rest: Partial<PlanDecl> = {}) => applyPlan(given, planOf(given, rest), ops)

const dims = { m: 5, n: 7, k: 6 }
const small = (length: number, seed: number) => Float64Array.from({ length }, (_, i) => ((i * 7 + seed * 5) % 11) - 5)
const inputs = {
  x: small(30, 1),
  residual: small(35, 2),
  rows: small(5, 3),
  weight: small(42, 4),
  bias: small(7, 5),
  other: small(7, 6),
}
const run = (given: Graph): number[] => Array.from(runGraph(given, ops, inputs, dims, {}).y ?? [])

function only(planned: Graph): NodeOf<'matmul'> {
  const [node, ...more] = planned.nodes
  if (node?.kind !== 'matmul' || more.length > 0) throw new Error('not one product')
  return node
}

function refusal(given: Graph, rest: Partial<PlanDecl> = {}): HeddleError {
  try {
    apply(given, rest)
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
  throw new Error('the plan was accepted')
}

describe('an epilogue of the library', () => {
  it.each<[readonly Behind[]]>([
    [['bias']],
    [['residual']],
    [['bias', 'residual']],
    [['residual', 'bias']],
    [['bias', 'relu']],
    [['relu']],
  ])('is found behind %j, and the product computes it', (behind) => {
    const given = chain(behind)
    const { graph: planned, kernels, templates } = apply(given)
    const { epilogue } = only(planned)
    expect([kernels.size, templates.size]).toEqual([0, 0])
    expect(epilogue).toEqual({
      bias: behind.includes('bias') ? given.weights.bias : undefined,
      residual: behind.includes('residual') ? given.inputs.residual : undefined,
      relu: behind.includes('relu'),
    })
    exactly(run(planned), run(given))
  })

  it('is seen to differ when it reads another bias or applies nothing', () => {
    const given = chain(['bias', 'relu'])
    const { graph: planned } = apply(given)
    const node = only(planned)
    const faulty = (epilogue: NodeOf<'matmul'>['epilogue']) => run({ ...planned, nodes: [{ ...node, epilogue }] })
    const expected = run(given)
    expect(faulty({ bias: given.weights.bias, relu: true })).toEqual(expected)
    expect(faulty({ bias: given.weights.other, relu: true })).not.toEqual(expected)
    expect(faulty({ bias: given.weights.bias, relu: false })).not.toEqual(expected)
  })

  it('is not a kernel of that name: another plan may derive one', () => {
    const given = chain(['bias', 'relu'])
    expect(apply(given, { library: [] }).templates.get('whole')?.kind).toBe('matmul')
  })
})

it('a library group has the cost of its matmul, and is refused under its own name', () => {
  const pricing = { device: costDevice('h200'), dims: { m: 64, n: 64, k: 64 }, dtype: 'f16' } as const
  const launched = (behind: readonly Behind[], library: readonly string[]) => {
    const given = chain(behind)
    const plan = planOf(given, { library })
    return planGroups(new Candidates(given, plan, ops, pricing), plan).map(({ kernel, group }) => [kernel, group.kernel?.name])
  }
  expect(launched(['bias'], ['whole'])).toEqual([['whole', undefined]])
  expect(launched(['gelu'], [])).toEqual([['whole', 'fused']])
  expect(() => launched(['gelu'], ['whole'])).toThrow('group whole')
})

describe('the library is refused for', () => {
  it.each<[string, readonly Behind[], string, string]>([
    ['GELU by erf', ['bias', 'gelu'], '1', 'its GELU approximates tanh and errs by more than the tolerance table allows'],
    ['GELU by tanh', ['bias', 'gelu_tanh'], '1', 'its GELU approximates tanh and errs by more than the tolerance table allows'],
    ['GELU without a bias', ['gelu_tanh'], '0', 'its GELU approximates tanh'],
    ['tanh, which is not a GELU', ['bias', 'tanh'], '1', 'this is tanh('],
    ['a bias over rows', ['row bias'], '0', "has one element per row, and the library's bias has one per column"],
    ['a factor', ['bias', 'scale'], '1', 'this is'],
    ['two biases', ['bias', 'other bias'], '1', 'this is'],
    ['an activation before a bias', ['relu', 'bias'], '1', 'this is'],
    ['an activation behind a residual', ['bias', 'residual', 'relu'], '2', 'a residual or relu, not both'],
    ['a result in another type', ['bias', 'cast'], '1', 'y is stored in another type than the operands'],
  ])('%s', (_, behind, node, reason) => {
    const error = refusal(chain(behind))
    expect(error.code).toBe('plan.library')
    expect(error.message).toContain(`group whole: the library cannot compute nodes product and ${node} as one: `)
    expect(error.message).toContain(reason)
    expect(error.hint).toContain('take whole out of `library`')
  })

  it('a value in between that is needed elsewhere', () => {
    const error = refusal(chain(['bias', 'relu'], '0'))
    expect(error).toMatchObject({ code: 'plan.library' })
    expect(error.message).toContain('nodes product and 1 as one: the result of 0 is needed outside of the group')
  })

  it('sums of int8', () => {
    const given = chain(['bias'])
    const error = refusal(given, {
      quantised: { values: ['x'], dynamic: [], weightOnly: [], only: [], across: [], weights: 'row' },
      groups: [{ kernel: 'whole', occurrences: [['product', 'product.float', '0']] }],
    })
    expect(error).toMatchObject({ code: 'plan.library' })
    expect(error.message).toContain('nodes product and 0 as one: it has no epilogue for sums of int8')
  })

  it.each<[string, readonly string[], string]>([
    ['a group without a matmul', ['0', '1'], 'nodes 0 and 1 as one: neither is a matmul'],
    ['a matmul by itself', ['product'], 'the matmul product has nothing after it'],
  ])('%s', (_, nodes, reason) => {
    const error = refusal(chain(['bias', 'relu']), { groups: [{ kernel: 'whole', occurrences: [nodes] }] })
    expect(error).toMatchObject({ code: 'plan.library' })
    expect(error.message).toContain(reason)
  })

  it('a factor that the group computes, and no factor that is computed before', () => {
    const given = graph('chain', {
      inputs: { x: tensor('T', 'm k') },
      weights: { weight: tensor('T', 'n k'), bias: tensor('T', 'n') },
      build: (g, { x }, w) => {
        const front = g.apply(relu, { x }).y
        const product = g.matmul('m k, n k -> m n', g.view(front, 'm k'), w.weight)
        const y = g.apply(addBias, { x: product, bias: w.bias }).y
        return { nodes: { front, product, y }, outputs: { y } }
      },
    }).graph
    const grouped = (nodes: readonly string[]) => ({ groups: [{ kernel: 'whole', occurrences: [nodes] }] })
    for (const nodes of [
      ['front', 'product', 'y'],
      ['front', 'product'],
    ]) {
      const error = refusal(given, grouped(nodes))
      expect(error).toMatchObject({ code: 'plan.library' })
      expect(error.message).toContain('nodes front and product as one: front computes a factor')
    }
    exactly(run(apply(given, grouped(['product', 'y'])).graph), run(given))
  })

  it('unknown groups', () => {
    const error = refusal(chain(['bias']), { library: ['part'] })
    expect(error).toMatchObject({ code: 'plan.library', hint: 'groups: whole' })
    expect(error.message).toContain('plan test: part is to be the library')
  })
})
