/** Kernels that plans derive on the simt device equal their IR, which is interpreted: slower than running a body, so cases are smaller. */
import { ops } from '../../specs/index.js'
import type { KernelEntry } from '../../src/emit/manifest.js'
import { checkedElements } from '../../src/verify/cases.js'
import { isTurnOf } from '../turns.js'
import { holdKernels } from './hold.js'

/** At every third commit of an op as many as a check tries. */
const largest = ({ op }: KernelEntry): number => (isTurnOf(op) ? checkedElements.usual : 3_000)

await holdKernels(({ op }) => !Object.hasOwn(ops, op), largest)
