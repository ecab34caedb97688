/** Time of a pass per kernel: one stacked bar per plan and shape, with separate colours for the longest kernels. */
import type { Run, RunRow } from '../model.js'
import { chart, fitted, marginFor, Plot } from './charts.js'
import { hue, hues } from './colors.js'
import { el, legend } from './dom.js'
import { milliseconds, percent } from './format.js'

type Profiled = RunRow & { readonly profile: NonNullable<RunRow['profile']> }

const isProfiled = (row: RunRow): row is Profiled => row.profile !== undefined && row.profile.length > 0

const rest = 'other'

const kernelName = (key: string): string => key.replace(/__.*$/, '')

const totalOf = ({ profile }: Profiled): number => profile.reduce((sum, step) => sum + step.milliseconds, 0)

/** Kernels by their largest share in any bar, so that a kernel has the same colour in every bar. */
function coloured(rows: readonly Profiled[]): string[] {
  const share = new Map<string, number>()
  for (const row of rows) {
    const total = totalOf(row)
    for (const { kernel, milliseconds: time } of row.profile)
      share.set(kernelName(kernel), Math.max(share.get(kernelName(kernel)) ?? 0, time / total))
  }
  const names = [...share].sort(([, a], [, b]) => b - a).map(([name]) => name)
  return names.length > hues ? [...names.slice(0, hues), rest] : names
}

interface Part {
  readonly plan: string
  readonly name: string
  readonly from: number
  readonly to: number
  readonly share: number
}

function partsOf(row: Profiled, names: readonly string[]): Part[] {
  const total = totalOf(row)
  let at = 0
  return names.flatMap((name) => {
    const own = row.profile.filter(({ kernel }) => {
      const known = names.includes(kernelName(kernel)) ? kernelName(kernel) : rest
      return known === name
    })
    const time = own.reduce((sum, step) => sum + step.milliseconds, 0)
    const from = at
    at += time
    return time === 0 ? [] : [{ plan: row.name, name, from, to: at, share: time / total }]
  })
}

function panel(
  shape: string,
  rows: readonly Profiled[],
  names: readonly string[],
  colorOf: (name: string) => string,
): HTMLElement {
  const parts = rows.flatMap((row) => partsOf(row, names))
  const plans = rows.map(({ name }) => name)
  const tell = ({ plan, name, from, to, share }: Part): string =>
    `${plan}, ${name}: ${milliseconds(to - from)}, ${percent(share)}`
  const figure = chart(`Milliseconds by kernel at ${shape}: ${parts.map(tell).join('; ')}`, (width) => {
    const marginLeft = marginFor(plans, width)
    return {
      height: rows.length * 30 + 66,
      marginBottom: 44,
      marginLeft,
      marginRight: 20,
      x: { label: 'ms', grid: true, ticks: 4 },
      y: { label: null, domain: plans, tickSize: 0, tickFormat: (name: string) => fitted(name, marginLeft - 10) },
      marks: [
        Plot.barX(parts, {
          x1: 'from',
          x2: 'to',
          y: 'plan',
          fill: ({ name }: Part) => colorOf(name),
          stroke: 'var(--page)',
          insetTop: 4,
          insetBottom: 4,
          title: tell,
        }),
      ],
    }
  })
  return el('div', {}, el('h3', {}, shape), figure)
}

/** One panel per shape and one legend for all; empty if no kernel was timed separately. */
export function stackedSection({ rows }: Run): HTMLElement[] {
  const profiled = rows.filter(isProfiled)
  if (profiled.length === 0) return []
  const names = coloured(profiled)
  const colorOf = (name: string): string => (name === rest ? 'var(--rest)' : hue(names.indexOf(name)))
  const shapes = [...new Set(profiled.map(({ shape }) => shape))]
  const panels = shapes.map((shape) =>
    panel(
      shape,
      profiled.filter((row) => row.shape === shape),
      names,
      colorOf,
    ),
  )
  return [
    el(
      'section',
      { id: 'kernels' },
      el('h2', {}, 'Time by kernel'),
      el(
        'p',
        {},
        'Separately timed steps, summed by kernel. Outside of a device graph small steps take longer than in a replay, so a sum can exceed the median above.',
      ),
      legend(names.map((name) => ({ name, color: colorOf(name) }))),
      el('div', { class: 'panels' }, ...panels),
    ),
  ]
}
