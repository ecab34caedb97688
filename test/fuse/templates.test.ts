/** Matmul, attention and stack groups: the derived kernels, and refusals that name the two nodes and the reason. */
import { beforeAll, describe, expect, it } from 'vitest'
import { encoderLayerGelu } from '../../specs/graphs/encoder_layer.js'
import { HeddleError } from '../../src/errors.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { applyPlan } from '../../src/fuse/apply.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { printExpr, printKernel } from '../../src/ir/print.js'
import type { PlanDecl } from '../../src/lang/plan.js'

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  ops = new Map(readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] }).kernels.map((kernel) => [kernel.name, kernel]))
})

const packing = { batch: 'b', seq: 's', tokens: 't', lengths: 'lengths' }
const attention = ['queryHeads', 'keyHeads', 'valueHeads', 'scores', 'scaled', 'masked', 'probabilities', 'context', 'merged']

const apply = (groups: readonly (readonly string[])[], rest: Partial<PlanDecl> = {}) =>
  applyPlan(
    encoderLayerGelu.graph,
    {
      name: 'test',
      graph: encoderLayerGelu.name,
      ...rest,
      groups: groups.map((nodes, i) => ({ kernel: `group${i}`, occurrences: [nodes] })),
    },
    ops,
  )

function refusal(groups: readonly (readonly string[])[], rest: Partial<PlanDecl> = {}): HeddleError {
  try {
    apply(groups, rest)
  } catch (error) {
    if (error instanceof HeddleError) return error
    throw error
  }
  throw new Error('the plan was accepted')
}

describe('a matmul with an epilogue', () => {
  it('is a row kernel over the matmul', () => {
    const kernel = apply([['fc1', 'fc1Bias', 'fc1Activation']]).templates.get('group0')
    if (kernel?.kind !== 'matmul') throw new Error('no matmul kernel')
    expect(printKernel(kernel.epilogue)).toContain('y[i_m, c3] = gelu(x[i_m, c3] + bias[c3])')
    expect(kernel.tensors.flatMap(({ name, constant }) => (constant ? [name] : []))).toEqual(['bias'])
    expect(kernel.tensors.map(({ name }) => name)).toEqual(['a', 'b', 'bias', 'y'])
  })

  it('may be bare', () => {
    const kernel = apply([['fc1']]).templates.get('group0')
    expect(kernel?.tensors.map(({ name, access }) => `${access} ${name}`)).toEqual(['in a', 'in b', 'out y'])
  })

  it.each([
    [
      'a row reduction behind it',
      [['projection', 'projectionBias', 'attentionResidual', 'attentionNorm']],
      'element of the matmul by itself',
    ],
    ['a factor in a layout that is not declared', [['scores', 'scaled']], 'split_heads, which is not declared'],
    [
      'two products without a softmax',
      [['fc1', 'fc1Bias', 'fc1Activation', 'fc2']],
      'nodes fc1 and fc2 cannot be one kernel: a kernel holds one matmul, or two with a softmax between them',
    ],
    ['a node it does not feed', [['fc1', 'queryBias']], 'plan.illegal'],
  ] as const)('refuses %s', (_, groups, words) => {
    const error = refusal(groups)
    expect(`${error.code} ${error.message}`).toContain('plan.illegal')
    expect(`${error.code} ${error.message}`).toContain(words)
  })
})

describe('attention', () => {
  it('works on padded tokens too: every row of a sequence is written', () => {
    const kernel = apply([attention]).templates.get('group0')
    if (kernel?.kind !== 'attention') throw new Error('no attention kernel')
    expect(kernel.range.upper).toMatchObject({ kind: 'load', tensor: 'lengths' })
    expect(kernel.ownedCount).toEqual(kernel.queries)
  })

  it('computes operands while they are loaded', () => {
    const kernel = apply([['queryBias', ...attention]]).templates.get('group0')
    if (kernel?.kind !== 'attention') throw new Error('no attention kernel')
    expect(kernel.query.element && printExpr(kernel.query.element)).toContain('+ queryBias[h, c]')
    expect(kernel.key.element).toBeUndefined()
  })

  it.each([
    ['a node that belongs nowhere', [[...attention, 'projectionBias']], {}, 'plan.illegal'],
    ['a result left in split heads', [attention.filter((name) => name !== 'merged')], {}, 'layout split_heads'],
    ['operands left in split heads', [attention.slice(3)], {}, 'layout split_heads'],
    ['a third product', [[...attention, 'projection']], {}, 'the two of attention'],
  ] as const)('refuses %s', (_, groups, rest, words) => {
    const error = refusal(groups, rest)
    expect(`${error.code} ${error.message}`).toContain(words)
  })
})

describe('stacks', () => {
  const stack = (...nodes: string[]): Partial<PlanDecl> => ({ packed: packing, stacked: [{ name: 'stack', nodes }] })

  it.each([
    ['matmuls of different inputs', ['query', 'fc1'], 'different inputs'],
    ['a matmul and an op', ['query', 'queryBias'], 'one is a matmul'],
    ['different ops', ['queryBias', 'fc1Activation'], 'different ops'],
    ['ops that read no stack', ['queryBias', 'keyBias'], 'parts of a stack'],
    ['weights of different shapes', ['fc1', 'fc2'], 'different inputs'],
  ] as const)('refuses %s', (_, nodes, words) => {
    const error = refusal([], stack(...nodes))
    expect(error.code).toBe('plan.stack')
    expect(error.message).toContain(words)
    for (const node of nodes) expect(error.message).toContain(node)
  })

  it('refuses an unknown node', () => expect(refusal([], stack('query', 'kay')).code).toBe('plan.node'))
  it('refuses a stack of one', () => expect(refusal([], stack('query')).code).toBe('plan.stack'))
})

describe('edge types', () => {
  const groups = [['projection', 'projectionBias', 'attentionResidual'], ['attentionNorm']]
  const edges = (node: string) => ({ edges: [{ node, dtype: 'f32' as const }] })

  it('store a residual in float32 between two kernels', () => {
    const { templates, kernels } = apply(groups, edges('attentionResidual'))
    expect(templates.get('group0')?.tensors.at(-1)).toMatchObject({ access: 'out', dtype: 'f32' })
    expect(kernels.get('group1')?.tensors[0]).toMatchObject({ name: 'x', dtype: 'f32' })
    expect(kernels.get('group1')?.tensors.at(-1)).toMatchObject({ name: 'y', dtype: { param: 'T' } })
  })

  it.each([
    ['an end that is in no group', groups.slice(0, 1), 'attentionResidual', 'attentionNorm is in no group'],
    ['an operand of a matmul', [...groups, ['fc1']], 'attentionNorm', 'plan.edge'],
    ['a result of the graph', [['outputNorm']], 'outputNorm', 'result of the graph'],
    ['an unknown node', groups, 'residual', 'plan.node'],
  ] as const)('refuse %s', (_, given, node, words) => {
    const error = refusal(given, edges(node))
    expect(`${error.code} ${error.message}`).toContain(words)
  })
})
