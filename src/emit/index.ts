/** Emission: kernels in, the text of `generated/` out. */
export { generate } from './generate.js'
export { writeGenerated } from './write.js'
