/** Plain attention of one head over `s d`, as a graph of ops that a test changes in one place: before, between or after its matmuls. */
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Stmt } from '../../src/ir/kernel.js'
import { type At, Draft } from './random/draft.js'

/** An element of a tensor that an op may read. */
export const at = (given: At | undefined, ...indices: readonly (Expr | undefined)[]): Expr =>
  given === undefined ? f32(0) : given(...indices.map((each) => each ?? i32(0)))

type Step = (draft: Draft, x: ValueId) => ValueId

export interface Around {
  readonly query?: Step
  readonly key?: Step
  /** Between the scores and the softmax. */
  readonly scores?: Step
  /** Score of query `i` and key `j` at the input of the softmax. */
  readonly score?: (x: At | undefined, i: Expr, j: Expr) => Expr
  readonly behind?: Step
  /** Name of the input that keys are computed from. */
  readonly keys?: string
}

const same: Step = (_, x) => x

export function attention(around: Around): Draft {
  const { query = same, key = same, scores = same, score = at, behind = same, keys = 's d' } = around
  const draft = new Draft()
  const [q, k, v] = [query(draft, draft.input('s d')), key(draft, draft.input(keys)), draft.input('s d')]
  const logits = scores(draft, draft.matmul('i c, j c -> i j', q, k))
  const weights = draft.op({
    over: ['i', 'j'],
    extents: { i: 's', j: 's' },
    reads: { x: { value: logits, dims: ['i', 'j'] } },
    body: ({ x }, { i = i32(0) }): readonly Stmt[] => {
      const top: Expr = { kind: 'local', type: 'f32', name: 'top' }
      const total: Expr = { kind: 'local', type: 'f32', name: 'total' }
      const exponential = (c: Expr): Expr => call('exp', call('sub', score(x, i, c), top))
      const over = { length: dim('j'), type: 'f32' } as const
      return [
        { kind: 'reduce', name: 'top', monoid: 'max', ...over, index: 'c', value: score(x, i, index('c')) },
        { kind: 'reduce', name: 'total', monoid: 'sum', ...over, index: 'c2', value: exponential(index('c2')) },
        {
          kind: 'storeRow',
          tensor: 'y',
          rows: [i],
          length: dim('j'),
          index: 'c3',
          value: call('div', exponential(index('c3')), total),
        },
      ]
    },
  })
  draft.output(behind(draft, draft.matmul('i j, j c -> i c', weights, v)))
  return draft
}
