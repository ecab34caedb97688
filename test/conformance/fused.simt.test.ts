/** Kernels that plans derive on the simt device equal their IR, which is interpreted: slower than running a body, so cases are smaller. */
import { ops } from '../../specs/index.js'
import { holdKernels } from './hold.js'

const largest = 12_000

await holdKernels(({ op }) => !Object.hasOwn(ops, op), largest)
