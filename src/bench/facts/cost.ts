/** Cost-model parameters of this machine's device: its own bandwidth and peaks, and the launch times of the nearest measured device. */
import { type CostDevice, costDevice, type PriceType, priceTypes } from '../../fuse/search/cost.js'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Ceilings } from '../floor.js'

/** Undefined if the peak of the type is unknown, because a prediction would be made up. */
export function costOf(
  { kind }: Pick<NativeDeviceInfo, 'kind'>,
  ceilings: Ceilings | undefined,
  dtype: PriceType,
): CostDevice | undefined {
  const known = ceilings?.peak[dtype]
  if (ceilings === undefined || known === undefined) return undefined
  const { launch, product, warps } = costDevice(kind === 'cuda' ? 'h200' : 'simt')
  const floats = Object.fromEntries(priceTypes.map((type) => [type, ceilings.peak[type] ?? known])) as Record<PriceType, number>
  return { bandwidth: ceilings.bandwidth, peak: { ...floats, i8: ceilings.peak.i8 ?? known }, launch, product, warps }
}
