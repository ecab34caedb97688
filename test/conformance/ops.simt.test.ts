/** Kernels of ops on the simt device equal their bodies. */
import { ops } from '../../specs/index.js'
import { checkedElements } from '../../src/verify/cases.js'
import { holdKernels } from './hold.js'

await holdKernels(({ op }) => Object.hasOwn(ops, op), { usual: 12_000, most: checkedElements.thorough })
