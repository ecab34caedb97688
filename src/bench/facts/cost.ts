/** Cost-model parameters of this machine's device: its own bandwidth, peaks and multiprocessors, and the times of the nearest measured device. */
import { type CostDevice, costDevice, type PriceType, priceTypes, type WalkRates } from '../../cost/device.js'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Ceilings } from '../floor.js'

/** Highest clock that an H200 states, and its float32 operations per second at it: 132 multiprocessors x 256. */
const usualClock = 1.98e9
const usualPeak = 132 * 256 * usualClock

type About = Pick<NativeDeviceInfo, 'kind'> & Partial<Pick<NativeDeviceInfo, 'multiprocessors' | 'clockHz' | 'cacheBytes'>>

/** Undefined if the peak of the type is unknown, because a prediction would be made up. */
export function costOf(info: About, ceilings: Ceilings | undefined, dtype: PriceType): CostDevice | undefined {
  const known = ceilings?.peak[dtype]
  if (ceilings === undefined || known === undefined) return undefined
  const { launch, product, warps, rates } = costDevice(info.kind === 'cuda' ? 'h200' : 'simt')
  const floats = Object.fromEntries(priceTypes.map((type) => [type, ceilings.peak[type] ?? known])) as Record<PriceType, number>
  return {
    bandwidth: ceilings.bandwidth,
    peak: { ...floats, i8: ceilings.peak.i8 ?? known },
    launch,
    product,
    warps,
    rates: info.kind === 'cuda' ? ratesOf(rates, info, ceilings) : rates,
  }
}

/** Rates of kernels that are not matmuls, in proportion to what the device states. */
function ratesOf(
  rates: WalkRates,
  { multiprocessors = rates.multiprocessors, clockHz, cacheBytes }: About,
  { stated }: Ceilings,
): WalkRates {
  const share = (multiprocessors / rates.multiprocessors) * ((clockHz ?? usualClock) / usualClock)
  return {
    ...rates,
    multiprocessors,
    issue: rates.issue * ((stated?.peak.f32 ?? usualPeak * share) / usualPeak),
    cache: rates.cache * share,
    near: rates.near * share,
    cacheBytes: cacheBytes ?? rates.cacheBytes,
  }
}
