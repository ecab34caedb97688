/** Tests by evaluation if a layout has a constant stride along an axis, as loops that walk rows by a stride require. */
import { forEachPoint } from './evaluate.js'
import { integerFunction } from './integer_function.js'
import type { Layout } from './layout.js'

/** Extents that differ from each other and are not multiples of a panel's width. */
const extents = [3, 37, 5, 35, 4, 6, 7]

/** Results by layout and axis: a search for a plan asks for those of few layouts thousands of times. */
const known = new WeakMap<Layout, Map<number, boolean>>()

/** True if a step along `axis` moves every element by the same offset. */
export function isAffineAlong(layout: Layout, axis: number): boolean {
  if (layout.name === 'row') return true
  const results = known.get(layout) ?? new Map<number, boolean>()
  known.set(layout, results)
  const result = results.get(axis) ?? hasOneStep(layout, axis)
  results.set(axis, result)
  return result
}

function hasOneStep(layout: Layout, axis: number): boolean {
  const shape = layout.axes.map((_, at) => extents[at % extents.length] ?? 3)
  const slots = (from: number) => new Map(layout.axes.map((name, at) => [name, from + at]))
  const offset = integerFunction(layout.offset, { index: slots(0), dim: slots(layout.axes.length) })
  let step: number | undefined
  let isAffine = true
  forEachPoint(
    shape.map((extent, at) => (at === axis ? extent - 1 : extent)),
    (point) => {
      if (!isAffine) return
      const next = point.map((place, at) => (at === axis ? place + 1 : place))
      const moved = offset([...next, ...shape]) - offset([...point, ...shape])
      step ??= moved
      isAffine = moved === step
    },
  )
  return isAffine
}
