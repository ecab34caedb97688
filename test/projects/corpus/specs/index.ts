/** Kernels in the style of users, to be compiled by a GPU compiler. */
import { plan } from 'heddle'
import { float8Attention, int8Attention, pagedAttention } from './attention.js'
import { linearCodes, linearFloat8, linearMicro, linearTernary, linearWords, linearZeros } from './low_bit.js'

export * from './attention.js'
export * from './low_bit.js'
export * from './routing.js'
export * from './rows.js'
export * from './steps.js'

const declared = [
  linearWords,
  linearZeros,
  linearTernary,
  linearCodes,
  linearFloat8,
  linearMicro,
  pagedAttention,
  int8Attention,
  float8Attention,
]
export const graphs = Object.fromEntries(declared.map((graph) => [graph.name, graph]))
export const plans = [
  plan('words', linearWords, { groups: { linear_of_words: ['weight', 'y'] } }),
  plan('zeros', linearZeros, { groups: { linear_of_zeros: ['weight', 'y'] } }),
  plan('ternary', linearTernary, { groups: { linear_of_ternary: ['weight', 'y'] } }),
  plan('codes', linearCodes, { groups: { linear_of_codes: ['weight', 'y'] } }),
  plan('blocks', linearFloat8, { groups: { linear_of_float8: ['a', 'b', 'y'] } }),
  plan('micro', linearMicro, { groups: { linear_of_micro: ['weight', 'y'] } }),
  plan('pages', pagedAttention, { groups: { attention_of_pages: ['k', 'v', 'scores', 'weights', 'y'] } }),
  plan('bytes', int8Attention, { groups: { attention_of_bytes: ['k', 'v', 'scores', 'weights', 'y'] } }),
  plan('floats', float8Attention, { groups: { attention_of_floats: ['k', 'v', 'scores', 'weights', 'y'] } }),
]
