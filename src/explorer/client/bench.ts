/** Bench view: times with spread, comparison of two runs, time per kernel, roofline, predictions, and all numbers. */
import type { BenchView, Run, RunRow } from '../model.js'
import { chart, fitted, marginFor, Plot, textWidth } from './charts.js'
import { el, factList, legend, tableOf } from './dom.js'
import { chance, milliseconds, percent, short } from './format.js'
import { predictionsSection, rooflineSection } from './scatter.js'
import { stackedSection } from './stacked.js'

const rowHeight = 30

const shapesIn = (rows: readonly RunRow[]): string[] => [...new Set(rows.map(({ shape }) => shape))]

/** Label after a bar. */
function noteOf({ milliseconds: { median }, floor, predicted }: RunRow): string {
  const share = floor === undefined ? '' : ` · ${percent(floor / median)} of floor`
  const prediction = predicted === undefined ? '' : ` · predicted ${predicted.toPrecision(3)}`
  return `${median.toPrecision(4)}${share}${prediction}`
}

/** One panel per shape: a bar to the median, a whisker over the quartiles, a dashed line at the floor, a tick at the prediction. */
function timesPanel(shape: string, rows: readonly RunRow[]): HTMLElement {
  const [floor] = rows.flatMap((row) => (row.floor === undefined ? [] : [row.floor]))
  const names = rows.map(({ name }) => name)
  const tell = (row: RunRow): string =>
    `${row.name}: ${milliseconds(row.milliseconds.median)} (${row.milliseconds.low.toPrecision(4)} to ${row.milliseconds.high.toPrecision(4)})`
  const predicted = rows.filter((row) => row.predicted !== undefined)
  const figure = chart(`Milliseconds at ${shape}: ${rows.map(tell).join('; ')}`, (width) => {
    const marginLeft = marginFor(names, width)
    // On a narrow screen the labels are only in the table.
    const longest = Math.ceil(Math.max(...rows.map((row) => textWidth(noteOf(row))))) + 14
    const hasNotes = width - marginLeft - longest > 120
    return {
      height: rows.length * rowHeight + 66,
      marginBottom: 44,
      marginLeft,
      marginRight: hasNotes ? longest : 14,
      x: {
        label: 'ms',
        grid: true,
        ticks: 4,
        domain: [0, Math.max(...rows.map((row) => Math.max(row.milliseconds.high, row.predicted ?? 0)))],
      },
      y: { label: null, domain: names, tickSize: 0, tickFormat: (name: string) => fitted(name, marginLeft - 10) },
      marks: [
        Plot.barX(rows, {
          x: (row: RunRow) => row.milliseconds.median,
          y: 'name',
          fill: (row: RunRow) => (row.peer ? 'var(--peer)' : 'var(--plan)'),
          insetTop: 4,
          insetBottom: 4,
          title: tell,
        }),
        Plot.ruleY(rows, {
          x1: (row: RunRow) => row.milliseconds.low,
          x2: (row: RunRow) => row.milliseconds.high,
          y: 'name',
          stroke: 'currentColor',
          strokeWidth: 1.5,
        }),
        Plot.tickX(
          [...rows, ...rows].map((row, i) => ({
            name: row.name,
            end: i < rows.length ? row.milliseconds.low : row.milliseconds.high,
          })),
          {
            x: 'end',
            y: 'name',
            stroke: 'currentColor',
            insetTop: 9,
            insetBottom: 9,
          },
        ),
        Plot.tickX(predicted, { x: 'predicted', y: 'name', stroke: 'var(--hue2)', strokeWidth: 3, insetTop: 2, insetBottom: 2 }),
        ...(floor === undefined
          ? []
          : [Plot.ruleX([floor], { stroke: 'var(--floor)', strokeWidth: 1.5, strokeDasharray: '5 3' })]),
        ...(hasNotes
          ? [
              Plot.text(rows, {
                x: (row: RunRow) => Math.max(row.milliseconds.high, row.predicted ?? 0),
                y: 'name',
                text: noteOf,
                dx: 8,
                textAnchor: 'start',
              }),
            ]
          : []),
      ],
    }
  })
  const of = floor === undefined ? '' : `, floor ${milliseconds(floor)}`
  return el('div', {}, el('h3', {}, `${shape || 'times'}${of}`), figure)
}

function timesSection({ rows }: Run): HTMLElement {
  const entries = [
    { name: 'median of a plan', color: 'var(--plan)' },
    ...(rows.some(({ peer }) => peer) ? [{ name: 'peer', color: 'var(--peer)' }] : []),
    ...(rows.some(({ floor }) => floor !== undefined) ? [{ name: 'physical floor', color: 'var(--floor)' }] : []),
    ...(rows.some(({ predicted }) => predicted !== undefined) ? [{ name: 'predicted', color: 'var(--hue2)' }] : []),
  ]
  const panels = shapesIn(rows).map((shape) =>
    timesPanel(
      shape,
      rows.filter((row) => row.shape === shape),
    ),
  )
  return el(
    'section',
    { id: 'times' },
    el('h2', {}, 'Time by plan and shape'),
    el('p', {}, 'Whiskers span the quartiles. Every panel has its own axis, starting at 0.'),
    legend(entries),
    el('div', { class: 'panels' }, ...panels),
  )
}

function comparisonSection({ comparisons, runs, limit }: BenchView): HTMLElement[] {
  if (runs.length < 2) return []
  const [first, second] = runs
  if (comparisons.length === 0)
    return [el('section', {}, el('h2', {}, 'Compared'), el('p', {}, 'The two runs share no plan and shape.'))]
  const rows = comparisons.map(({ name, shape, before, now, ratio, chance: by, verdict }) => [
    name,
    shape,
    before.toPrecision(4),
    now.toPrecision(4),
    ratio.toFixed(3),
    by === undefined ? '–' : chance(by),
    el('span', { class: verdict === 'slower' || verdict === 'faster' ? verdict : '' }, verdict),
  ])
  return [
    el(
      'section',
      { id: 'compared' },
      el('h2', {}, 'Compared'),
      el(
        'p',
        {},
        `${second?.file ?? 'the second run'} compared with ${first?.file ?? 'the first'}. A difference counts if the medians differ by more than ${short(100 * (limit - 1))} % and a two-sided Wilcoxon rank test gives it less than 1 % by chance. Runs without samples are not tested.`,
      ),
      tableOf('compared', ['plan', 'shape', 'before ms', 'now ms', 'ratio', 'by chance', 'verdict'], rows),
    ),
  ]
}

function tablesSection({ tables }: Run): HTMLElement {
  const parts = tables.map(({ title, columns, rows }) => {
    const table = tableOf(title, columns, rows)
    return title.startsWith('Kernels of')
      ? el('details', {}, el('summary', {}, title), table)
      : el('div', {}, el('h3', {}, title), table)
  })
  return el('section', { id: 'numbers' }, el('h2', {}, 'All numbers'), ...parts)
}

const oneRun = (run: Run, view: BenchView): HTMLElement =>
  el(
    'div',
    {},
    el('h2', {}, run.title),
    factList(run.facts),
    el('ul', { class: 'notes' }, ...run.notes.map((note) => el('li', {}, note))),
    timesSection(run),
    ...stackedSection(run),
    ...(run === view.runs.at(-1) ? predictionsSection(view) : []),
    ...rooflineSection(run),
    tablesSection(run),
  )

export function benchSection(view: BenchView): HTMLElement {
  const [latest] = view.runs.slice(-1)
  const holder = el('div')
  if (latest !== undefined) holder.append(oneRun(latest, view))
  if (view.runs.length < 2) return holder
  const buttons = view.runs.map((run, i) => {
    const button = el(
      'button',
      { type: 'button', class: 'button', 'aria-pressed': String(run === latest) },
      run.file ?? `run ${i + 1}`,
    )
    button.addEventListener('click', () => {
      for (const each of buttons) each.setAttribute('aria-pressed', String(each === button))
      holder.replaceChildren(oneRun(run, view))
    })
    return button
  })
  return el('div', {}, ...comparisonSection(view), el('div', { class: 'row' }, 'Run', ...buttons), holder)
}
