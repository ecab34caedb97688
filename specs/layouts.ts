/** Shipped layouts by name, for runs of plans that store values in them. */
import type { LayoutDecl } from 'heddle'
import * as headLayouts from './layouts/heads.js'
import * as matrixLayouts from './layouts/matrix.js'
import { splitHeads } from './layouts/split_heads.js'

export const layouts: Readonly<Record<string, LayoutDecl>> = Object.fromEntries(
  [splitHeads, ...Object.values(headLayouts), ...Object.values(matrixLayouts)].map((layout) => [layout.name, layout]),
)
