/** Runs of `heddle bench encoder` for the page. */
import { mebibytes, milliseconds, notes, spread, teraflops } from '../../bench/table.js'
import type { Dot, Run, RunRow, RunTable } from '../model.js'
import { profileTables } from './profile.js'
import type { EncoderRun } from './read.js'
import { percentOf, replayText, sizeText, timeText, unknown } from './text.js'

type Times = EncoderRun['results'][number]

const wayOf = ({ peers }: EncoderRun, way: string): string => `${peers?.framework ?? ''} ${way}`

function rowsOf(run: EncoderRun): RunRow[] {
  const plans = run.results.map((times): RunRow => {
    const { plan, milliseconds: time, floor, profile } = times
    return {
      name: plan,
      peer: false,
      shape: sizeText(times),
      milliseconds: time,
      ...(floor === undefined ? {} : { floor: floor.milliseconds }),
      ...(profile === undefined ? {} : { profile }),
    }
  })
  const peers = (run.peers?.times ?? []).flatMap((times): RunRow[] => {
    const { way, milliseconds: time } = times
    return time === undefined ? [] : [{ name: wayOf(run, way), peer: true, shape: sizeText(times), milliseconds: time }]
  })
  return [...plans, ...peers]
}

/** Dots of every plan, and of the fastest peer of each shape. Work is that of the batch, so plans of a shape have equal intensity. */
function dotsOf(run: EncoderRun): Dot[] {
  const dot = (name: string, peer: boolean, times: Times, median: number): Dot => ({
    name,
    of: sizeText(times),
    peer,
    intensity: times.workload.flops / times.workload.bytes,
    attained: (1e3 * times.workload.flops) / median,
  })
  const plans = run.results.map((times) => dot(times.plan, false, times, times.milliseconds.median))
  const shapes = [...new Map(run.results.map((times) => [sizeText(times), times])).values()]
  const peers = shapes.flatMap((times): Dot[] => {
    const timed = (run.peers?.times ?? []).flatMap(({ milliseconds: time, ...peer }) =>
      time !== undefined && sizeText(peer) === sizeText(times) ? [{ way: peer.way, median: time.median }] : [],
    )
    const [fastest] = timed.sort((a, b) => a.median - b.median)
    return fastest === undefined ? [] : [dot(wayOf(run, fastest.way), true, times, fastest.median)]
  })
  return [...plans, ...peers]
}

function timeTable({ results, peers, ratios }: EncoderRun): RunTable {
  const ratioOf = ({ plan, batch, seq }: Times): string =>
    ratios.find((each) => each.plan === plan && each.batch === batch && each.seq === seq)?.ratio.toFixed(2) ?? unknown
  const columns = ['plan', 'shape', 'mean length', 'median ms', 'quartiles ms', 'best ms', 'samples', 'floor ms', 'of floor']
  const rows = results.map((times) => [
    times.plan,
    sizeText(times),
    times.meanLength.toFixed(1),
    milliseconds(times.milliseconds.median),
    spread(times.milliseconds),
    milliseconds(times.milliseconds.best),
    String(times.milliseconds.samples),
    timeText(times.floor?.milliseconds),
    percentOf(times.fraction),
    ...(peers === undefined ? [] : [ratioOf(times)]),
    teraflops(times),
    replayText(times.captured),
  ])
  const last = ['TFLOP/s', 'replay']
  return { title: 'Time', columns: [...columns, ...(peers === undefined ? [] : ['/ fastest peer']), ...last], rows }
}

function memoryTable({ results }: EncoderRun): RunTable {
  const columns = [
    'plan',
    'shape',
    'kernels',
    'matmuls',
    'weights MiB',
    'arena MiB',
    'peak MiB',
    'two largest live MiB',
    'peak ratio',
  ]
  const rows = results.map(({ plan, kernels, matmuls, memory, ...shape }) => [
    plan,
    sizeText(shape),
    String(kernels),
    String(matmuls),
    mebibytes(memory.weightBytes),
    mebibytes(memory.arenaBytes),
    mebibytes(memory.peakBytes),
    mebibytes(memory.twoLargestBytes),
    memory.ratio.toFixed(2),
  ])
  return { title: 'Steps and memory', columns, rows }
}

function peerTables({ peers }: EncoderRun): RunTable[] {
  if (peers === undefined || peers.times.length === 0) return []
  const rows = peers.times.map(({ way, error, milliseconds: time, ...shape }) =>
    time === undefined
      ? [way, sizeText(shape), error ?? unknown, '', '']
      : [way, sizeText(shape), milliseconds(time.median), spread(time), milliseconds(time.best)],
  )
  return [{ title: `Peers: ${peers.framework}`, columns: ['way', 'shape', 'median ms', 'quartiles ms', 'best ms'], rows }]
}

export function encoderView(run: EncoderRun): Omit<Run, 'file'> {
  const { device, config, dtype, lengths, peers, ceilings } = run
  const peak = ceilings?.peak[dtype]
  return {
    title: `Encoder plans on ${device.name}`,
    facts: [
      { name: 'model', value: `${config}, random weights` },
      { name: 'storage type', value: dtype },
      { name: 'lengths', value: lengths },
      { name: 'device', value: `${device.name} (${device.kind})` },
      ...Object.entries(peers?.about ?? {}).map(([name, value]) => ({ name: `peer ${name}`, value })),
    ],
    notes: notes(run),
    rows: rowsOf(run),
    ...(ceilings === undefined || peak === undefined ? {} : { roof: { bandwidth: ceilings.bandwidth, peak } }),
    dots: dotsOf(run),
    tables: [timeTable(run), memoryTable(run), ...peerTables(run), ...profileTables(rowsOf(run))],
  }
}
