/** Rules of the kernels that plans derive for a step of decoding; part of rules.ts. */
import type { OpRule } from './op_rule.js'
import { at, type Extents } from './ragged.js'
import { integer, type Random } from './random.js'

/** Places of a cache or a memory, from one to more than all warps of a block take at once: other than the head size, but found from it. */
const places = (dims: Extents): number => 1 + ((7 * at(dims, 'd_extent')) % 83)

/** A step of self-attention over caches of which a part is decoded; places beyond it hold what no result may depend on. */
const selfAttention: OpRule = {
  class: 'attention',
  length: (dims) => at(dims, 'd_extent'),
  extents: { extent: () => 1, extent3: () => 3, s_extent: places },
  inputs: {
    step: (next, dims) => integer(next, 0, at(dims, 's_extent') - 1),
    beams: (next, dims) => integer(next, 0, at(dims, 'extent2') - 1),
  },
  longest: 1024,
}

/**
 * The same where biases are added on the way: the key of the step is rounded as it is stored before it is attended, which moves a
 * score of 1024 terms by up to five roundings, and a weight by a quarter of that at most.
 */
const biasedSelfAttention: OpRule = { ...selfAttention, scale: 4 }

const crossAttention: OpRule = {
  class: 'attention',
  length: (dims) => at(dims, 'd_extent'),
  extents: { t_extent: places },
  inputs: { lengths: (next, dims) => integer(next, 1, at(dims, 't_extent')) },
  longest: 1024,
}

const below = (dim: string) => (next: Random, dims: Extents) => integer(next, 0, at(dims, dim) - 1)

export const decodeRules: Readonly<Record<string, OpRule>> = {
  bias_cast_f32: { class: 'exact' },
  cross_attention: crossAttention,
  cross_attention_bias: crossAttention,
  decode_attention: selfAttention,
  decode_attention_bias: biasedSelfAttention,
  embed_step: {
    class: 'exact',
    extents: { v: () => 61, p: () => 5, o: () => 1 },
    inputs: { ids: below('v'), step: below('p') },
  },
  matmul_bias_cast_f32: { class: 'exact', elsewhere: 'matmul', length: (dims) => at(dims, 'k') },
  matmul_cast_f32: { class: 'exact', elsewhere: 'matmul', length: (dims) => at(dims, 'k') },
  // A word below 0 gives NaN, which no comparison passes: its test is of its own.
  word_lookup: { class: 'exact', extents: { v: () => 61 }, inputs: { ids: below('v') } },
}
