/** Programs as C++ that builds without heddle. */
export { exportGenerator, isGenerator, type LoweredGenerator } from './generator.js'
export { type LowerOptions, lower } from './lower.js'
export { keysOf, type Lowered } from './lowered.js'
export { type ExportedModel, exportModel } from './models.js'
export { type Declarations, type ResolveOptions, resolve } from './resolve.js'
export { writeWeights } from './weights_file.js'
export { type WriteOptions, writeExport, writeGenerator } from './write.js'
