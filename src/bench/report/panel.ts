/**
 * The frame that two charts share: a panel for each shape with horizontal bars over a time axis of its own. Shapes differ in time
 * by factors, so on one axis the small ones would be invisible; within a panel lengths compare directly.
 */
import { linear, type Scale, tickText } from './scale.js'
import { drawing, element, label, line, type Svg, textWidth, truncated } from './svg.js'

export interface Row {
  /** Stands left of the bars. */
  readonly name: string
  /** Stands right of `end`. */
  readonly note: string
  /** Where the row's drawing ends, in the axis's unit. */
  readonly end: number
  /** Draws the row: its top edge and height, and where values lie. */
  readonly draw: (top: number, height: number, scale: Scale) => readonly Svg[]
}

export interface Panel {
  readonly title: string
  readonly rows: readonly Row[]
  /** Drawn over all rows: their top and bottom edge. */
  readonly over?: (top: number, bottom: number, scale: Scale) => readonly Svg[]
}

const width = 600
const rowHeight = 26
const barHeight = 18
const titleHeight = 28
const axisHeight = 38

/** Names get what they need, up to this. */
const mostNames = 190

/** A panel as a drawing. The axis ends at the longest row. */
export function drawPanel({ title, rows, over }: Panel): Svg {
  const names = Math.min(Math.max(...rows.map(({ name }) => textWidth(name)), 0) + 10, mostNames)
  const notes = Math.max(...rows.map(({ note }) => textWidth(note)), 0) + 12
  const axisWidth = width - names - notes
  const scale = linear(Math.max(...rows.map(({ end }) => end), 0), axisWidth)
  const bottom = titleHeight + rows.length * rowHeight
  const grid = scale.ticks.flatMap((tick) => [
    line(names + scale.at(tick), titleHeight, names + scale.at(tick), bottom, tick === 0 ? 'axis' : 'grid'),
    label(names + scale.at(tick), bottom + 15, tickText(tick), { kind: 'tick', anchor: 'middle' }),
  ])
  const drawn = rows.flatMap(({ name, note, end, draw }, i) => {
    const top = titleHeight + i * rowHeight + (rowHeight - barHeight) / 2
    const baseline = top + barHeight - 5
    return [
      label(names - 8, baseline, truncated(name, names - 10), { anchor: 'end' }),
      element('g', { transform: `translate(${names} 0)` }, draw(top, barHeight, scale)),
      label(names + scale.at(end) + 8, baseline, note, { kind: 'value' }),
    ]
  })
  return drawing(width, bottom + axisHeight, title, [
    label(0, 16, title, { kind: 'title' }),
    ...grid,
    ...drawn,
    element('g', { transform: `translate(${names} 0)` }, over?.(titleHeight, bottom, scale) ?? []),
    label(names + axisWidth / 2, bottom + 32, 'ms per forward pass', { kind: 'unit', anchor: 'middle' }),
  ])
}
