/**
 * Axes of a group. Nodes of a group see the same elements under different shapes: a bias adds over `b*s h*d`, a head
 * split moves `b s h d`. Before bodies can be merged, every dimension of every node is expressed in the finest axes any
 * of them uses, its *atoms*. An axis that a view splits is refined by the axes of the other side; axes that meet in a
 * value are unified. Refinement is purely symbolic, so it holds for every size. An axis of one element is an atom by
 * itself: views add and drop such axes anywhere, and its only index is 0.
 */

import type { Extent } from '../../ir/shape.js'
import {
  commonExtent,
  divideExtent,
  isUnitExtent,
  multiplyExtents,
  printExtent,
  printShape,
  type Shape,
  sameExtent,
} from '../../ir/shape.js'
import { alignedRuns } from './runs.js'

/** One axis class: unified with others by `parent`, split by `parts` (outermost first). */
interface Axis {
  readonly extent: Extent
  readonly label: string
  parent: number | undefined
  parts: readonly number[] | undefined
}

/** Reason why two axes cannot be unified or cannot be split in the same way. */
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
      if (x.parts.length !== y.parts.length) throw this.#twoWays(x.extent, x.parts, y.parts)
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
    if (root.parts.length !== parts.length) throw this.#twoWays(root.extent, root.parts, parts)
    this.#unifyAll(root.parts, parts)
  }

  /**
   * Relates the axes of the two sides of a view: runs of axes with equal products correspond. Axes of one element correspond where both sides
   * have one at the same place; others are skipped.
   * @throws AxisConflict when they do not align.
   */
  alignView(from: readonly number[], to: readonly number[]): void {
    const runs = alignedRuns(this.#shape(from), this.#shape(to))
    if (runs === undefined) throw new AxisConflict(`"${this.#print(from)}" and "${this.#print(to)}" do not align`)
    for (const run of runs) {
      const [a, b] = [run.from.map((at) => from[at] ?? 0), run.to.map((at) => to[at] ?? 0)]
      const [first, second] = [a[0], b[0]]
      if (first === undefined || second === undefined) continue
      if (a.length === 1) this.split(first, b)
      else if (b.length === 1) this.split(second, a)
      else this.#refine(a, b)
    }
  }

  /** The atoms an axis consists of, outermost first. */
  atoms(axis: number): readonly number[] {
    const root = this.#root(axis)
    const { parts } = this.#at(root)
    return parts === undefined ? [root] : parts.flatMap((part) => this.atoms(part))
  }

  /** True if two axes are the same after the relations so far. */
  areOne(a: number, b: number): boolean {
    return this.#root(a) === this.#root(b)
  }

  /** True for an axis of one element at every size. */
  isUnit(axis: number): boolean {
    return isUnitExtent(this.extent(axis))
  }

  extent(axis: number): Extent {
    return this.#at(this.#root(axis)).extent
  }

  label(axis: number): string {
    return this.#at(this.#root(axis)).label
  }

  /**
   * Splits the axes of both sides where those of the other end: `b*s n` seen as `b s*n` has `b`, `s` and `n`. The end of an axis is the product
   * of all extents up to it, and each of two neighbouring ends must be a multiple of the one before.
   * @throws AxisConflict
   */
  #refine(from: readonly number[], to: readonly number[]): void {
    const ends = (axes: readonly number[]): Extent[] => axes.map((_, at) => this.#product(axes.slice(0, at + 1)))
    const pieces: { readonly end: Extent; readonly axis: number }[] = []
    let before: Extent = { factor: 1, dims: [] }
    for (const end of [...ends(from), ...ends(to)].sort((a, b) => a.dims.length - b.dims.length || a.factor - b.factor)) {
      if (sameExtent(end, before)) continue
      if (!sameExtent(commonExtent([end, before]), before))
        throw new AxisConflict(
          `a view from "${this.#print(from)}" to "${this.#print(to)}" splits axes where none of the other side ends, and so crosses axes`,
        )
      pieces.push({ end, axis: this.add(divideExtent(end, before), this.#labelAt(end, from, to)) })
      before = end
    }
    for (const axes of [from, to]) {
      let at = 0
      for (const [i, end] of ends(axes).entries()) {
        const last = pieces.findIndex((piece) => sameExtent(piece.end, end))
        const own = pieces.slice(at, last + 1).map(({ axis }) => axis)
        const axis = axes[i]
        if (axis !== undefined) this.split(axis, own)
        at = last + 1
      }
    }
  }

  /** Label of an axis that ends at an extent, on either side. */
  #labelAt(end: Extent, ...sides: readonly (readonly number[])[]): string {
    const axes = sides.flatMap((side) => side.filter((_, at) => sameExtent(this.#product(side.slice(0, at + 1)), end)))
    const [first] = axes.toSorted((a, b) => this.extent(a).dims.length - this.extent(b).dims.length)
    return first === undefined ? 'n' : this.label(first)
  }

  #product(axes: readonly number[]): Extent {
    return multiplyExtents(this.#shape(axes))
  }

  #shape(axes: readonly number[]): Shape {
    return axes.map((axis) => this.extent(axis))
  }

  #twoWays(extent: Extent, one: readonly number[], other: readonly number[]): AxisConflict {
    const ways = `"${this.#print(one)}" and "${this.#print(other)}"`
    return new AxisConflict(`axis ${printExtent(extent)} is split in two different ways, ${ways}`)
  }

  #unifyAll(left: readonly number[], right: readonly number[]): void {
    for (const [i, part] of left.entries()) this.unify(part, right[i] ?? part)
  }

  #print(axes: readonly number[]): string {
    return printShape(this.#shape(axes))
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
