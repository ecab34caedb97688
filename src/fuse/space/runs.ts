/** Axes of one value under two shapes: the runs of them that correspond. */
import { isUnitExtent, multiplyExtents, type Shape, sameExtent } from '../../ir/shape.js'

/** Positions of corresponding axes of two shapes. One side is empty for an axis of one element that the other does not have. */
export interface Run {
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/**
 * The shortest runs of axes with equal products, outermost first. Axes of one element correspond where both shapes have one at the same place; in
 * a run of several axes they are left out. Undefined where the shapes do not align.
 */
export function alignedRuns(from: Shape, to: Shape): readonly Run[] | undefined {
  const runs: Run[] = []
  let [i, j] = [0, 0]
  while (i < from.length || j < to.length) {
    const [isFrom, isTo] = [isUnit(from, i), isUnit(to, j)]
    const lengths = isFrom || isTo ? [Number(isFrom), Number(isTo)] : matching(from.slice(i), to.slice(j))
    const [left, right] = lengths ?? []
    if (left === undefined || right === undefined) return undefined
    const isRun = !isFrom && !isTo
    const positions = (shape: Shape, start: number, length: number): number[] =>
      Array.from({ length }, (_, at) => start + at).filter((at) => !isRun || !isUnit(shape, at))
    runs.push({ from: positions(from, i, left), to: positions(to, j, right) })
    i += left
    j += right
  }
  return runs
}

/** True for an axis of one element at every size. */
function isUnit(shape: Shape, at: number): boolean {
  const extent = shape[at]
  return extent !== undefined && isUnitExtent(extent)
}

/** Lengths of the shortest beginnings of two shapes with equal products. */
function matching(from: Shape, to: Shape): readonly [from: number, to: number] | undefined {
  for (let total = 2; total <= from.length + to.length; total++) {
    for (let left = Math.max(1, total - to.length); left < total && left <= from.length; left++) {
      const right = total - left
      if (sameExtent(multiplyExtents(from.slice(0, left)), multiplyExtents(to.slice(0, right)))) return [left, right]
    }
  }
  return undefined
}
