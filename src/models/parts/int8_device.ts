/** Detection of plans that multiply int8, and of devices without int8 tensor cores. */
import { environmentError } from '../../errors.js'
import { computesInt8 } from '../../ir/graph.js'
import type { GraphApplication } from '../../runtime/application.js'
import type { NativeDeviceInfo } from '../../runtime/native.js'

/** Lowest compute capability with int8 tensor cores. */
const firstInt8 = 7.5

/** True if a plan multiplies int8 by int8. Plans with int8 weights alone convert them as they are loaded. */
export const multipliesInt8 = ({ applications }: { readonly applications: readonly GraphApplication[] }): boolean =>
  applications.some(({ graph }) => computesInt8(graph))

/** @throws environment `device.int8` on a GPU without int8 tensor cores */
export function expectInt8({ kind, name, computeCapability }: NativeDeviceInfo, plan: string): void {
  if (kind !== 'cuda' || Number(computeCapability) >= firstInt8) return
  throw environmentError('device.int8', `plan ${plan} multiplies int8, ${name} has compute capability ${computeCapability}`, {
    hint: `int8 needs ${firstInt8} or newer: choose a float plan`,
  })
}
