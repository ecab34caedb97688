/** History view: medians of each plan over the runs of a suite, a panel per type and shape, with marks at changes. */
import type { HistoryView } from '../model.js'
import { chart, Plot } from './charts.js'
import { hue } from './colors.js'
import { el, factList, legend, tableOf } from './dom.js'
import { short } from './format.js'

type Series = HistoryView['series'][number]
interface Point {
  readonly plan: string
  readonly run: number
  readonly median: number
  readonly low: number
  readonly high: number
}

const pointsOf = (series: readonly Series[]): Point[] =>
  series.flatMap(({ plan, points }) => points.map((point) => ({ plan, ...point })))

interface Mark extends Point {
  readonly verdict: 'slower' | 'faster'
  readonly ratio: number
}

const marksOf = (series: readonly Series[]): Mark[] =>
  series.flatMap(({ plan, points, changes }) =>
    changes.flatMap(({ run, verdict, ratio }): Mark[] => {
      const point = points.find((each) => each.run === run)
      return point === undefined ? [] : [{ ...point, plan, verdict, ratio }]
    }),
  )

/** Ticks at which labels have room. */
const labelWidth = 76

function panel(title: string, series: readonly Series[], view: HistoryView, colorOf: (plan: string) => string): HTMLElement {
  const [points, marks] = [pointsOf(series), marksOf(series)]
  const labelOf = (run: number): string => view.runs[run]?.label ?? ''
  const tell = ({ plan, run, median }: Point): string => `${plan}, ${labelOf(run)}: ${short(median)} µs`
  const told = marks.map(({ plan, run, verdict, ratio }) => `${plan} is ${verdict} by ${ratio.toFixed(2)} since ${labelOf(run)}`)
  const most = view.runs.length - 1
  const figure = chart([`Microseconds over runs at ${title}`, ...told].join('; '), (width) => {
    const room = Math.max(2, Math.floor((width - 80) / labelWidth))
    const step = Math.max(1, Math.ceil((most + 1) / room))
    return {
      height: 230,
      marginLeft: 58,
      marginRight: 44,
      marginBottom: 42,
      marginTop: 20,
      x: {
        label: null,
        domain: most === 0 ? [-0.5, 0.5] : [0, most],
        ticks: view.runs.map((_, run) => run).filter((run) => run % step === 0),
        tickFormat: (run: number) => labelOf(run).replace(/ .*/, ''),
      },
      y: { label: 'µs', grid: true, ticks: 4, zero: true },
      marks: [
        Plot.line(points, { x: 'run', y: 'median', stroke: ({ plan }: Point) => colorOf(plan), z: 'plan', strokeWidth: 1.6 }),
        Plot.ruleX(points, { x: 'run', y1: 'low', y2: 'high', stroke: ({ plan }: Point) => colorOf(plan), strokeOpacity: 0.5 }),
        Plot.dot(points, { x: 'run', y: 'median', r: 2.5, fill: ({ plan }: Point) => colorOf(plan), title: tell }),
        Plot.dot(marks, {
          x: 'run',
          y: 'median',
          r: 6,
          symbol: 'diamond',
          fill: ({ verdict }: Mark) => (verdict === 'slower' ? 'var(--floor)' : 'var(--accent)'),
          stroke: 'var(--page)',
          title: ({ plan, run, verdict, ratio }: Mark) =>
            `${plan} is ${verdict} since ${labelOf(run)}: ${ratio.toFixed(2)} times`,
        }),
      ],
    }
  })
  return el('div', {}, el('h3', {}, title), figure)
}

function oneHistory(view: HistoryView): HTMLElement {
  const plans = [...new Set(view.series.map(({ plan }) => plan))]
  const colorOf = (plan: string): string => hue(plans.indexOf(plan))
  const panels = [...new Set(view.series.map((series) => series.panel))]
  const changes = view.changes.map(({ verdict, text, by }) => [el('span', { class: verdict }, verdict), text, by])
  const marks = [
    { name: 'slower since here', color: 'var(--floor)' },
    { name: 'faster since here', color: 'var(--accent)' },
  ]
  return el(
    'section',
    {},
    el('h2', {}, view.title),
    factList([...view.facts, { name: 'runs', value: String(view.runs.length) }]),
    el('h3', {}, 'Changes'),
    changes.length === 0
      ? el('p', {}, 'No change beyond the limit.')
      : el('div', { class: 'changes' }, tableOf('changes', ['change', 'what', 'test'], changes)),
    legend([...plans.map((name) => ({ name, color: colorOf(name) })), ...(changes.length === 0 ? [] : marks)]),
    el(
      'div',
      { class: 'panels' },
      ...panels.map((title) =>
        panel(
          title,
          view.series.filter((series) => series.panel === title),
          view,
          colorOf,
        ),
      ),
    ),
    el(
      'details',
      {},
      el('summary', {}, 'Runs'),
      tableOf(
        'runs',
        ['run', 'about'],
        view.runs.map(({ label, about }) => [label, about]),
      ),
    ),
  )
}

export const historySection = (views: readonly HistoryView[]): HTMLElement => el('div', {}, ...views.map(oneHistory))
