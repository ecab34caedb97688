/**
 * What a generated test must know about an op and cannot read off its signature: how its error grows, and which inputs are
 * indices. An op or fused kernel of floats without a row is held to the loosest rule.
 */
import type { KernelEntry } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { integer, type Random } from './random.js'
import type { OpClass } from './tolerance.js'

type Extents = Readonly<Record<string, number>>

export interface OpRule {
  /** `exact` ops equal their body on small integers; on other values they are `elsewhere`, `elementwise` by default. */
  readonly class: Exclude<OpClass, 'model'>
  readonly elsewhere?: Exclude<OpClass, 'model'>
  /** Length of the longest reduction. */
  readonly length?: (dims: Extents) => number
  /** Magnitude of the terms that cancel, 1 by default; 0 where every result is a product of positive terms. */
  readonly scale?: number
  /** Shortest row that is drawn from a normal distribution. Below it rows may hold equal values, where statistics are ill-conditioned. */
  readonly normalFrom?: number
  /** Extents that must follow from the others. */
  readonly extents?: Readonly<Record<string, (dims: Extents) => number>>
  /** Inputs that are indices or lengths. */
  readonly inputs?: Readonly<Record<string, (next: Random, dims: Extents, index: number) => number>>
  /** Attributes that must follow from the extents; the others keep their defaults. */
  readonly attrs?: Readonly<Record<string, (dims: Extents) => number>>
  /** Longest row the kernel takes. */
  readonly longest?: number
}

const at = (dims: Extents, name: string): number => dims[name] ?? 1
const rowOf = (dims: Extents): number => at(dims, 'n')

/** Lengths of packed sequences, over and over: one token, and around the keys a warp holds. */
const raggedLengths = [3, 1, 33, 32, 31, 7, 2]
const raggedLength = (sequence: number): number => raggedLengths[sequence % raggedLengths.length] ?? 1
const sumOf = (lengths: readonly number[]): number => lengths.reduce((sum, length) => sum + length, 0)
const raggedStart = (sequence: number): number =>
  Math.floor(sequence / raggedLengths.length) * sumOf(raggedLengths) +
  sumOf(raggedLengths.slice(0, sequence % raggedLengths.length))

/** Packed sequences whose rows are `tokens`, with two rows to spare behind the last. */
const packed = (batch: string, tokens: string) =>
  ({
    extents: { [tokens]: (dims: Extents) => raggedStart(at(dims, batch)) + 2 },
    inputs: {
      starts: (_: Random, __: Extents, i: number) => raggedStart(i),
      lengths: (_: Random, __: Extents, i: number) => raggedLength(i),
    },
  }) as const

/** The sequence of a packed row, and its position; -1 and 0 behind the last. */
function placeOf(row: number, sequences: number): readonly [sequence: number, position: number] {
  if (row >= raggedStart(sequences)) return [-1, 0]
  const round = Math.floor(row / sumOf(raggedLengths)) * raggedLengths.length
  const within = raggedLengths.findIndex((length, i) => row < raggedStart(round + i) + length)
  return [round + within, row - raggedStart(round + within)]
}

/** Rows gathered from padded tokens of `b` sequences of at most `s`. */
const gathered = {
  extents: { t: (dims: Extents) => raggedStart(at(dims, 'b')) + 2, s: () => Math.max(...raggedLengths) },
  inputs: {
    sequences: (_: Random, dims: Extents, i: number) => placeOf(i, at(dims, 'b'))[0],
    positions: (_: Random, dims: Extents, i: number) => placeOf(i, at(dims, 'b'))[1],
  },
} as const

const product: OpRule = { class: 'matmul', length: (dims) => at(dims, 'k') }
/** A product whose epilogue calls functions: they err as those of a `transcendental` op do, which is what eight more terms are allowed. */
const transcendentalProduct: OpRule = { ...product, length: (dims) => at(dims, 'k') + 8 }
/** A product whose epilogue neither divides nor calls a function: integers stay integers. */
const exactProduct: OpRule = { ...product, class: 'exact', elsewhere: 'matmul' }

const exact: OpRule = { class: 'exact' }
const transcendental: OpRule = { class: 'transcendental' }

export const rules: Readonly<Record<string, OpRule>> = {
  abs_max: exact,
  add: exact,
  add_bias: exact,
  add_position: { class: 'exact', extents: { p: (dims) => at(dims, 's') + 3 } },
  argmax: exact,
  attention: {
    ...packed('b_extent', 't_extent'),
    extents: { ...packed('b_extent', 't_extent').extents, extent: () => 3 },
    class: 'attention',
    length: (dims) => at(dims, 'd_extent'),
    attrs: { s_extent: (dims) => Math.max(...Array.from({ length: at(dims, 'b_extent') }, (_, i) => raggedLength(i))) },
    longest: 1024,
  },
  auto_matmul_add_bias_tanh_cast_f32: transcendentalProduct,
  bias_argmax: exact,
  bias_gelu: transcendental,
  bias_gelu_tanh: transcendental,
  bias_relu: exact,
  bias_residual_layer_norm: { class: 'reduction', length: rowOf, normalFrom: 31 },
  bias_tanh: transcendental,
  cast_f32: exact,
  column_sum: { class: 'exact', inputs: { x: (next) => integer(next, 0, 1000) } },
  embed_layer_norm: {
    class: 'reduction',
    length: rowOf,
    normalFrom: 31,
    extents: { ...gathered.extents, v: () => 61, v2: () => 2, p: () => Math.max(...raggedLengths) },
    inputs: {
      ...packed('b', 't').inputs,
      ...gathered.inputs,
      ids: (next) => integer(next, 0, 60),
      ids2: (next) => integer(next, 0, 1),
    },
  },
  embedding_lookup: {
    class: 'exact',
    extents: { v: () => 61 },
    inputs: { ids: (next, dims) => integer(next, 0, at(dims, 'v') - 1) },
  },
  first_token: exact,
  gelu: transcendental,
  gelu_tanh: transcendental,
  layer_norm: { class: 'reduction', length: rowOf, normalFrom: 31 },
  locate_rows: { class: 'exact', ...packed('b', 't'), longest: 1025 },
  // The default scale is a power of two, so a magnitude falls in the same bin in any precision; some lie beyond the last.
  magnitude_histogram: { class: 'exact', extents: { bins: () => 40 } },
  mask_scores: { class: 'exact', inputs: { lengths: (next, dims) => integer(next, 1, at(dims, 't')) } },
  matmul_bias: exactProduct,
  matmul_bias_gelu: transcendentalProduct,
  matmul_bias_gelu_tanh: transcendentalProduct,
  matmul_bias_relu: exactProduct,
  matmul_bias_residual: exactProduct,
  merge_heads: exact,
  merge_heads_pack: { class: 'exact', ...gathered },
  pack_rows: { class: 'exact', ...gathered },
  qkv_bias_split_heads: exact,
  qkv_bias_unpack_split_heads: {
    class: 'exact',
    ...packed('b', 't'),
    extents: { ...packed('b', 't').extents, j: () => 3 },
  },
  relu: exact,
  scale: exact,
  scale_mask_softmax: {
    class: 'reduction',
    length: rowOf,
    scale: 0,
    inputs: { lengths: (next, dims) => integer(next, 1, rowOf(dims)) },
  },
  sequence_starts: { class: 'exact', inputs: { lengths: (next) => integer(next, 0, 512) } },
  softmax: { class: 'reduction', length: rowOf, scale: 0 },
  split_heads: exact,
  take: { class: 'exact', extents: { j: () => 3 } },
  tanh: transcendental,
  unpack_first_token: { class: 'exact', ...packed('b', 't') },
  unpack_rows: { class: 'exact', ...packed('b', 't') },
}

/** What holds for any op of floats: statistics of a row are the worst it may do. A row of its own holds it to less. */
const fallback: OpRule = { class: 'reduction', length: rowOf, normalFrom: 31 }

/**
 * The rule of a kernel instance.
 * @throws usage `verify.rule` for one that reads integers and has no row: nobody else can know which integers are legal
 */
export function ruleOf({ op, buffers }: Pick<KernelEntry, 'op' | 'buffers'>): OpRule {
  const rule = Object.hasOwn(rules, op) ? rules[op] : undefined
  if (rule !== undefined) return rule
  const integers = buffers.find(({ access, dtype }) => access === 'in' && dtypeInfo[dtype].scalar === 'i32')
  if (integers === undefined) return fallback
  throw usageError('verify.rule', `op ${op} has no verification rule, and reads integers: ${integers.name}`, {
    hint: 'add a row to src/verify/rules.ts: its error class, and which integers its inputs may hold',
  })
}
