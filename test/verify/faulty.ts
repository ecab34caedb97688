/** The reference device with planted faults: memory is changed after a kernel has run, before it is read back. */
import { readFileSync } from 'node:fs'
import { layouts, ops } from '../../specs/index.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest/manifest.js'
import type { NativeSlice } from '../../src/runtime/native.js'
import type { Subject } from '../../src/verify/conformance.js'
import { referenceDevice, referenceLibrary, referenceManifest } from '../runtime/reference_device.js'

/** Receives a block of memory when it is read back, and the positions of the kernel's buffers in it. */
export type Fault = (memory: Uint8Array, slices: readonly NativeSlice[]) => void

const manifest = referenceManifest()
/** The shipped manifest: facts follow from bodies, which are not compiled here. */
const shipped = manifestSchema.parse(JSON.parse(readFileSync('generated/manifest.json', 'utf8')))

/** The manifest's entry of an op for one storage type, with its facts. */
export function entryOf(op: string, dtype?: string): KernelEntry {
  const key = dtype === undefined ? op : `${op}__${dtype}`
  const entry = manifest.kernels.find((kernel) => kernel.key === key)
  if (entry === undefined) throw new Error(`no kernel ${key}`)
  const facts = shipped.kernels.find((kernel) => kernel.op === op)?.facts
  return { ...entry, ...(facts === undefined ? {} : { facts }) }
}

/** Subject of `runCase`: op bodies, exact except for the fault. */
export function faultySubject(fault: Fault = () => {}): Subject {
  const { device } = referenceDevice(manifest)
  return {
    library: referenceLibrary(manifest),
    layouts,
    ops,
    device: {
      ...device,
      program(steps) {
        const program = device.program(steps)
        const slices = steps.flatMap((step) => (step.kind === 'kernel' ? step.buffers : []))
        return {
          ...program,
          async run(inputs, outputs) {
            const blocks = await program.run(inputs, outputs)
            for (const block of blocks) fault(block, slices)
            return blocks
          },
        }
      },
    },
  }
}
