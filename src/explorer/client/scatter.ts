/** Charts with logarithmic axes: roofline, and predicted versus measured times. */
import type { BenchView, Dot, Run } from '../model.js'
import { chart, Plot, tag } from './charts.js'
import { hue } from './colors.js'
import { el, legend, tableOf } from './dom.js'
import { logTick, scaled, short } from './format.js'

/** Points of the roof: the bandwidth slope up to the ridge, then the arithmetic ceiling. */
function roofLine({ bandwidth, peak }: NonNullable<Run['roof']>, [least, most]: readonly [number, number]) {
  const ridge = peak / bandwidth
  const at = (intensity: number) => ({ x: intensity, y: Math.min(peak, bandwidth * intensity) })
  return [at(least), ...(ridge > least && ridge < most ? [at(ridge)] : []), at(most)]
}

export function rooflineSection({ roof, dots }: Run): HTMLElement[] {
  if (dots.length === 0) return []
  const names = [...new Set(dots.map(({ name, peer }) => (peer ? 'fastest peer' : name)))]
  const colorOf = ({ name, peer }: Dot): string => (peer ? 'var(--peer)' : hue(names.indexOf(name)))
  const ridge = roof === undefined ? [] : [roof.peak / roof.bandwidth]
  const intensities = [...dots.map(({ intensity }) => intensity), ...ridge]
  const ends = [Math.min(...intensities) / 2, Math.max(...intensities) * 2] as const
  const tell = ({ name, of, intensity, attained }: Dot): string =>
    `${name}, ${of}: ${scaled(attained, 'FLOP/s')} at ${short(intensity)} FLOP per byte`
  // One label for dots at the same intensity.
  const labelled = [...new Map(dots.map((dot) => [`${dot.of} ${dot.intensity}`, dot])).values()].map((dot) => ({
    ...dot,
    attained: Math.min(...dots.filter(({ intensity }) => intensity === dot.intensity).map(({ attained }) => attained)),
  }))
  const figure = chart(`Roofline. ${dots.map(tell).join('; ')}`, () => ({
    height: 400,
    marginLeft: 66,
    marginRight: 24,
    marginTop: 30,
    marginBottom: 44,
    x: { type: 'log', domain: ends, label: 'FLOP per byte', grid: true, tickFormat: (value: number) => logTick(value), ticks: 5 },
    y: {
      type: 'log',
      label: 'FLOP/s',
      grid: true,
      tickFormat: (value: number) => logTick(value, (each) => scaled(each, '')),
      ticks: 5,
      nice: true,
    },
    marks: [
      ...(roof === undefined
        ? []
        : [Plot.line(roofLine(roof, ends), { x: 'x', y: 'y', stroke: 'var(--floor)', strokeWidth: 1.5 })]),
      Plot.dot(dots, { x: 'intensity', y: 'attained', r: 5, fill: colorOf, stroke: 'var(--page)', title: tell }),
      Plot.text(labelled, {
        x: 'intensity',
        y: 'attained',
        text: 'of',
        className: tag,
        dy: 16,
        fill: 'currentColor',
        stroke: 'var(--page)',
        strokeWidth: 3,
      }),
    ],
  }))
  const entries = names.map((name) => ({ name, color: name === 'fastest peer' ? 'var(--peer)' : hue(names.indexOf(name)) }))
  const about =
    roof === undefined
      ? 'The device’s ceilings are unknown, so there is no roof.'
      : `The line is the limit of the device: ${scaled(roof.bandwidth, 'B/s')} and ${scaled(roof.peak, 'FLOP/s')}. The distance to it is the remaining potential.`
  return [el('section', { id: 'roofline' }, el('h2', {}, 'Roofline'), el('p', {}, about), legend(entries), figure)]
}

export function predictionsSection({ predictions }: BenchView): HTMLElement[] {
  if (predictions.length === 0) return []
  const plans = [...new Set(predictions.map(({ plan }) => plan))]
  const most = Math.max(...predictions.flatMap(({ predicted, measured }) => [predicted, measured]))
  const least = Math.min(...predictions.flatMap(({ predicted, measured }) => [predicted, measured]))
  const domain = [least / 1.5, most * 1.5]
  const figure = chart('Predicted and measured microseconds of each kernel', () => ({
    height: 360,
    marginLeft: 60,
    marginRight: 20,
    marginTop: 30,
    marginBottom: 44,
    x: { type: 'log', domain, label: 'predicted µs', grid: true, ticks: 4, tickFormat: (value: number) => logTick(value) },
    y: { type: 'log', domain, label: 'measured µs', grid: true, ticks: 4, tickFormat: (value: number) => logTick(value) },
    marks: [
      Plot.line(
        domain.map((at) => ({ at })),
        { x: 'at', y: 'at', stroke: 'var(--quiet)', strokeDasharray: '4 3' },
      ),
      Plot.dot(predictions, {
        x: 'predicted',
        y: 'measured',
        r: 5,
        fill: ({ plan }: { readonly plan: string }) => hue(plans.indexOf(plan)),
        stroke: 'var(--page)',
        title: ({
          name,
          predicted,
          measured,
        }: {
          readonly name: string
          readonly predicted: number
          readonly measured: number
        }) => `${name}: predicted ${short(predicted)} µs, measured ${short(measured)} µs`,
      }),
    ],
  }))
  const rows = predictions.map(({ name, plan, predicted, measured }) => [
    name,
    plan,
    short(predicted),
    short(measured),
    (measured / predicted).toFixed(2),
  ])
  return [
    el(
      'section',
      { id: 'predictions' },
      el('h2', {}, 'Predicted and measured'),
      el('p', {}, 'One launch of each kernel. On the dashed line both are equal; above it, a kernel is slower than predicted.'),
      legend(plans.map((name, i) => ({ name, color: hue(i) }))),
      el('div', { class: 'panels' }, figure),
      tableOf('predicted and measured', ['kernel', 'plan', 'predicted µs', 'measured µs', 'ratio'], rows),
    ),
  ]
}
