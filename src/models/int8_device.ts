/** Which plans multiply int8, and which devices can. */
import { environmentError } from '../errors.js'
import type { GraphApplication } from '../runtime/application.js'
import type { NativeDeviceInfo } from '../runtime/native.js'

/** Compute capability from which tensor cores multiply int8. */
const firstInt8 = 7.5

/** Whether a plan multiplies int8 by int8: weights alone are converted as they are loaded. */
export const multipliesInt8 = ({ applications }: { readonly applications: readonly GraphApplication[] }): boolean =>
  applications.some(({ graph: { values, weights } }) => {
    const stored = new Set(Object.values(weights))
    return values.some(({ dtype }, id) => dtype === 'i8' && !stored.has(id))
  })

/** @throws environment `device.int8` on a GPU without int8 tensor cores */
export function expectInt8({ kind, name, computeCapability }: NativeDeviceInfo, plan: string): void {
  if (kind !== 'cuda' || Number(computeCapability) >= firstInt8) return
  throw environmentError('device.int8', `plan ${plan} multiplies int8, ${name} has compute capability ${computeCapability}`, {
    hint: `int8 needs ${firstInt8} or newer: choose a plan of floats`,
  })
}
