/** Emission: kernels in, the text of `generated/` out. Inspection reads schedules through here as well. */
export { describeSchedule } from '../schedule/describe.js'
export { mapKernel } from '../schedule/map.js'
export { emitInstance, type GeneratedFiles, generate, generateInstances } from './generate.js'
export { type WriteOptions, writeGenerated } from './write.js'
