/** Programs as C++ that builds without heddle. */
export { type Declarations, resolve, type ResolveOptions } from './resolve.js'
export { lower, type LowerOptions } from './lower.js'
export type { Lowered } from './lowered.js'
export { writeExport, type WriteOptions } from './write.js'
