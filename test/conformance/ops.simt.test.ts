/** Kernels of ops on the simt device equal their bodies. */
import { ops } from '../../specs/index.js'
import type { KernelEntry } from '../../src/emit/manifest.js'
import { checkedElements } from '../../src/verify/cases.js'
import { isTurnOf } from '../turns.js'
import { holdKernels } from './hold.js'

/** What a body computes in a moment; at every third commit, as many as a check tries. */
const largest = ({ op }: KernelEntry): number => (isTurnOf(op) ? checkedElements.thorough : 12_000)

await holdKernels(({ op }) => Object.hasOwn(ops, op), largest)
