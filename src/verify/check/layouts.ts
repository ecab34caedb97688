/** Layouts as functions, from what the front end has read of them. */
import { emptyEnv, evaluateExpr } from '../../ir/evaluate.js'
import type { Layout } from '../../ir/layout.js'
import type { Layouts } from '../../runtime/layouts.js'

/** Declared layouts by name. */
export const runtimeLayouts = (layouts: readonly Layout[]): Layouts =>
  Object.fromEntries(
    layouts.map(({ name, axes, offset, size }) => [
      name,
      {
        name,
        axes,
        offset: (index, extent) => Number(evaluateExpr(offset, { ...emptyEnv(extent), values: new Map(Object.entries(index)) })),
        size: (extent) => Number(evaluateExpr(size, emptyEnv(extent))),
      },
    ]),
  )
