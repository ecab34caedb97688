/** Where the time goes: for each plan and shape a bar of its kernels' times, those that take most in a colour of their own. */
import { type BenchEncoderResult, type EncoderTimes, type StepTime, shapeName } from '../result.js'
import { milliseconds, percent } from '../table.js'
import { drawPanel, type Row } from './panel.js'
import { bar, type Svg } from './svg.js'
import { shapesIn } from './times.js'

/** As many hues as can be told apart; what is left shares a grey. */
const hues = 12

const rest = 'other'

export interface Legend {
  readonly name: string
  /** Class of the style sheet. */
  readonly kind: string
}

/** An instance key without its storage types: `bias_gelu` of `bias_gelu__f16`. */
export const kernelName = (key: string): string => key.replace(/__.*$/, '')

type Profiled = EncoderTimes & { readonly profile: readonly StepTime[] }

const isProfiled = (times: EncoderTimes): times is Profiled => times.profile !== undefined

/** Gives the kernels that take the largest share of any one bar a hue; a kernel has the same in every bar. */
function legendOf(results: readonly Profiled[]): Legend[] {
  const share = new Map<string, number>()
  for (const { profile } of results) {
    const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
    for (const { kernel, milliseconds: time } of profile) {
      const name = kernelName(kernel)
      share.set(name, Math.max(share.get(name) ?? 0, time / total))
    }
  }
  const names = [...share].sort(([, a], [, b]) => b - a).map(([name]) => name)
  const shown = names.slice(0, hues).map((name, i) => ({ name, kind: `hue${i + 1}` }))
  return names.length > hues ? [...shown, { name: rest, kind: 'rest' }] : shown
}

function rowOf({ plan, profile }: Profiled, legend: readonly Legend[]): Row {
  const total = profile.reduce((sum, step) => sum + step.milliseconds, 0)
  const parts = legend.map(({ name, kind }) => {
    const own = (step: StepTime): boolean => kernelName(step.kernel) === name
    const others = (step: StepTime): boolean => legend.every((entry) => entry.name !== kernelName(step.kernel))
    const steps = profile.filter(kind === 'rest' ? others : own)
    return { name, kind, time: steps.reduce((sum, step) => sum + step.milliseconds, 0) }
  })
  return {
    name: plan,
    note: milliseconds(total),
    end: total,
    draw(top, height, { at }) {
      let start = 0
      return parts.flatMap(({ name, kind, time }) => {
        const from = start
        start += time
        if (time === 0) return []
        return [bar(at(from), top, at(time), height, kind, `${name}: ${milliseconds(time)} ms, ${percent(time / total)}`)]
      })
    },
  }
}

/** One panel a shape and one legend for all; undefined without profiles. */
export function stackedChart({ results }: BenchEncoderResult): { panels: Svg[]; legend: Legend[] } | undefined {
  const profiled = results.filter(isProfiled)
  if (profiled.length === 0) return undefined
  const legend = legendOf(profiled)
  const panels = shapesIn(profiled).map((shape) => {
    const rows = profiled.filter(({ batch, seq }) => batch === shape.batch && seq === shape.seq)
    return drawPanel({ title: shapeName(shape), rows: rows.map((times) => rowOf(times, legend)) })
  })
  return { panels, legend }
}
