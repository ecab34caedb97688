/** Bench view: times with spread, comparison of two runs, time per kernel, roofline, predictions, and all numbers. */
import type { BenchView, Run, RunRow } from '../model.js'
import { chart, fitted, marginFor, Plot, textWidth } from './charts.js'
import { el, factList, legend, tableOf } from './dom.js'
import { chance, logTick, milliseconds, percent, short } from './format.js'
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

const tell = (row: RunRow): string =>
  `${row.name}: ${milliseconds(row.milliseconds.median)} (${row.milliseconds.low.toPrecision(4)} to ${row.milliseconds.high.toPrecision(4)})`

/** Largest time of a row on the axis. */
const endOf = (row: RunRow): number => Math.max(row.milliseconds.high, row.predicted ?? 0)

/** Ratio of times beyond which the axis is logarithmic: the shortest bar would be a line. */
const widest = 30

/** True if bars of one linear axis would hide the fastest row. */
const isWide = (rows: readonly RunRow[]): boolean =>
  Math.max(...rows.map(endOf)) > widest * Math.min(...rows.map(({ milliseconds: { low } }) => low))

/** Extent of the axis: from 0, or around the times of a logarithmic one. */
function axisOf(rows: readonly RunRow[]) {
  const most = Math.max(...rows.map(endOf))
  const common = { label: 'ms', grid: true, ticks: 4 }
  if (!isWide(rows)) return { ...common, domain: [0, most] }
  const least = Math.min(...rows.flatMap(({ milliseconds: { low }, predicted, floor }) => [low, predicted ?? low, floor ?? low]))
  return { ...common, type: 'log' as const, domain: [least / 1.5, most * 1.2], tickFormat: (value: number) => logTick(value) }
}

/** Median, as a bar, or as a dot on a logarithmic axis, where a length has no meaning; whiskers over the quartiles. */
function medianMarks(rows: readonly RunRow[]) {
  const fill = (row: RunRow): string => (row.peer ? 'var(--peer)' : 'var(--plan)')
  const x = (row: RunRow): number => row.milliseconds.median
  const ends = rows.flatMap(({ name, milliseconds: { low, high } }) => [low, high].map((end) => ({ name, end })))
  return [
    isWide(rows)
      ? Plot.dot(rows, { x, y: 'name', r: 6, fill, title: tell })
      : Plot.barX(rows, { x, y: 'name', fill, insetTop: 4, insetBottom: 4, title: tell }),
    Plot.ruleY(rows, {
      x1: (row: RunRow) => row.milliseconds.low,
      x2: (row: RunRow) => row.milliseconds.high,
      y: 'name',
      stroke: 'currentColor',
      strokeWidth: 1.5,
    }),
    Plot.tickX(ends, { x: 'end', y: 'name', stroke: 'currentColor', insetTop: 9, insetBottom: 9 }),
  ]
}

/** A dashed line at the floor, ticks at predictions. */
function limitMarks(rows: readonly RunRow[], floor: number | undefined) {
  const predicted = rows.filter((row) => row.predicted !== undefined)
  return [
    Plot.tickX(predicted, { x: 'predicted', y: 'name', stroke: 'var(--hue2)', strokeWidth: 3, insetTop: 2, insetBottom: 2 }),
    ...(floor === undefined ? [] : [Plot.ruleX([floor], { stroke: 'var(--floor)', strokeWidth: 1.5, strokeDasharray: '5 3' })]),
  ]
}

/** One panel per shape. */
function timesPanel(shape: string, rows: readonly RunRow[]): HTMLElement {
  const [floor] = rows.flatMap((row) => (row.floor === undefined ? [] : [row.floor]))
  const names = rows.map(({ name }) => name)
  const figure = chart(`Milliseconds at ${shape}: ${rows.map(tell).join('; ')}`, (width) => {
    const marginLeft = marginFor(names, width)
    // On a narrow screen the labels are only in the table.
    const longest = Math.ceil(Math.max(...rows.map((row) => textWidth(noteOf(row))))) + 14
    const hasNotes = width - marginLeft - longest > 120
    const notes = Plot.text(rows, { x: endOf, y: 'name', text: noteOf, dx: 8, textAnchor: 'start' })
    return {
      height: rows.length * rowHeight + 66,
      marginBottom: 44,
      marginLeft,
      marginRight: hasNotes ? longest : 14,
      x: axisOf(rows),
      y: { label: null, domain: names, tickSize: 0, tickFormat: (name: string) => fitted(name, marginLeft - 10) },
      marks: [...medianMarks(rows), ...limitMarks(rows, floor), ...(hasNotes ? [notes] : [])],
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
    el(
      'p',
      {},
      `Whiskers span the quartiles. Every panel has its own axis, from 0, or a logarithmic one with dots where times differ by more than ${widest} times.`,
    ),
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
