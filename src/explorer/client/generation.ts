/** Generation view: the launches of one step in sequence, predicted or measured. */
import type { Timeline } from '../model.js'
import { chart, fitted, marginFor, Plot } from './charts.js'
import { hue, kindColor } from './colors.js'
import { el, legend, tableOf } from './dom.js'
import { duration, percent, short } from './format.js'

type Span = Timeline['spans'][number]
interface Placed extends Span {
  readonly row: string
  readonly from: number
  readonly to: number
}

function placed(spans: readonly Span[]): Placed[] {
  let at = 0
  return spans.map((span, i) => {
    const from = at
    at += span.microseconds
    return { ...span, row: `${i + 1} ${span.name}`, from, to: at }
  })
}

/**
 * One row per launch, as a staircase; for a measured step, where only kernels are known, one row per kernel.
 * @param longest microseconds of the axis, shared by all timelines of the page
 */
function oneTimeline(timeline: Timeline, longest: number): HTMLElement {
  const { title, ordered, source, total, spans } = timeline
  const steps = placed(spans)
  const kinds = [...new Set(spans.map(({ kind }) => kind))]
  const known = steps.at(-1)?.to ?? 0
  const tell = ({ name, count, microseconds }: Span): string =>
    `${name}${count === 1 ? '' : `, ${short(count)} launches`}: ${duration(microseconds)}, ${percent(microseconds / Math.max(total, known))}`
  const color = ({ kind }: Span): string => (kinds.length > 1 ? kindColor(kind) : hue(0))
  const figure = chart(`${title}: ${steps.map(tell).join('; ')}`, (width) => {
    const names = steps.map(({ name }) => name)
    const marginLeft = Math.min(marginFor(names, width), 240)
    return {
      height: steps.length * 22 + 68,
      marginBottom: 44,
      marginLeft,
      marginRight: 20,
      x: { label: 'µs', grid: true, ticks: 5, domain: [0, longest] },
      y: {
        label: null,
        domain: steps.map(({ row }) => row),
        tickSize: 0,
        tickFormat: (row: string) => fitted(row.replace(/^\d+ /, ''), marginLeft - 10),
      },
      marks: [
        Plot.barX(steps, { x1: 'from', x2: 'to', y: 'row', fill: color, insetTop: 2, insetBottom: 2, title: tell }),
        Plot.ruleX([total], { stroke: 'var(--floor)', strokeDasharray: '5 3' }),
      ],
    }
  })
  const order = ordered ? 'In execution order.' : 'By kernel, the longest first: a measured profile has no order.'
  const left = total > known * 1.001 ? ` ${duration(total - known)} are between and around kernels.` : ''
  const over = known > total * 1.001 ? ' The sum of separately timed kernels exceeds the time of a replayed step.' : ''
  const rows = steps.map((step) => [
    step.name,
    step.kind,
    short(step.count),
    duration(step.microseconds),
    percent(step.microseconds / Math.max(total, known)),
  ])
  return el(
    'section',
    {},
    el('h2', {}, title),
    el(
      'p',
      {},
      `${source === 'predicted' ? 'Predicted' : 'Measured'}: ${duration(total)} (the dashed line). ${order}${left}${over}`,
    ),
    legend(kinds.map((name) => ({ name, color: kinds.length > 1 ? kindColor(name) : hue(0) }))),
    figure,
    el('details', {}, el('summary', {}, 'Numbers'), tableOf(title, ['step', 'kind', 'launches', 'time', 'share'], rows)),
  )
}

const lengthOf = ({ total, spans }: Timeline): number =>
  Math.max(
    total,
    spans.reduce((sum, { microseconds }) => sum + microseconds, 0),
  )

export function generationSection(timelines: readonly Timeline[]): HTMLElement {
  const longest = Math.max(...timelines.map(lengthOf))
  return el('div', {}, ...timelines.map((timeline) => oneTimeline(timeline, longest)))
}
