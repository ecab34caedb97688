/** Results of the benchmark as text for a terminal: one table of plans, one of peers, one per profile. */
import Table from 'cli-table3'
import type { Arithmetic, Ceilings } from './floor.js'
import { type BenchEncoderResult, type EncoderTimes, type Peers, type PeerTimes, type Shape, shapeName } from './result.js'
import type { Summary } from './statistics.js'

const style = { head: [], border: [] }
const unknown = '-'

/** Four significant digits. */
export const milliseconds = (value: number): string => value.toPrecision(4)

export const mebibytes = (bytes: number): string => (bytes / 2 ** 20).toFixed(1)

/** Rate of the arithmetic that the batch needs, excluding padding and waste. */
export const teraflops = ({ workload, milliseconds: { median } }: Pick<EncoderTimes, 'workload' | 'milliseconds'>): string =>
  (workload.flops / median / 1e9).toPrecision(3)

/** Number with an SI prefix, to be followed by a unit: `4.26 T`. */
export function rate(value: number): string {
  const [scale, prefix] = value >= 1e12 ? [1e12, 'T'] : value >= 1e9 ? [1e9, 'G'] : [1e6, 'M']
  return `${Number((value / scale).toPrecision(3))} ${prefix}`
}

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

export const spread = ({ low, high }: Summary): string => `${milliseconds(low)} to ${milliseconds(high)}`

/** Ratio of a plan to the fastest peer at its shape. */
export const peerRatio = (times: EncoderTimes, { ratios }: BenchEncoderResult): string | undefined =>
  ratios.find(({ plan, batch, seq }) => plan === times.plan && batch === times.batch && seq === times.seq)?.ratio.toFixed(2)

/** One line per measured plan. */
export const describeTimes = (times: EncoderTimes): string =>
  `${times.plan} ${shapeName(times)}: ${milliseconds(times.milliseconds.median)} ms (${spread(times.milliseconds)})`

/** One line per measured peer. */
export const describePeer = (framework: string, { way, error, milliseconds: time, ...shape }: PeerTimes): string =>
  `${framework} ${way} ${shapeName(shape)}: ${time === undefined ? error : `${milliseconds(time.median)} ms (${spread(time)})`}`

/** Limits of a device used by notes, also in the form stored in files. */
type NotedCeilings = Pick<Ceilings, 'bandwidth'> & {
  readonly peak: Readonly<Partial<Record<Arithmetic, number | undefined>>>
  readonly measured?: boolean | undefined
}

interface NotedDevice {
  readonly name: string
  readonly kind: string
  readonly cacheBytes?: number | undefined
}

interface Noted {
  readonly results: readonly (Shape & {
    readonly floor?: { readonly milliseconds: number } | undefined
    readonly rotation: { readonly passes: number; readonly evicts?: boolean | undefined }
  })[]
  readonly ceilings?: NotedCeilings | undefined
  readonly device: NotedDevice
  readonly dtype: Arithmetic
  readonly peers?: { readonly framework: string; readonly problem?: string | undefined } | undefined
}

/** True if plans of one shape have different floors. */
const hasSeveralFloors = (results: Noted['results']): boolean =>
  results.some((times) =>
    results.some((other) => shapeName(other) === shapeName(times) && other.floor?.milliseconds !== times.floor?.milliseconds),
  )

/** The CPU device emulates threads with fibers, and Node evaluates the IR: a plan that is faster there may be slower on a GPU, and vice versa. */
const cpuNote = 'These are times of the CPU: which plan is faster here says nothing about a GPU.'

/** Sources of floors: measured limits, limits by the device's attributes, and unknown ones. */
export function floorNotes(
  ceilings: NotedCeilings | undefined,
  { name, kind, cacheBytes }: NotedDevice,
  dtype: Arithmetic,
): string[] {
  const cpu = kind === 'simt' || kind === 'js' ? [cpuNote] : []
  if (ceilings === undefined) return [...cpu, `No physical floor: the limits of ${name} (${kind}) are unknown.`]
  const { bandwidth, peak, measured } = ceilings
  const arithmetic = peak[dtype]
  const source = measured === true ? 'measured' : "by the device's attributes, not measured"
  return [
    ...cpu,
    arithmetic === undefined
      ? `Floor: bytes at ${rate(bandwidth)}B/s (${source}); the arithmetic peak of ${dtype} is unknown.`
      : `Floor: ${rate(bandwidth)}B/s or ${rate(arithmetic)}FLOP/s of ${dtype} (${source}), whichever takes longer.`,
    ...(kind === 'cuda' && cacheBytes === undefined
      ? ['The device does not report the size of its cache: 128 MiB are assumed.']
      : []),
  ]
}

/** Notes on the interpretation of the numbers. */
export function notes({ results, ceilings, device, dtype, peers }: Noted): string[] {
  const rotation = results[0]?.rotation
  const lines = [
    ...floorNotes(ceilings, device, dtype),
    ...(hasSeveralFloors(results)
      ? ['Int8 plans have their own floors, by int8 arithmetic and weights; charts show the floor of the first plan.']
      : []),
    'Peak is weights plus arena; its ratio is to weights plus the two largest activations alive at once.',
  ]
  if (rotation?.evicts === true && rotation.passes === 1)
    lines.push('A pass streams more than twice the size of the cache in weights.')
  if (rotation !== undefined && rotation.passes > 1) {
    lines.push(`A replay has ${rotation.passes} passes with separate weights and ids; times are per pass.`)
  }
  if (rotation?.evicts === false) lines.push('The rotating weights are less than twice the cache: passes may hit it.')
  if (peers !== undefined)
    lines.push('Peers compute token ids to the last hidden state; plans also compute the classifier, if the model has one.')
  if (peers?.problem !== undefined) lines.push(`${peers.framework} peers: ${peers.problem}.`)
  return lines
}

function plansTable(result: BenchEncoderResult): string {
  const { results, peers } = result
  const head = ['plan', 'shape', 'mean length', 'median ms', 'quartiles ms', 'of floor', 'TFLOP/s', 'kernels', 'matmuls']
  const table = new Table({ head: [...head, 'arena MiB', 'peak MiB', 'peak ratio', ...(peers ? ['/ peer'] : [])], style })
  for (const times of results) {
    const { plan, meanLength, milliseconds: time, fraction, kernels, matmuls, memory } = times
    table.push([
      plan,
      shapeName(times),
      meanLength.toFixed(1),
      milliseconds(time.median),
      spread(time),
      fraction === undefined ? unknown : percent(fraction),
      teraflops(times),
      kernels,
      matmuls,
      mebibytes(memory.arenaBytes),
      mebibytes(memory.peakBytes),
      memory.ratio.toFixed(2),
      ...(peers ? [peerRatio(times, result) ?? unknown] : []),
    ])
  }
  return table.toString()
}

function peersTable({ framework, about, times }: Peers): string {
  const table = new Table({ head: [framework, 'shape', 'median ms', 'quartiles ms'], style })
  for (const peer of times) {
    const { way, milliseconds: time, error } = peer
    table.push([
      way,
      shapeName(peer),
      ...(time === undefined ? [error ?? unknown, ''] : [milliseconds(time.median), spread(time)]),
    ])
  }
  const versions = Object.entries(about).map(([name, value]) => `${name} ${value}`)
  return [table.toString(), ...(versions.length > 0 ? [versions.join(', ')] : [])].join('\n')
}

function profileTable(times: EncoderTimes): string[] {
  const { plan, profile } = times
  if (profile === undefined) return []
  const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
  const table = new Table({ head: [`${plan} ${shapeName(times)}`, 'count', 'ms', 'share'], style })
  for (const { kernel, count, milliseconds: time } of profile) {
    table.push([kernel, count, milliseconds(time), percent(time / total)])
  }
  return [table.toString()]
}

/** All results; with `profiles`, also the time of every kernel. */
export function benchTable(result: BenchEncoderResult, profiles: boolean): string {
  const { results, peers } = result
  const tables = [
    plansTable(result),
    ...(peers !== undefined && peers.times.length > 0 ? [peersTable(peers)] : []),
    ...(profiles ? results.flatMap(profileTable) : []),
  ]
  return `${[...tables, ...notes(result)].join('\n')}\n`
}
