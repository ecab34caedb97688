/** Kernels and graphs that users requested from other tools and no other project has. */
import { plan } from 'heddle'
import { linearAdded } from './layers.js'
import { linear4, linearInt8 } from './low_bit.js'

export * from './kernels.js'
export * from './layers.js'
export * from './low_bit.js'

export const graphs = { [linear4.name]: linear4, [linearInt8.name]: linearInt8, [linearAdded.name]: linearAdded }
export const plans = [
  plan('unpacked-inside', linear4, { groups: { linear_of_int4: ['weight', 'y'] } }),
  plan('steps-behind', linearInt8, { groups: { linear_of_int8: ['sums', 'y'] } }),
  plan('epilogue', linearAdded, { groups: { linear_bias_gelu_added: ['product', 'y'] } }),
]
