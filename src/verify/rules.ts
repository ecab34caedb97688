/**
 * What a generated test must know about an op and cannot read off its signature: how its error grows, and which inputs are
 * indices. An op or fused kernel of floats without a row is held to the loosest rule.
 */
import type { KernelEntry } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import { rankedCounts } from '../ir/top_k.js'
import { decodeRules } from './decode_rules.js'
import type { OpRule } from './op_rule.js'
import { at, type Extents, gatheredFrom, packed, raggedLength, raggedLengths } from './ragged.js'
import { integer, type Random } from './random.js'

const rowOf = (dims: Extents): number => at(dims, 'n')

const product: OpRule = { class: 'matmul', length: (dims) => at(dims, 'k') }
/** A product whose epilogue calls functions: they err as those of a `transcendental` op do, which is what eight more terms are allowed. */
const transcendentalProduct: OpRule = { ...product, length: (dims) => at(dims, 'k') + 8 }
/** A product whose epilogue neither divides nor calls a function: integers stay integers. */
const exactProduct: OpRule = { ...product, class: 'exact', elsewhere: 'matmul' }

const exact: OpRule = { class: 'exact' }
const transcendental: OpRule = { class: 'transcendental' }
const gathered = gatheredFrom('b', 's', 't')
const norm: OpRule = { class: 'reduction', length: rowOf, normalFrom: 31 }

/** Integers up to a bound. */
const within = (bound: number) => (next: Random) => integer(next, -bound, bound)

/** Elements are moved as they are, to a step that may lie beside those there are. */
const intoSteps: OpRule = {
  class: 'exact',
  elsewhere: 'exact',
  extents: { o: () => 1 },
  inputs: { step: (next, dims) => integer(next, -1, at(dims, 's')) },
  longest: 257,
}

/** Sums of an int8 product: times steps and beside a bias they span what int8 holds, and lie beyond it now and then. */
const sums = { x: within(100), x2: within(100) } as const
/** Converts sums by steps, adds and rounds: exact where steps are integers. */
const fromSums: OpRule = { class: 'exact', inputs: sums }
const unpackSums: OpRule = {
  class: 'exact',
  extents: { ...packed('b', 't').extents, ...packed('b', 't2').extents },
  inputs: { ...packed('b', 't').inputs, ...sums },
}
const packSums: OpRule = {
  class: 'exact',
  extents: gatheredFrom('n3', 'n4', 'm').extents,
  inputs: { ...gatheredFrom('n3', 'n4', 'm').inputs, ...sums },
}
/** Steps are what makes one int8 step a tight bound: results spread over most of the integers there are. */
const spread = (inverse: number) => ({ attrs: { inverse: () => inverse } }) as const
/** +-1 and +-2 times this are ties to either even neighbour and values beyond 127. */
const ties = spread(80.5)
const normSums: OpRule = { ...norm, inputs: { x2: within(100) }, ...spread(32) }
const geluSums: OpRule = { ...transcendental, inputs: { x: within(8) }, ...spread(8) }
/** Scores of +-10, so that a few keys share the weight of a row however long it is. */
const softmaxSums = (keys: string): OpRule => ({
  class: 'reduction',
  length: (dims) => at(dims, keys),
  scale: 0,
  inputs: { x: within(80), lengths: (next, dims) => integer(next, 1, at(dims, keys)) },
  ...spread(127),
})
/** Sums of products of int8 are integers whatever the draw. */
const integerProduct: OpRule = { class: 'exact', elsewhere: 'exact', inputs: { a: within(127), b: within(127) } }

const attention: OpRule = {
  ...packed('b_extent', 't_extent'),
  extents: { ...packed('b_extent', 't_extent').extents, extent: () => 3 },
  class: 'attention',
  length: (dims) => at(dims, 'd_extent'),
  attrs: { s_extent: (dims) => Math.max(...Array.from({ length: at(dims, 'b_extent') }, (_, i) => raggedLength(i))) },
  sequences: (rows) => ({
    extents: { t_extent: (dims) => rows * at(dims, 'b_extent'), extent: () => 3 },
    inputs: { lengths: () => rows, starts: (_, __, i) => rows * i },
    attrs: { s_extent: () => rows },
  }),
  longest: 1024,
}

/** One of the rows `r`. */
const row = (next: Random, dims: Extents): number => integer(next, 0, at(dims, 'r') - 1)
/** Rows that end in every way: the third token of some is the last, others may not end yet, some are finished. */
const ending: Pick<OpRule, 'extents' | 'inputs'> = {
  extents: { o: () => 1, e: () => 2 },
  inputs: {
    step: () => 2,
    finished: (_, _dims, i) => (i % 4 === 3 ? 1 : 0),
    limit: (_, _dims, i) => 3 + (i % 2),
    ends: (_, dims, i) => Math.min(i * 2, at(dims, 'v') - 1),
  },
}
/**
 * Requests that differ from row to row. All narrow the draw to a few words or to equals: where thousands share the chances, a random
 * number lies within a rounding of the next word's now and then, and either is right.
 */
const requests: OpRule = {
  class: 'exact',
  ...ending,
  inputs: {
    ...ending.inputs,
    temperature: (_, _dims, i) => [1, 0.5, 2][i % 3] ?? 1,
    topK: (_, _dims, i) => 1 + (i % 4),
    topP: (_, _dims, i) => [1, 0.6, 0.9][(i >> 1) % 3] ?? 1,
    minP: (_, _dims, i) => [0, 0.05][(i >> 2) % 2] ?? 0,
    seedsLow: (next) => integer(next, -1e9, 1e9),
    seedsHigh: (next) => integer(next, -1e9, 1e9),
  },
  // The body sorts rows: long ones are for its own tests.
  longest: 1100,
}
/**
 * Candidates of beams, `each` of which every beam has in a kernel compiled for `k`. One part of a beam has a sum of 1 and its row's largest
 * logit, the others a sum of 0: what is taken from a logit is then an integer, and so are scores, ties among them included.
 */
const selection = (each: number) => {
  // Fewer beams than candidates, too, so that what only a wide search would have stays small enough to run often.
  const width = (dims: Extents): number => Math.max(1, Math.min(7, Math.floor(at(dims, 'k') / each)))
  return {
    class: 'exact',
    extents: { w: width, n: (dims: Extents) => width(dims) * at(dims, 'p') * at(dims, 'k'), o: () => 1 },
    inputs: {
      ids: (next: Random) => integer(next, -1, 1000),
      tops: (_: Random, dims: Extents, i: number) => (i % at(dims, 'p') === 0 ? 3 : -(i % 5)),
      sums: (_: Random, dims: Extents, i: number) => (i % at(dims, 'p') === 0 ? 1 : 0),
      finished: (next: Random) => integer(next, 0, 1),
      step: () => 2,
      ends: (next: Random) => integer(next, 0, 1000),
    },
    row: 'p',
    longest: 66,
    shared: 3,
  } as const satisfies OpRule
}

export const rules: Readonly<Record<string, OpRule>> = {
  ...decodeRules,
  abs_max: exact,
  add: exact,
  add_bias: exact,
  add_position: { class: 'exact', extents: { p: (dims) => at(dims, 's') + 3 } },
  add_step_position: {
    class: 'exact',
    extents: { p: () => 5, o: () => 1 },
    inputs: { step: (next, dims) => integer(next, 0, at(dims, 'p') - 1) },
  },
  append_step: intoSteps,
  argmax: exact,
  attention,
  attention_quantize: { ...attention, attrs: { ...attention.attrs, ...spread(64).attrs } },
  auto_matmul_add_bias_tanh_cast_f32: transcendentalProduct,
  beam_candidates: {
    class: 'reduction',
    length: (dims) => Math.ceil(at(dims, 'v') / at(dims, 'p')),
    scale: 0,
    row: 'v',
    shared: rankedCounts.length,
  },
  beam_select: selection(1),
  beam_select_hf: {
    ...selection(2),
    inputs: {
      ...selection(2).inputs,
      done: (next) => integer(next, 0, 1),
      poolRows: (next) => integer(next, 0, 1000),
      poolSteps: (next) => integer(next, -1, 2),
      poolWords: (next) => integer(next, 0, 1000),
      step: (next) => integer(next, 3, 9),
    },
  },
  bias_argmax: exact,
  bias_gelu: transcendental,
  bias_gelu_tanh: transcendental,
  bias_relu: exact,
  bias_residual: exact,
  bias_residual_and_layer_norm: norm,
  bias_residual_layer_norm: norm,
  bias_silu: transcendental,
  bias_tanh: transcendental,
  cast_f32: exact,
  col32_from_rows: exact,
  column_sum: { class: 'exact', inputs: { x: (next) => integer(next, 0, 1000) } },
  dequantize: { class: 'exact', inputs: { x: within(127) } },
  dequantize_channels: fromSums,
  dequantize_product: fromSums,
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
  embed_scaled: {
    class: 'exact',
    extents: { ...gathered.extents, v: () => 61, p: () => Math.max(...raggedLengths) },
    inputs: { ...packed('b', 't').inputs, ...gathered.inputs, ids: (next) => integer(next, 0, 60) },
  },
  embedding_lookup: {
    class: 'exact',
    extents: { v: () => 61 },
    inputs: { ids: (next, dims) => integer(next, 0, at(dims, 'v') - 1) },
  },
  first_token: exact,
  follow_parents: {
    class: 'exact',
    extents: { o: () => 1 },
    inputs: { beams: row, parents: row, step: (next, dims) => integer(next, -1, at(dims, 's')) },
  },
  gather_beams: { class: 'exact', inputs: { beams: row } },
  gelu: transcendental,
  gelu_tanh: transcendental,
  greedy: { ...exact, ...ending },
  int8_bias_gelu: geluSums,
  int8_bias_qk_2r4r4: fromSums,
  int8_bias_qk_2r4r4_unpack: unpackSums,
  int8_bias_qk_col4: fromSums,
  int8_bias_qk_col4_unpack: unpackSums,
  int8_bias_residual_layer_norm: { ...normSums, inputs: { x: within(100) } },
  int8_bias_residual_layer_norm_quantize: normSums,
  int8_bias_v_2r4r4: fromSums,
  int8_bias_v_2r4r4_unpack: unpackSums,
  int8_bias_v_col4: fromSums,
  int8_bias_v_col4_unpack: unpackSums,
  int8_col32_from_rows: { ...exact, ...ties },
  int8_context_2r4r4: integerProduct,
  int8_context_col4: integerProduct,
  int8_matmul: integerProduct,
  int8_matmul_2r4r4: integerProduct,
  int8_matmul_bias: exactProduct,
  int8_matmul_bias_gelu_quantize: {
    ...transcendentalProduct,
    // What the function takes has about the same size whatever the length.
    inputs: { steps: (_, dims) => Math.fround(1 / Math.sqrt(at(dims, 'k'))) },
    ...spread(32),
  },
  int8_matmul_bias_residual: exactProduct,
  int8_matmul_col4: integerProduct,
  int8_merge_heads: fromSums,
  int8_merge_heads_pack: packSums,
  int8_row_bias_gelu: geluSums,
  int8_row_bias_qk: unpackSums,
  int8_row_bias_residual_layer_norm: { ...normSums, inputs: { x: within(100) } },
  int8_row_bias_v: unpackSums,
  int8_row_merge_heads_pack: packSums,
  int8_row_softmax: softmaxSums('n'),
  int8_scores_2r4r4: integerProduct,
  int8_scores_col4: integerProduct,
  int8_softmax: softmaxSums('n4'),
  kv_bias_split_heads: exact,
  layer_norm: norm,
  layer_norm_quantize: { ...norm, ...spread(32) },
  locate_rows: { class: 'exact', ...packed('b', 't'), longest: 1025 },
  // The default scale is a power of two, so a magnitude falls in the same bin in any precision; some lie beyond the last.
  magnitude_histogram: { class: 'exact', extents: { bins: () => 40 } },
  mark_seen: {
    ...exact,
    inputs: { seen: (next) => integer(next, 0, 1), words: (next, dims) => integer(next, 0, at(dims, 'v') - 1) },
  },
  mask_scores: { class: 'exact', inputs: { lengths: (next, dims) => integer(next, 1, at(dims, 't')) } },
  mask_steps: { class: 'exact', extents: { o: () => 1 }, inputs: { step: (next, dims) => integer(next, 0, at(dims, 's') - 1) } },
  matmul_bias: exactProduct,
  matmul_bias_gelu: transcendentalProduct,
  matmul_bias_gelu_tanh: transcendentalProduct,
  matmul_bias_relu: exactProduct,
  matmul_bias_residual: exactProduct,
  matmul_bias_silu: transcendentalProduct,
  merge_heads: exact,
  merge_heads_pack: { class: 'exact', ...gathered },
  next_step: { class: 'exact', inputs: { step: within(1000) } },
  pack_rows: { class: 'exact', ...gathered },
  // Penalties are powers of two, by which quotients are exact.
  penalise: { ...exact, inputs: { seen: (next) => integer(next, 0, 1), penalty: (_, _dims, i) => [1, 2, 0.5][i % 3] ?? 1 } },
  qkv_bias_split_heads: exact,
  qkv_bias_unpack_split_heads: {
    class: 'exact',
    ...packed('b', 't'),
    extents: { ...packed('b', 't').extents, j: () => 3 },
  },
  quantize: { ...exact, ...ties },
  quantize_col32: { ...exact, ...ties },
  record: intoSteps,
  record_beams: intoSteps,
  relu: exact,
  rows_from_col32: exact,
  rows_from_int8_col32: { class: 'exact', inputs: { x: within(127) } },
  sample: requests,
  sample_candidates: {
    ...requests,
    extents: { ...ending.extents, n: (dims) => at(dims, 'p') * at(dims, 'k') },
    inputs: {
      ...requests.inputs,
      ids: (next) => integer(next, -1, 1000),
      count: (_, dims, i) => 1 + (i % at(dims, 'k')),
      ends: (next) => integer(next, 0, 1000),
    },
    row: 'p',
    longest: 66,
    shared: 3,
  },
  scale: exact,
  scale_mask_softmax: {
    class: 'reduction',
    length: rowOf,
    scale: 0,
    inputs: { lengths: (next, dims) => integer(next, 1, rowOf(dims)) },
  },
  sequence_starts: { class: 'exact', inputs: { lengths: (next) => integer(next, 0, 512) } },
  silu: transcendental,
  softmax: { class: 'reduction', length: rowOf, scale: 0 },
  split_heads: exact,
  suppress_ends: { ...exact, ...ending, inputs: { ...ending.inputs, minimum: (_, _dims, i) => (i % 3 === 1 ? 3 : 0) } },
  take: { class: 'exact', extents: { j: () => 3 } },
  tanh: transcendental,
  unpack_first_token: { class: 'exact', ...packed('b', 't') },
  unpack_rows: { class: 'exact', ...packed('b', 't') },
  unpack_split_kv: {
    class: 'exact',
    ...packed('b', 't'),
    extents: { ...packed('b', 't').extents, j: () => 2 },
  },
}

/** What holds for any op of floats: statistics of a row are the worst it may do. A row of its own holds it to less. */
const fallback: OpRule = norm

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
