/** Declaration of layouts: `layout(name, axes, { offset, size })`. The functions are ordinary integer arithmetic and run unchanged in Node. */

import { usageError } from '../errors.js'
import { expectArguments, expectParts } from './arguments.js'

type Extents = Readonly<Record<string, number>>

export interface LayoutDecl {
  readonly name: string
  readonly axes: readonly string[]
  /** Element offset of a logical index. */
  readonly offset: (index: Extents, extent: Extents) => number
  /** Elements the buffer holds, padding included. */
  readonly size: (extent: Extents) => number
}

export interface LayoutConfig<Axis extends string> {
  readonly offset: (index: { readonly [K in Axis]: number }, extent: { readonly [K in Axis]: number }) => number
  /** Defaults to the product of the extents. */
  readonly size?: (extent: { readonly [K in Axis]: number }) => number
}

/**
 * Declares a layout over the given axes (outermost first). Export it and name it in a tensor: `tensor('T', 'b s h d', splitHeads)`.
 * A tensor uses a layout by position: its own dimension names do not matter.
 */
export function layout<const Axes extends readonly string[]>(
  name: string,
  axes: Axes,
  config: LayoutConfig<Axes[number]>,
): LayoutDecl {
  expectArguments('layout.config', 'layout', layout, { name: [name, 'text'], axes: [axes, 'texts'], config: [config, 'record'] })
  expectParts('layout.config', `layout ${name}`, layout, ['offset', 'size'], config)
  expectArguments('layout.config', `layout ${name}`, layout, {
    offset: [config.offset, 'function'],
    size: [config.size, 'function?'],
  })
  const size = config.size ?? ((extent: Extents) => axes.reduce((product, axis) => product * (extent[axis] ?? 0), 1))
  return { name, axes, offset: config.offset as LayoutDecl['offset'], size: size as LayoutDecl['size'] }
}

/** Layouts of a declaration's values, by their names in the IR. */
export type NamedLayouts = Readonly<Record<string, LayoutDecl>>

/** Collects the layouts that a declaration uses, so that a caller needs no list of them. */
export class UsedLayouts {
  readonly #found = new Map<string, LayoutDecl>()

  get all(): NamedLayouts {
    return Object.fromEntries(this.#found)
  }

  /** Name of a layout in the IR; `row` if there is none. @throws usage `layout.twice` */
  nameOf(used: LayoutDecl | undefined): string {
    if (used === undefined || used.name === 'row') return 'row'
    const known = this.#found.get(used.name)
    if (known !== undefined && known !== used) {
      throw usageError('layout.twice', `two layouts called ${used.name} are used together`, {
        hint: 'a name stands for one layout: rename the one that the project declares',
      })
    }
    this.#found.set(used.name, used)
    return used.name
  }

  addAll(layouts: NamedLayouts = {}): void {
    for (const used of Object.values(layouts)) this.nameOf(used)
  }
}

/** The default layout: the last axis is contiguous. */
export function rowMajorDecl(axes: readonly string[]): LayoutDecl {
  return layout('row', axes, {
    offset: (index, extent) => axes.reduce((offset, axis) => offset * (extent[axis] ?? 0) + (index[axis] ?? 0), 0),
  })
}
