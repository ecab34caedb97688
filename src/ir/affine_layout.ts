/** Tests by evaluation if a layout has a constant stride along an axis, as loops that walk rows by a stride require. */
import { emptyEnv, evaluateExpr, forEachPoint } from './evaluate.js'
import type { Layout } from './layout.js'

/** Extents that differ from each other and are not multiples of a panel's width. */
const extents = [3, 37, 5, 35, 4, 6, 7]

/** True if a step along `axis` moves every element by the same offset. */
export function isAffineAlong(layout: Layout, axis: number): boolean {
  if (layout.name === 'row') return true
  const shape = layout.axes.map((_, at) => extents[at % extents.length] ?? 3)
  const env = emptyEnv(Object.fromEntries(layout.axes.map((name, at) => [name, shape[at] ?? 0])))
  const offset = (point: readonly number[]): number => {
    layout.axes.forEach((name, at) => {
      env.values.set(name, point[at] ?? 0)
    })
    return Number(evaluateExpr(layout.offset, env))
  }
  let step: number | undefined
  let isAffine = true
  forEachPoint(
    shape.map((extent, at) => (at === axis ? extent - 1 : extent)),
    (point) => {
      const moved = offset(point.map((place, at) => (at === axis ? place + 1 : place))) - offset(point)
      step ??= moved
      isAffine &&= moved === step
    },
  )
  return isAffine
}
