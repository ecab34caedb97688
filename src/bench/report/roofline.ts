/**
 * Roofline (Williams, Waterman, Patterson 2009): arithmetic a second over arithmetic per byte, both axes logarithmic, under the device's
 * bandwidth and arithmetic ceilings. Work and bytes are those the batch asks for, so all plans of a shape stand above each other and
 * their distance to the roof is what is left to win.
 */
import type { Ceilings } from '../floor.js'
import { type BenchEncoderResult, type EncoderTimes, fastestPeer, shapeName } from '../result.js'
import { milliseconds } from '../table.js'
import { logarithmic, type Scale, tickText } from './scale.js'
import type { Legend } from './stacked.js'
import { drawing, element, escapeText, label, line, type Svg, textWidth } from './svg.js'
import { shapesIn } from './times.js'

interface Point {
  readonly name: string
  readonly shape: string
  readonly kind: string
  /** FLOP per byte. */
  readonly intensity: number
  /** FLOP a second. */
  readonly attained: number
  readonly milliseconds: number
}

const [width, height] = [900, 430]
const [left, right, top, bottom] = [70, 24, 44, 52]
const radius = 5
/** Lines of text on top of each other. */
const lineHeight = 14
const teraflop = 1e12

function pointsOf({ results, peers }: BenchEncoderResult, legend: readonly Legend[]): Point[] {
  const point = (name: string, kind: string, times: EncoderTimes, median: number): Point => ({
    name,
    kind,
    shape: shapeName(times),
    intensity: times.workload.flops / times.workload.bytes,
    attained: (1e3 * times.workload.flops) / median,
    milliseconds: median,
  })
  const plans = results.map((times) =>
    point(times.plan, legend.find(({ name }) => name === times.plan)?.kind ?? 'rest', times, times.milliseconds.median),
  )
  const fastest = shapesIn(results).flatMap((shape) => {
    const peer = fastestPeer(peers, shape)
    const times = results.find(({ batch, seq }) => batch === shape.batch && seq === shape.seq)
    return peer === undefined || times === undefined
      ? []
      : [point(`${peers?.framework} ${peer.way}`, 'peer', times, peer.milliseconds.median)]
  })
  return [...plans, ...fastest]
}

/** The attainable arithmetic at an intensity. */
const roof = (intensity: number, { bandwidth }: Ceilings, peak: number): number => Math.min(peak, bandwidth * intensity)

/** The bandwidth slope and the arithmetic ceiling between two intensities, with their values. */
function drawRoof(ceilings: Ceilings, peak: number, [least, most]: readonly [number, number], x: Scale, y: Scale): Svg[] {
  const ridge = Math.min(Math.max(peak / ceilings.bandwidth, least), most)
  const slope = Math.sqrt(least * ridge)
  const corners = [least, ridge, most].map((at) => `${x.at(at).toFixed(2)},${y.at(roof(at, ceilings, peak)).toFixed(2)}`)
  return [
    element('polyline', { points: corners.join(' '), class: 'roof' }),
    label(x.at(most), y.at(peak) - 8, `${tickText(peak / teraflop)} TFLOP/s`, { kind: 'tick', anchor: 'end' }),
    label(x.at(slope) + 12, y.at(roof(slope, ceilings, peak)) + 8, `${tickText(ceilings.bandwidth / 1e12)} TB/s`, {
      kind: 'tick',
    }),
  ]
}

/** Names each shape once, below its lowest point, where no other name stands. */
function shapeLabels(points: readonly Point[], x: Scale, y: Scale): Svg[] {
  const placed: { at: number; y: number; width: number }[] = []
  const shapes = [...new Set(points.map(({ shape }) => shape))]
  return shapes.map((shape) => {
    const own = points.filter((point) => point.shape === shape)
    const at = x.at(own[0]?.intensity ?? 1)
    const size = textWidth(shape) + 6
    let below = Math.max(...own.map(({ attained }) => y.at(attained))) + radius + lineHeight
    const taken = (): boolean =>
      placed.some((other) => Math.abs(other.at - at) < (other.width + size) / 2 && Math.abs(other.y - below) < lineHeight) ||
      points.some(
        (point) =>
          Math.abs(x.at(point.intensity) - at) < size / 2 + radius && Math.abs(y.at(point.attained) - below + 4) < lineHeight,
      )
    while (taken()) below += 2
    placed.push({ at, y: below, width: size })
    return label(at, below, shape, { kind: 'tick', anchor: 'middle' })
  })
}

/** The chart and what its colours mean. Without ceilings the roof is missing. */
export function rooflineChart(result: BenchEncoderResult): { chart: Svg; legend: Legend[] } {
  const { ceilings, dtype } = result
  const plans = [...new Set(result.results.map(({ plan }) => plan))].map((name, i) => ({ name, kind: `hue${(i % 12) + 1}` }))
  const points = pointsOf(result, plans)
  const peak = ceilings?.peak[dtype]
  const intensities = points.map(({ intensity }) => intensity)
  const rates = [...points.map(({ attained }) => attained), ...(peak === undefined ? [] : [peak])]
  const across = logarithmic(Math.min(...intensities), Math.max(...intensities), width - left - right)
  const up = logarithmic(Math.min(...rates), Math.max(...rates), height - top - bottom)
  const x: Scale = { ...across, at: (value) => left + across.at(value) }
  const y: Scale = { ...up, at: (value) => height - bottom - up.at(value) }
  const [least = 1, most = 1] = [x.ticks.at(0), x.ticks.at(-1)]
  const grid = [
    ...x.ticks.flatMap((tick) => [
      line(x.at(tick), top, x.at(tick), height - bottom, tick === least ? 'axis' : 'grid'),
      label(x.at(tick), height - bottom + 16, tickText(tick), { kind: 'tick', anchor: 'middle' }),
    ]),
    ...y.ticks.flatMap((tick, i) => [
      line(left, y.at(tick), width - right, y.at(tick), i === 0 ? 'axis' : 'grid'),
      label(left - 8, y.at(tick) + 4, tickText(tick / teraflop), { kind: 'tick', anchor: 'end' }),
    ]),
  ]
  const marks = points.map((point) =>
    element('circle', { cx: x.at(point.intensity), cy: y.at(point.attained), r: radius, class: point.kind }, [
      element('title', {}, [escapeText(titleOf(point))]),
    ]),
  )
  const chart = drawing(width, height, 'Roofline', [
    ...grid,
    ...(ceilings === undefined || peak === undefined ? [] : drawRoof(ceilings, peak, [least, most], x, y)),
    ...marks,
    ...shapeLabels(points, x, y),
    label(left - 8, top - 22, 'TFLOP/s', { kind: 'unit', anchor: 'start' }),
    label((left + width - right) / 2, height - 12, 'FLOP per byte', { kind: 'unit', anchor: 'middle' }),
  ])
  const peerEntry = points.some(({ kind }) => kind === 'peer') ? [{ name: 'fastest peer', kind: 'peer' }] : []
  return { chart, legend: [...plans, ...peerEntry] }
}

const titleOf = ({ name, shape, intensity, attained, milliseconds: median }: Point): string =>
  `${name} ${shape}: ${(attained / teraflop).toPrecision(3)} TFLOP/s at ${intensity.toPrecision(3)} FLOP per byte, ${milliseconds(median)} ms`
