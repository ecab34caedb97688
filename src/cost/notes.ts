/** Notes of a schedule with what they cost: the price of the launch that a note is about, beside that of moving its bytes once. */
import type { Expr } from '../ir/expr.js'
import { stmtExprs } from '../ir/walk.js'
import { type MappedKernel, scheduledLaunch } from '../schedule/mapped.js'
import { contains } from '../schedule/normalise/rewrite.js'
import { notesOf } from '../schedule/notes/notes.js'
import type { CostDevice } from './device.js'
import { launchesOf, partCosts } from './kernel.js'
import type { LaunchCost } from './launch.js'
import type { Sizes } from './sizes.js'

const micro = 1e6
/** A launch gets a note by its sizes if it is predicted to take this many times as long as moving its bytes, and this much longer. */
const slowRatio = 2
const slowSeconds = 5e-6

/** Messages of the notes of a kernel, each with the predicted time of its launch. Some notes follow from sizes alone. */
export function pricedNotes(mapped: MappedKernel, sizes: Sizes, device: CostDevice): readonly string[] {
  if (mapped.grouped !== undefined) return []
  const costs = partCosts(mapped, sizes, device)
  const isLong = scheduledLaunch(mapped) !== mapped
  return launchesOf(mapped, sizes).flatMap((part, i) => {
    const cost = costs[i]
    const notes = isLong ? notesOf(part).filter(({ kind }) => kind !== 'one block') : notesOf(part)
    const messages = notes.map(({ message }) => message)
    if (cost === undefined) return messages
    const sized = isSlow(cost, device) ? [...fewRowsMessages(part, cost, device), ...windowMessages(part)] : []
    const all = notes.some(({ kind }) => kind === 'matmul') ? messages : [...messages, ...sized]
    return all.map((message) => `${message}; ${costText(cost, device)}`)
  })
}

/** True for a launch that takes much longer than its bytes do. */
function isSlow(cost: LaunchCost, device: CostDevice): boolean {
  const least = leastOf(cost, device)
  return cost.seconds >= slowRatio * least && cost.seconds - least >= slowSeconds
}

/** Seconds in which the bytes of a launch move once. */
const leastOf = ({ seconds, bytesRead, bytesWritten }: LaunchCost, device: CostDevice): number =>
  Math.min(seconds, (bytesRead + bytesWritten) / device.bandwidth + device.launch + device.rates.walk)

/** Note on rows that are so few and so long that the blocks that compute them leave most of the device idle. */
function fewRowsMessages({ program, axes, instance }: MappedKernel, cost: LaunchCost, device: CostDevice): readonly string[] {
  const { blocks } = cost
  const { multiprocessors } = device.rates
  if (program.kind !== 'rows' || axes.length === 0 || blocks >= multiprocessors) return []
  const idle = `a block computes each row, and ${blocks} blocks leave ${multiprocessors - blocks} of ${multiprocessors} multiprocessors idle`
  // Reductions alone have this repair: results of a scan or a ranking pass from one part of a row to the next.
  const isReduced = instance.kernel.body.every(({ kind }) => reducedKinds.has(kind))
  return [
    isReduced
      ? `${idle}; write a row as two axes, and its reductions as nested ones, sum(p, (i) => sum(k, (j) => x(m, i, j))): several blocks then divide a row`
      : idle,
  ]
}

/** Note on sums in elements, such as those over windows: each thread computes one element, by loads of one value each. */
function windowMessages({ program, vec, instance }: MappedKernel): readonly string[] {
  const sums = instance.kernel.body.some((s) => s.kind === 'reduce' || stmtExprs(s).some((e) => contains(e, isFold)))
  if (program.kind !== 'elementwise' || vec > 1 || !sums) return []
  return [
    'a thread computes one element, and its sum loads each value by itself; few terms that are written out, ' +
      'x(i, j - 1) * k(0) + x(i, j) * k(1) + ..., are computed in chunks of several elements per thread',
  ]
}

const isFold = ({ kind }: Expr): boolean => kind === 'fold'

const reducedKinds: ReadonlySet<string> = new Set(['row', 'let', 'reduce', 'merge', 'store', 'storeRow'])

/** Time of a launch, and its shortest time by its bytes. */
const costText = (cost: LaunchCost, device: CostDevice): string =>
  `predicted: ${(cost.seconds * micro).toFixed(1)} us, of which its bytes, moved once, take ${(leastOf(cost, device) * micro).toFixed(1)} us`
