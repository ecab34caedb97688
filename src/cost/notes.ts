/** Notes of a schedule with what they cost: the price of the launch that a note is about, beside that of moving its bytes once. */
import type { MappedKernel } from '../schedule/mapped.js'
import { notesOf } from '../schedule/notes/notes.js'
import type { CostDevice } from './device.js'
import { launchesOf, partCosts } from './kernel.js'
import type { LaunchCost } from './launch.js'
import type { Sizes } from './sizes.js'

const micro = 1e6

/** Messages of the notes of a kernel, each with the predicted time of its launch. */
export function pricedNotes(mapped: MappedKernel, sizes: Sizes, device: CostDevice): readonly string[] {
  if (mapped.grouped !== undefined) return []
  const costs = partCosts(mapped, sizes, device)
  return launchesOf(mapped, sizes).flatMap((part, i) => {
    const cost = costs[i]
    return notesOf(part).map(({ message }) => (cost === undefined ? message : `${message}; ${costText(cost, device)}`))
  })
}

/** Time of a launch, and its shortest time by its bytes. */
function costText({ seconds, bytesRead, bytesWritten }: LaunchCost, device: CostDevice): string {
  const least = (bytesRead + bytesWritten) / device.bandwidth + device.launch + device.rates.walk
  return `predicted: ${(seconds * micro).toFixed(1)} us, of which its bytes, moved once, take ${(Math.min(least, seconds) * micro).toFixed(1)} us`
}
