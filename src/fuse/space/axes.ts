/**
 * Axes of a group. Nodes of a group see the same elements under different shapes: a bias adds over `b*s h*d`, a head
 * split moves `b s h d`. Before bodies can be merged, every dimension of every node is expressed in the finest axes any
 * of them uses, its *atoms*. An axis that a view splits is refined by the axes of the other side; axes that meet in a
 * value are unified. Refinement is purely symbolic, so it holds for every size.
 */

import type { Extent } from '../../ir/shape.js'
import { multiplyExtents, printExtent, type Shape, sameExtent } from '../../ir/shape.js'

/** One axis class: unified with others by `parent`, split by `parts` (outermost first). */
interface Axis {
  readonly extent: Extent
  readonly label: string
  parent: number | undefined
  parts: readonly number[] | undefined
}

/** Why two axes cannot be the same or cannot be split alike. */
export class AxisConflict extends Error {}

export class Axes {
  readonly #axes: Axis[] = []

  /** A new axis of the given extent. `label` is the dimension name it has where it is declared. */
  add(extent: Extent, label: string): number {
    this.#axes.push({ extent, label, parent: undefined, parts: undefined })
    return this.#axes.length - 1
  }

  /** Makes two axes one. @throws AxisConflict when their extents or splits differ. */
  unify(a: number, b: number): void {
    const [left, right] = [this.#root(a), this.#root(b)]
    if (left === right) return
    const [x, y] = [this.#at(left), this.#at(right)]
    if (!sameExtent(x.extent, y.extent)) {
      throw new AxisConflict(`axes ${printExtent(x.extent)} and ${printExtent(y.extent)} have different extents`)
    }
    if (x.parts !== undefined && y.parts !== undefined) {
      if (x.parts.length !== y.parts.length)
        throw new AxisConflict(`axis ${printExtent(x.extent)} is split in two different ways`)
      this.#unifyAll(x.parts, y.parts)
    }
    y.parent = left
    x.parts ??= y.parts
  }

  /** Splits an axis into parts. @throws AxisConflict when it is already split in another way. */
  split(axis: number, parts: readonly number[]): void {
    const root = this.#at(this.#root(axis))
    const [only] = parts
    if (parts.length === 1 && only !== undefined) {
      this.unify(axis, only)
      return
    }
    if (root.parts === undefined) {
      root.parts = parts
      return
    }
    if (root.parts.length !== parts.length)
      throw new AxisConflict(`axis ${printExtent(root.extent)} is split in two different ways`)
    this.#unifyAll(root.parts, parts)
  }

  /** Relates the axes of the two sides of a view: runs of axes with equal products correspond. @throws AxisConflict when they do not align. */
  alignView(from: readonly number[], to: readonly number[]): void {
    let [i, j] = [0, 0]
    while (i < from.length && j < to.length) {
      const [left, right] = this.#matchingRuns(from, i, to, j)
      const [a, b] = [from.slice(i, i + left), to.slice(j, j + right)]
      const [first, second] = [a[0], b[0]]
      if (first === undefined || second === undefined) break
      if (a.length === 1) this.split(first, b)
      else if (b.length === 1) this.split(second, a)
      else throw new AxisConflict(`a view from "${this.#print(a)}" to "${this.#print(b)}" crosses axes`)
      i += left
      j += right
    }
  }

  /** The atoms an axis consists of, outermost first. */
  atoms(axis: number): readonly number[] {
    const root = this.#root(axis)
    const { parts } = this.#at(root)
    return parts === undefined ? [root] : parts.flatMap((part) => this.atoms(part))
  }

  /** Whether two axes are the same by now. */
  areOne(a: number, b: number): boolean {
    return this.#root(a) === this.#root(b)
  }

  extent(axis: number): Extent {
    return this.#at(this.#root(axis)).extent
  }

  label(axis: number): string {
    return this.#at(this.#root(axis)).label
  }

  #matchingRuns(from: readonly number[], i: number, to: readonly number[], j: number): [left: number, right: number] {
    for (let total = 2; total <= from.length - i + (to.length - j); total++) {
      for (let left = 1; left < total; left++) {
        const right = total - left
        if (i + left > from.length || j + right > to.length) continue
        const product = (axes: readonly number[]) => multiplyExtents(axes.map((axis) => this.extent(axis)))
        if (sameExtent(product(from.slice(i, i + left)), product(to.slice(j, j + right)))) return [left, right]
      }
    }
    throw new AxisConflict(`"${this.#print(from)}" and "${this.#print(to)}" do not align`)
  }

  #unifyAll(left: readonly number[], right: readonly number[]): void {
    for (const [i, part] of left.entries()) this.unify(part, right[i] ?? part)
  }

  #print(axes: readonly number[]): string {
    const shape: Shape = axes.map((axis) => this.extent(axis))
    return shape.map(printExtent).join(' ')
  }

  #root(axis: number): number {
    const { parent } = this.#at(axis)
    return parent === undefined ? axis : this.#root(parent)
  }

  #at(axis: number): Axis {
    const found = this.#axes[axis]
    if (found === undefined) throw new Error(`internal: no axis ${axis}`)
    return found
  }
}
