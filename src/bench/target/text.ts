/** Times of a kernel or graph as text for a terminal. */
import Table from 'cli-table3'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import type { Arithmetic, Ceilings } from '../floor.js'
import { floorNotes, milliseconds, percent, spread } from '../table.js'
import type { Comparison } from './baseline.js'
import type { TargetTimes } from './measure.js'

const style = { head: [], border: [] }

/** Four significant digits, or all integer digits. */
function microseconds(milliseconds: number): string {
  const value = 1000 * milliseconds
  return value >= 1e4 ? value.toFixed(0) : value.toPrecision(4)
}

export const sizeText = (dims: Readonly<Record<string, number>>): string =>
  Object.entries(dims)
    .map(([dim, extent]) => `${dim}=${extent}`)
    .join(',')

/** One line per measured form, in milliseconds if microseconds would have five digits. */
export const describeTarget = ({ plan, milliseconds: time }: Pick<TargetTimes, 'plan' | 'milliseconds'>): string =>
  time.median >= 10
    ? `${plan}: ${milliseconds(time.median)} ms (${spread(time)})`
    : `${plan}: ${microseconds(time.median)} us (${microseconds(time.low)} to ${microseconds(time.high)})`

const priceText = (milliseconds: number | undefined): string => (milliseconds === undefined ? '-' : microseconds(milliseconds))

/** One table per size, followed by notes. */
export function targetTable(
  sizes: readonly (readonly TargetTimes[])[],
  {
    device,
    ceilings,
    dtype,
  }: { readonly device: NativeDeviceInfo; readonly ceilings: Ceilings | undefined; readonly dtype: Arithmetic },
): string {
  const tables = sizes.map((results) => {
    const [first] = results
    const [other] = results.flatMap(({ elsewhere }) => elsewhere ?? [])
    const table = new Table({
      head: [
        sizeText(first?.dims ?? {}),
        'median us',
        'quartiles us',
        'floor us',
        'of floor',
        other === undefined ? 'predicted us' : `${other.device} us, predicted`,
        'launches',
        'slowest step',
      ],
      style,
    })
    for (const { plan, milliseconds, floor, fraction, predicted, elsewhere, launches, profile } of results) {
      const [slowest] = profile
      table.push([
        plan,
        microseconds(milliseconds.median),
        `${microseconds(milliseconds.low)} to ${microseconds(milliseconds.high)}`,
        floor === undefined ? '-' : `${microseconds(floor.milliseconds)} (${floor.bound})`,
        fraction === undefined ? '-' : percent(fraction),
        priceText(other === undefined ? predicted : elsewhere?.milliseconds),
        String(launches),
        slowest === undefined ? '-' : `${slowest.kernel}, ${microseconds(slowest.milliseconds)} us`,
      ])
    }
    return table.toString()
  })
  return `${[...tables, ...targetNotes(sizes.flat(), ceilings, device, dtype)].join('\n')}\n`
}

function targetNotes(
  results: readonly TargetTimes[],
  ceilings: Ceilings | undefined,
  device: NativeDeviceInfo,
  dtype: Arithmetic,
): string[] {
  const zeros = new Set(results.flatMap((times) => times.zeros))
  const passes = Math.max(1, ...results.map(({ rotation }) => rotation.passes))
  return [
    ...floorNotes(ceilings, device, dtype),
    ...(results.some(({ workload }) => workload.flops === undefined)
      ? ['The signature of this kernel does not determine its arithmetic: its floor counts bytes only.']
      : []),
    ...(passes > 1 ? [`A replay has up to ${passes} runs over separate data, to defeat the cache; times are per run.`] : []),
    ...(results.some(({ rotation }) => rotation.evicts === false) ? ['The rotating data is less than twice the cache.'] : []),
    ...priceNotes(results),
    ...(zeros.size > 0 ? [`Integers filled with zeros, because no fact states their range: ${[...zeros].join(', ')}.`] : []),
  ]
}

function priceNotes(results: readonly TargetTimes[]): string[] {
  const [other] = results.flatMap(({ elsewhere }) => elsewhere ?? [])
  if (other === undefined && results.every(({ predicted }) => predicted === undefined)) return []
  const limits = other === undefined ? 'at these limits' : `on ${other.device}, whose ranking of plans these times follow`
  return [`Predicted: per launch a fixed time plus the longest of memory traffic, caches and instructions ${limits}.`]
}

/** Verdicts of a comparison, one line each. */
export const comparisonText = (comparisons: readonly Comparison[]): string =>
  comparisons
    .map(
      ({ plan, dims, ratio, chance, verdict }) =>
        `${verdict}: ${plan} ${sizeText(dims)} takes ${ratio.toFixed(3)} times as long as before (chance ${chance < 1e-4 ? '< 0.0001' : chance.toFixed(4)})\n`,
    )
    .join('')
