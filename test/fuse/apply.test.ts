/** Fused graphs compute the same as unfused ones: the shipped plans, random legal groupings, and refusals that name the nodes. */
import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { ftV1 } from '../../specs/plans/ft_v1.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { Graph } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import type { PlanDecl } from '../../src/lang/plan.js'
import { runGraph, shapeOf } from './host.js'
import { planOf } from './plan_of.js'

const ftV1Gelu = planOf(ftV1, encoderLayerGelu)

const { graph } = encoderLayerGelu
const dims = { b: 2, s: 3, h: 2, d: 4, i: 5 }
const attrs = { scale: 0.5, eps: 1e-6 }
let ops: ReadonlyMap<string, Kernel>
let inputs: Record<string, ArrayLike<number>>
let reference: ArrayLike<number>

const hidden = (planned: Graph, kernels: ReadonlyMap<string, Kernel>): ArrayLike<number> =>
  runGraph(planned, kernels, inputs, dims, attrs).hidden ?? []

const grouping = (groups: readonly (readonly string[])[]): PlanDecl => ({
  name: 'random',
  graph: graph.name,
  groups: groups.map((nodes, i) => ({ kernel: `group${i}`, occurrences: [nodes] })),
})

const apply = (plan: PlanDecl) => {
  const planned = applyPlan(graph, plan, ops)
  return { ...planned, values: hidden(planned.graph, new Map([...ops, ...planned.kernels])) }
}

/** Fused bodies run the same operations on the same doubles: nothing may differ, not even in the last bit. */
const expectSame = (values: ArrayLike<number>): void => expect(Array.from(values)).toEqual(Array.from(reference))

beforeAll(() => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels.map((kernel) => [kernel.name, kernel]))
  let state = 1
  const next = () => {
    state = (Math.imul(state, 48271) >>> 0) % 2147483647
    return state / 2147483647 - 0.5
  }
  inputs = Object.fromEntries(
    Object.entries({ ...graph.inputs, ...graph.weights }).map(([name, id]) => {
      const length = shapeOf(graph, id, dims).reduce((a, b) => a * b, 1)
      return [name, name === 'lengths' ? [3, 2] : Float64Array.from({ length }, next)]
    }),
  )
  reference = hidden(graph, ops)
})

describe('ft-v1', () => {
  it('is 8 matmuls and 6 kernels, and equals unfused', () => {
    const { graph: planned, values } = apply(ftV1Gelu)
    expect(planned.nodes.filter((node) => node.kind === 'matmul')).toHaveLength(8)
    expect(planned.nodes.filter((node) => node.kind === 'op')).toHaveLength(6)
    expectSame(values)
  })

  it('derives bias + residual + layer norm once for both places', () => {
    const kernel = apply(ftV1Gelu).kernels.get('bias_residual_layer_norm')
    expect(kernel === undefined ? '' : printKernel(kernel)).toMatchInlineSnapshot(`
      "kernel bias_residual_layer_norm<T: f32 | f16 | bf16>(m, n)
        in  x: T[m, n]
        in  bias: T[n]
        in  y: T[m, n]
        in  gamma: T[n]
        in  beta: T[n]
        out y2: T[m, n]
        attr eps: f32 = 1e-12
      for i_m < m
        row v: f32 = [c3 < n: x[i_m, c3] + bias[c3] + y[i_m, c3]]
        let sum0: f32 = sum(c4 < n: v[c4])
        let mean: f32 = sum0 / toFloat(n)
        let sum1: f32 = sum(c5 < n: square(v[c5] - mean))
        let variance: f32 = sum1 / toFloat(n)
        y2[i_m, c7] = (v[c7] - mean) * rsqrt(variance + eps) * gamma[c7] + beta[c7] for c7 < n
      "
    `)
  })

  it('a planted wrong kernel is noticed', () => {
    const { graph: planned, kernels } = apply(ftV1Gelu)
    const norm = kernels.get('bias_residual_layer_norm')
    if (norm === undefined) throw new Error('no kernel')
    const wrong = {
      ...norm,
      body: norm.body.map((stmt) => (stmt.kind === 'reduce' ? { ...stmt, monoid: 'max' as const } : stmt)),
    }
    expect(Array.from(hidden(planned, new Map([...ops, ...kernels, [wrong.name, wrong]])))).not.toEqual(Array.from(reference))
  })
})

describe('random groupings', () => {
  /** Runs of op nodes with no matmul between them: where groups can be legal. Each node gets one of three groups of its run, or none. */
  const runs = [
    ['queryBias', 'keyBias', 'valueBias', 'queryHeads', 'keyHeads', 'valueHeads'],
    ['scaled', 'masked', 'probabilities'],
    ['projectionBias', 'attentionResidual', 'attentionNorm'],
    ['fc1Bias', 'fc1Activation'],
    ['fc2Bias', 'outputResidual', 'outputNorm'],
  ]

  it('every legal grouping equals unfused; every refusal is a plan error', () => {
    let legal = 0
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 17, maxLength: 17 }), (colours) => {
        const nodes = runs.flat()
        const groups = runs.flatMap((run) =>
          [1, 2, 3].map((colour) => run.filter((node) => colours[nodes.indexOf(node)] === colour)),
        )
        try {
          expectSame(apply(grouping(groups.filter((group) => group.length > 0))).values)
          legal += 1
        } catch (error) {
          if (!(error instanceof HeddleError && error.code.startsWith('plan.')) || error.code === 'plan.defect') throw error
        }
      }),
      { numRuns: 1000, seed: 7 },
    )
    expect(legal).toBeGreaterThanOrEqual(200)
  })
})

describe('refusals', () => {
  const refuses = (groups: readonly (readonly string[])[], code: string, ...words: string[]): void => {
    let caught: unknown
    try {
      apply(grouping(groups))
    } catch (error) {
      caught = error
    }
    expect(caught).toBeInstanceOf(HeddleError)
    if (!(caught instanceof HeddleError)) return
    expect(caught.code).toBe(code)
    for (const word of words) expect(caught.message).toContain(word)
  }

  it('a matmul between the nodes', () => refuses([['fc1Activation', 'fc2Bias']], 'plan.illegal', 'fc1Activation', 'fc2Bias'))
  it('rows over different axes', () =>
    refuses([['probabilities', 'attentionNorm']], 'plan.illegal', 'probabilities', 'attentionNorm'))
  it('a node of two groups', () =>
    refuses(
      [
        ['scaled', 'masked'],
        ['masked', 'probabilities'],
      ],
      'plan.overlap',
      'masked',
    ))
  it('an unknown node', () => refuses([['scald']], 'plan.node', 'scald'))
})
