/** Kernels that plans derive on the simt device equal their IR, which is interpreted: slower than running a body, so cases are smaller. */
import { ops } from '../../specs/index.js'
import { checkedElements } from '../../src/verify/cases.js'
import { holdKernels } from './hold.js'

await holdKernels(({ op }) => !Object.hasOwn(ops, op), { usual: 3_000, most: checkedElements.usual })
