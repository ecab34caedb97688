/** Every shipped layout by its name: what plans store values in, found here by whoever runs one. */
import type { LayoutDecl } from 'heddle'
import * as headLayouts from './layouts/heads.js'
import * as matrixLayouts from './layouts/matrix.js'
import { splitHeads } from './layouts/split_heads.js'

export const layouts: Readonly<Record<string, LayoutDecl>> = Object.fromEntries(
  [splitHeads, ...Object.values(headLayouts), ...Object.values(matrixLayouts)].map((layout) => [layout.name, layout]),
)
