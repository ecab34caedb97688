/** Row programs of one kernel under common names: dimensions, tensors and attributes are renamed, and nothing else changes. */
import type { Kernel } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { mapStmt, rewrite } from '../../ir/walk.js'

export interface Renaming {
  readonly dims: ReadonlyMap<string, string>
  readonly tensors: ReadonlyMap<string, string>
  readonly attrs: ReadonlyMap<string, string>
}

/** The kernel under other names. Names without a renaming stay. */
export function renameKernel(kernel: Kernel, { dims, tensors, attrs }: Renaming): Kernel {
  const dim = (name: string): string => dims.get(name) ?? name
  const tensor = (name: string): string => tensors.get(name) ?? name
  const body = kernel.body.map((stmt) => {
    const named = mapStmt(stmt, (expr) =>
      rewrite(expr, (node) => {
        if (node.kind === 'dim') return { ...node, name: dim(node.name) }
        if (node.kind === 'attr') return { ...node, name: attrs.get(node.name) ?? node.name }
        return node.kind === 'load' ? { ...node, tensor: tensor(node.tensor) } : node
      }),
    )
    return 'tensor' in named ? { ...named, tensor: tensor(named.tensor) } : named
  })
  return {
    ...kernel,
    dims: kernel.dims.map(dim),
    attrs: kernel.attrs.map((attr) => ({ ...attr, name: attrs.get(attr.name) ?? attr.name })),
    tensors: kernel.tensors.map((param) => {
      const axes = param.dims.map(dim)
      const { updates } = param
      return {
        ...param,
        name: tensor(param.name),
        dims: axes,
        layout: param.layout.name === 'row' ? rowMajor(axes) : param.layout,
        ...(updates === undefined ? {} : { updates: tensor(updates) }),
      }
    }),
    rows: kernel.rows.map((row) => ({ ...row, dim: dim(row.dim) })),
    body,
  }
}
