/** Time by plan and shape: a bar to the median, a whisker over the quartiles, the peers beside, and the physical floor as a line. */
import { type BenchEncoderResult, type EncoderTimes, type PeerTimes, type Shape, shapeName } from '../result.js'
import type { Summary } from '../statistics.js'
import { milliseconds, percent, spread } from '../table.js'
import { drawPanel, type Row } from './panel.js'
import { bar, line, type Svg } from './svg.js'

/** The shapes of a result, each once. */
export function shapesIn(results: readonly EncoderTimes[]): Shape[] {
  return [...new Map(results.map(({ batch, seq }) => [shapeName({ batch, seq }), { batch, seq }])).values()]
}

const isAt =
  ({ batch, seq }: Shape) =>
  (other: Shape): boolean =>
    other.batch === batch && other.seq === seq

function row(name: string, time: Summary, kind: string, remark: string): Row {
  const note = `${milliseconds(time.median)}${remark}`
  return {
    name,
    note,
    end: Math.max(time.median, time.high),
    draw: (top, height, { at }) => [
      bar(0, top, at(time.median), height, kind, `${name}: ${milliseconds(time.median)} ms (${spread(time)})`),
      line(at(time.low), top + height / 2, at(time.high), top + height / 2, 'whisker'),
      ...[time.low, time.high].map((end) => line(at(end), top + height / 4, at(end), top + (3 * height) / 4, 'whisker')),
    ],
  }
}

const planRow = ({ plan, milliseconds: time, fraction }: EncoderTimes): Row =>
  row(plan, time, 'plan', fraction === undefined ? '' : ` · ${percent(fraction)}`)

const peerRow = (framework: string, { way, milliseconds: time }: PeerTimes): readonly Row[] =>
  time === undefined ? [] : [row(`${framework} ${way}`, time, 'peer', '')]

function titleOf(shape: Shape, times: EncoderTimes | undefined): string {
  if (times === undefined) return shapeName(shape)
  const floor = times.floor === undefined ? '' : ` · floor ${milliseconds(times.floor.milliseconds)} ms`
  return `${shapeName(shape)} · mean length ${times.meanLength.toFixed(1)}${floor}`
}

/** One panel a shape. */
export function timesChart({ results, peers }: BenchEncoderResult): Svg[] {
  return shapesIn(results).map((shape) => {
    const plans = results.filter(isAt(shape))
    const others = (peers?.times ?? []).filter(isAt(shape)).flatMap((times) => peerRow(peers?.framework ?? '', times))
    const [first] = plans
    const floor = first?.floor?.milliseconds
    return drawPanel({
      title: titleOf(shape, first),
      rows: [...plans.map(planRow), ...others],
      ...(floor === undefined ? {} : { over: (top, bottom, { at }) => [line(at(floor), top, at(floor), bottom, 'floor')] }),
    })
  })
}
