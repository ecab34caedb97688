/** Layouts of graph values by name, over the dimensions of a kernel. */
import { type Layout, rowMajor } from '../../ir/layout.js'
import { parseLayoutName, splitLayout } from '../../ir/split_layout.js'
import type { LayoutsByName } from '../graph/edit.js'

/** The layout with the given name over the given dimensions; undefined if no layout of that name is declared. */
export function layoutOver(text: string, dims: readonly string[], layouts: LayoutsByName): Layout | undefined {
  const { name, runs } = parseLayoutName(text)
  const layout = layouts.get(name)
  if (name === 'row') return rowMajor(dims)
  return layout === undefined || runs === undefined ? layout : splitLayout(layout, runs, dims)
}
