/** Times of LLaMA-like models as text for a terminal: tables of steps, prompts, peers and memory. */
import Table from 'cli-table3'
import { shapeName } from '../result.js'
import { floorNotes, mebibytes, milliseconds, percent, spread } from '../table.js'
import { type BenchLlamaResult, fastestLlamaPeer, type LlamaPeers, type LlamaPlanTimes, type LlamaTimes } from './result.js'

const style = { head: [], border: [] }
const unknown = '-'

/** Four significant digits, never in exponential form such as `7.81e+3`. */
const perSecond = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(4))

/** One line per measured shape. */
export const describeLlama = (times: LlamaTimes): string =>
  `${times.plan}, ${times.what} ${shapeName(times)}: ${milliseconds(times.milliseconds.median)} ms (${spread(times.milliseconds)}), ${perSecond(times.tokensPerSecond)} tokens per second`

/** Time of the fastest peer and its ratio to ours; above 1 this project is faster. */
function beside(times: LlamaTimes, { products }: LlamaPlanTimes, peers: LlamaPeers | undefined): string[] {
  if (peers === undefined) return []
  const peer = fastestLlamaPeer(peers, times, products)
  if (peer === undefined) return [unknown, unknown]
  const { median } = peer.milliseconds
  return [`${milliseconds(median)} (${peer.way})`, (median / times.milliseconds.median).toFixed(2)]
}

const floorText = ({ floor, fraction }: LlamaTimes): string[] =>
  floor === undefined || fraction === undefined
    ? [unknown, unknown]
    : [`${milliseconds(floor.milliseconds)} (${floor.bound})`, percent(fraction)]

/** Number of replays enqueued before the previous one finished. */
const aheadText = ({ begun }: LlamaTimes): string => (begun === undefined ? unknown : `${begun.ahead} of ${begun.runs}`)

function timesTable({ plans, peers }: BenchLlamaResult, what: LlamaTimes['what']): string[] {
  const timed = plans.flatMap((plan) => plan.times.filter((times) => times.what === what).map((times) => ({ plan, times })))
  if (timed.length === 0) return []
  const isStep = what === 'step'
  const table = new Table({
    head: [
      ...(isStep ? ['plan', 'batch x context', 'ms per step'] : ['plan', 'prompts', 'ms']),
      ...['half within', 'tok/s', 'floor ms', 'of floor'],
      ...(isStep ? ['device ms', 'ahead'] : ['chunk']),
      'launches',
      ...(peers === undefined ? [] : ['peer ms', 'times as fast']),
    ],
    style,
  })
  for (const { plan, times } of timed) {
    table.push([
      times.plan,
      shapeName(times),
      milliseconds(times.milliseconds.median),
      spread(times.milliseconds),
      perSecond(times.tokensPerSecond),
      ...floorText(times),
      ...(isStep ? [times.device === undefined ? unknown : milliseconds(times.device.median), aheadText(times)] : [times.chunk]),
      times.launches.toFixed(0),
      ...beside(times, plan, peers),
    ])
  }
  return [table.toString()]
}

function memoryTable({ plans, device }: BenchLlamaResult): string {
  const head = [
    'plan',
    'shape',
    'capacity',
    'weights',
    'states',
    'arena',
    'expected',
    'ratio',
    'device',
    'setup s',
    'load s',
    'load GB/s',
  ]
  const table = new Table({ head, style })
  for (const { loading, times } of plans) {
    for (const { plan, what, capacity, memory, setup, ...shape } of times) {
      const { weightBytes, stateBytes, arenaBytes, expectedBytes, ratio, usedBytes } = memory
      table.push([
        plan,
        `${what} ${shapeName(shape)}`,
        capacity,
        ...[weightBytes, stateBytes, arenaBytes, expectedBytes].map(mebibytes),
        ratio.toFixed(3),
        device.kind === 'simt' ? unknown : mebibytes(usedBytes),
        (setup / 1000).toPrecision(3),
        (loading.milliseconds / 1000).toPrecision(3),
        (loading.bytes / loading.milliseconds / 1e6).toPrecision(3),
      ])
    }
  }
  return table.toString()
}

function peersTable({ framework, about, times, problem }: LlamaPeers): string[] {
  const table = new Table({ head: [framework, 'products', 'shape', 'ms', 'half within', 'its floor', 'peak MiB'], style })
  for (const { way, products, what, milliseconds: time, floor, peakBytes, error, ...shape } of times) {
    table.push([
      way,
      products,
      `${what} ${shapeName(shape)}`,
      ...(time === undefined ? [error ?? unknown, ''] : [milliseconds(time.median), spread(time)]),
      floor === undefined ? unknown : milliseconds(floor),
      peakBytes === undefined ? unknown : mebibytes(peakBytes),
    ])
  }
  const versions = Object.entries(about).map(([name, value]) => `${name} ${value}`)
  return [
    ...(times.length > 0 ? [table.toString()] : []),
    ...(versions.length > 0 ? [versions.join(', ')] : []),
    ...(problem === undefined ? [] : [`${framework} peers: ${problem}.`]),
  ]
}

function profileTables({ plans }: BenchLlamaResult): string[] {
  return plans
    .flatMap(({ times }) => times)
    .flatMap(({ plan, what, profile, ...shape }) => {
      if (profile === undefined) return []
      const table = new Table({
        head: [`${plan}, ${what} ${shapeName(shape)}`, `per ${what === 'step' ? what : 'pass'}`, 'us together', 'us each'],
        style,
      })
      for (const { kernel, count, milliseconds: time } of profile) {
        table.push([kernel, count.toFixed(0), (1000 * time).toFixed(1), ((1000 * time) / count).toFixed(2)])
      }
      return [table.toString()]
    })
}

function notes({ plans, ceilings, device, dtype, weights, window }: BenchLlamaResult): string[] {
  const all = plans.flatMap(({ times }) => times)
  const uncaptured = all.some(({ what, captured }) => what === 'step' && !captured)
  return [
    ...floorNotes(ceilings, device, dtype),
    `A step is one of ${window} around its context, by the host's clock: tokens are chosen on the device, and the host checks for ended texts every 8 steps.`,
    'Prompts are processed to the last token; its logits are computed in the first step.',
    `Expected memory in MiB: ${weights === 'random' ? 'random ' : ''}weights and caches by the configuration, and the arena. Device is the decrease of its free memory.`,
    ...(uncaptured ? ['The device captures no graphs: steps are launched one by one.'] : []),
    ...(all.some(({ evicts }) => evicts === false)
      ? ['Some steps read less than twice the size of the cache: they may hit it, and look faster than they are.']
      : []),
  ]
}

/** Tables of all results. */
export function llamaTable(result: BenchLlamaResult): string {
  const { peers } = result
  const tables = [
    ...timesTable(result, 'step'),
    ...timesTable(result, 'prompt'),
    ...(peers === undefined ? [] : peersTable(peers)),
    memoryTable(result),
    ...profileTables(result),
  ]
  return `${[...tables, ...notes(result)].join('\n')}\n`
}
