/** Emission: from kernels to the files of `generated/`. */
export { generateCandidates } from './candidates.js'
export { generate } from './generate.js'
export { writeGenerated } from './write.js'
