/** Runs of `heddle bench` over a named kernel, graph or program, over decoding and over a LLaMA, and saved times, for the page. */

import { summarise } from '../../bench/statistics.js'
import { floorNotes, milliseconds, spread } from '../../bench/table.js'
import type { Dot, Run, RunRow, RunTable } from '../model.js'
import { profileTables } from './profile.js'
import type { DecodingRun, LlamaRun, SavedRun, TargetRun } from './read.js'
import { dimsText, percentOf, replayText, sizeText, timeText, unknown } from './text.js'

type View = Omit<Run, 'file'>
type LlamaTimes = LlamaRun['plans'][number]['times'][number]

const floorOf = (floor: { readonly milliseconds: number } | undefined) =>
  floor === undefined ? {} : { floor: floor.milliseconds }
const profileOf = (profile: RunRow['profile']) => (profile === undefined ? {} : { profile })

export function targetView({ subject, kind, dtype, device, ceilings, sizes }: TargetRun): View {
  const all = sizes.flat()
  const rows = all.map(
    ({ plan, dims, milliseconds: time, floor, predicted, profile }): RunRow => ({
      name: plan,
      peer: false,
      shape: dimsText(dims),
      milliseconds: time,
      ...floorOf(floor),
      ...(predicted === undefined ? {} : { predicted }),
      ...profileOf(profile),
    }),
  )
  const dots = all.flatMap(({ plan, dims, milliseconds: time, workload: { bytes, flops } }): Dot[] =>
    flops === undefined || flops === 0 || bytes === 0
      ? []
      : [{ name: plan, of: dimsText(dims), peer: false, intensity: flops / bytes, attained: (1e3 * flops) / time.median }],
  )
  const peak = ceilings?.peak[dtype]
  const columns = [
    'plan',
    'shape',
    'median ms',
    'quartiles ms',
    'best ms',
    'samples',
    'predicted ms',
    'floor ms',
    'of floor',
    'launches',
    'replay',
  ]
  const table = all.map(({ plan, dims, milliseconds: time, predicted, floor, fraction, launches, captured }) => [
    plan,
    dimsText(dims),
    milliseconds(time.median),
    spread(time),
    milliseconds(time.best),
    String(time.samples),
    timeText(predicted),
    timeText(floor?.milliseconds),
    percentOf(fraction),
    String(launches),
    replayText(captured),
  ])
  return {
    title: `${subject} on ${device.name}`,
    facts: [
      { name: kind, value: subject },
      { name: 'storage type', value: dtype },
      { name: 'device', value: `${device.name} (${device.kind})` },
    ],
    notes: floorNotes(ceilings, device, dtype),
    rows,
    ...(ceilings === undefined || peak === undefined ? {} : { roof: { bandwidth: ceilings.bandwidth, peak } }),
    dots,
    tables: [{ title: 'Time', columns, rows: table }, ...profileTables(rows)],
  }
}

export function decodingView({ device, results }: DecodingRun): View {
  const shapeOf = ({ batch, width, steps }: DecodingRun['results'][number]): string =>
    `batch ${batch}, ${width === 1 ? '' : `${width} beams, `}${steps} steps`
  const rows = results.map(
    (times): RunRow => ({
      name: times.plan,
      peer: false,
      shape: shapeOf(times),
      milliseconds: times.step,
      ...profileOf(times.profile),
    }),
  )
  const columns = ['plan', 'shape', 'step ms', 'quartiles ms', 'all steps ms', 'kernels', 'matmuls', 'replay']
  const table = results.map((times) => [
    times.plan,
    shapeOf(times),
    milliseconds(times.step.median),
    spread(times.step),
    milliseconds(times.milliseconds.median),
    String(times.kernels),
    String(times.matmuls),
    replayText(times.captured),
  ])
  return {
    title: `Decoding on ${device.name}`,
    facts: [{ name: 'device', value: `${device.name} (${device.kind})` }],
    notes: ['Times are per step by the device’s clock, from replays without copies.'],
    rows,
    dots: [],
    tables: [{ title: 'Time', columns, rows: table }, ...profileTables(rows)],
  }
}

const llamaShape = (times: { readonly what: string; readonly batch: number; readonly seq: number }): string =>
  `${times.what} ${sizeText(times)}`

/** Rows of the plans. */
const llamaRows = (all: readonly LlamaTimes[]): RunRow[] =>
  all.map((times) => ({
    name: times.plan,
    peer: false,
    shape: llamaShape(times),
    milliseconds: times.milliseconds,
    ...floorOf(times.floor),
    ...profileOf(times.profile),
  }))

/** Rows of the peers that were timed. */
const llamaPeerRows = (peers: LlamaRun['peers']): RunRow[] =>
  (peers?.times ?? []).flatMap((times): RunRow[] =>
    times.milliseconds === undefined
      ? []
      : [
          {
            name: `${peers?.framework ?? ''} ${times.way} ${times.products}`,
            peer: true,
            shape: llamaShape(times),
            milliseconds: times.milliseconds,
          },
        ],
  )

function llamaTable(all: readonly LlamaTimes[]): RunTable {
  const columns = [
    'plan',
    'shape',
    'median ms',
    'quartiles ms',
    'on the device ms',
    'tokens/s',
    'floor ms',
    'of floor',
    'launches',
    'replay',
  ]
  const rows = all.map((times) => [
    times.plan,
    llamaShape(times),
    milliseconds(times.milliseconds.median),
    spread(times.milliseconds),
    timeText(times.device?.median),
    times.tokensPerSecond.toPrecision(4),
    timeText(times.floor?.milliseconds),
    percentOf(times.fraction),
    String(times.launches),
    replayText(times.captured),
  ])
  return { title: 'Time', columns, rows }
}

export function llamaView({ device, shape, dtype, weights, plans, peers }: LlamaRun): View {
  const all = plans.flatMap(({ times }) => times)
  const rows = llamaRows(all)
  return {
    title: `LLaMA on ${device.name}`,
    facts: [
      { name: 'model', value: `${shape}, ${weights} weights` },
      { name: 'storage type', value: dtype },
      { name: 'device', value: `${device.name} (${device.kind})` },
    ],
    notes: ['A step generates one token per sequence of the batch; a prompt is processed whole. Times are by the host’s clock.'],
    rows: [...rows, ...llamaPeerRows(peers)],
    dots: [],
    tables: [llamaTable(all), ...profileTables(rows)],
  }
}

/** View of saved times, which contain samples only. */
export function savedView({ subject, device, dtype, results }: SavedRun): View {
  const rows = results.map(
    ({ plan, dims, samples }): RunRow => ({ name: plan, peer: false, shape: dimsText(dims), milliseconds: summarise(samples) }),
  )
  const table = rows.map(({ name, shape, milliseconds: time }) => [
    name,
    shape || unknown,
    milliseconds(time.median),
    spread(time),
    milliseconds(time.best),
    String(time.samples),
  ])
  return {
    title: `${subject} on ${device}`,
    facts: [
      { name: 'subject', value: subject },
      { name: 'storage type', value: dtype },
      { name: 'device', value: device },
    ],
    notes: ['Saved times: no profile, no floor.'],
    rows,
    dots: [],
    tables: [{ title: 'Time', columns: ['plan', 'shape', 'median ms', 'quartiles ms', 'best ms', 'samples'], rows: table }],
  }
}
