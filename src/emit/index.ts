/** Emission: kernels in, the text of `generated/` out. */
export { generateCandidates } from './candidates.js'
export { generate } from './generate.js'
export { writeGenerated } from './write.js'
