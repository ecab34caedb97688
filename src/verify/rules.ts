/**
 * What a generated test must know about an op and cannot read off its signature: how its error grows, and which inputs are
 * indices. One row an op or fused kernel; one without a row is refused, so that none goes unverified.
 */
import { usageError } from '../errors.js'
import { integer, type Random } from './random.js'
import type { OpClass } from './tolerance.js'

type Extents = Readonly<Record<string, number>>

export interface OpRule {
  /** `exact` ops equal their body on small integers; on other values they are `elementwise`. */
  readonly class: Exclude<OpClass, 'model' | 'matmul'>
  /** Length of the longest reduction. */
  readonly length?: (dims: Extents) => number
  /** Magnitude of the terms that cancel, 1 by default; 0 where every result is a product of positive terms. */
  readonly scale?: number
  /** Shortest row that is drawn from a normal distribution. Below it rows may hold equal values, where statistics are ill-conditioned. */
  readonly normalFrom?: number
  /** Extents that must follow from the others. */
  readonly extents?: Readonly<Record<string, (dims: Extents) => number>>
  /** Inputs that are indices or lengths. */
  readonly inputs?: Readonly<Record<string, (next: Random, dims: Extents) => number>>
}

const at = (dims: Extents, name: string): number => dims[name] ?? 1
const rowOf = (dims: Extents): number => at(dims, 'n')

const exact: OpRule = { class: 'exact' }
const transcendental: OpRule = { class: 'transcendental' }

export const rules: Readonly<Record<string, OpRule>> = {
  add: exact,
  add_bias: exact,
  add_position: { class: 'exact', extents: { p: (dims) => at(dims, 's') + 3 } },
  argmax: exact,
  bias_gelu: transcendental,
  bias_gelu_tanh: transcendental,
  bias_relu: exact,
  bias_residual_layer_norm: { class: 'reduction', length: rowOf, normalFrom: 31 },
  cast_f32: exact,
  embedding_lookup: {
    class: 'exact',
    extents: { v: () => 61 },
    inputs: { ids: (next, dims) => integer(next, 0, at(dims, 'v') - 1) },
  },
  first_token: exact,
  gelu: transcendental,
  gelu_tanh: transcendental,
  layer_norm: { class: 'reduction', length: rowOf, normalFrom: 31 },
  mask_scores: { class: 'exact', inputs: { lengths: (next, dims) => integer(next, 1, at(dims, 't')) } },
  merge_heads: exact,
  qkv_bias_split_heads: exact,
  relu: exact,
  scale: exact,
  scale_mask_softmax: {
    class: 'reduction',
    length: rowOf,
    scale: 0,
    inputs: { lengths: (next, dims) => integer(next, 1, rowOf(dims)) },
  },
  softmax: { class: 'reduction', length: rowOf, scale: 0 },
  split_heads: exact,
  tanh: transcendental,
}

/** @throws usage `verify.rule` for an op without a row */
export function ruleOf(op: string): OpRule {
  const rule = rules[op]
  if (rule === undefined) {
    throw usageError('verify.rule', `op ${op} has no verification rule`, {
      hint: 'add a row to src/verify/rules.ts: its error class, and which inputs are indices',
    })
  }
  return rule
}
