/**
 * Axes of one element among the rows of an epilogue. Views after a matmul add and drop them, and a main loop has one index for each axis of the
 * matmul. So an epilogue gets the unit axes that the matmul has, and loses those that it does not have.
 */
import { i32, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt, TensorParam } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { isUnitExtent } from '../../ir/shape.js'
import { mapStmt, rewrite, substitute } from '../../ir/walk.js'
import type { Derived } from '../rows/derive.js'
import type { Binding } from '../space/parameters.js'

/**
 * An epilogue with the unit rows of its matmul.
 * @param accumulators its tensors that stand for matmuls
 * @returns the epilogue unchanged where it has these rows, and where a tensor with a lost axis has a layout of its own
 */
export function withUnitRows(derived: Derived, accumulators: readonly string[]): Derived {
  const { kernel, inputs, outputs } = derived
  const { dims: product = [] } = kernel.tensors.find(({ name }) => name === accumulators[0]) ?? {}
  const units = unitsOf(kernel, [...inputs, ...outputs])
  const lost = kernel.rows.filter(({ dim }) => units.has(dim) && !product.includes(dim)).map(({ dim }) => dim)
  const missing = product.slice(0, -1).filter((dim) => units.has(dim) && kernel.rows.every((row) => row.dim !== dim))
  const isLaidOut = kernel.tensors.some(({ dims, layout }) => layout.name !== 'row' && lost.some((dim) => dims.includes(dim)))
  if (lost.length + missing.length === 0 || isLaidOut) return derived
  const bare = lost.reduce(withoutRow, derived)
  const hasOthers = bare.kernel.rows.some(({ dim }) => !product.includes(dim))
  return missing.length === 0 || hasOthers ? bare : withRows(bare, product, missing, accumulators)
}

/** Dimensions of one element at every size. */
function unitsOf({ tensors }: Kernel, bindings: readonly Binding[]): ReadonlySet<string> {
  const shapes = new Map(bindings.map(({ param, shape }) => [param, shape]))
  return new Set(
    tensors.flatMap(({ name, dims }) => {
      const shape = shapes.get(name) ?? []
      return dims.filter((_, axis) => shape[axis] !== undefined && isUnitExtent(shape[axis]))
    }),
  )
}

/** The epilogue without a row of one element, whose index is 0. */
function withoutRow(derived: Derived, lost: string): Derived {
  const { kernel, inputs, outputs } = derived
  const axisOf = (tensor: string): number => kernel.tensors.find(({ name }) => name === tensor)?.dims.indexOf(lost) ?? -1
  const cut = <T>(list: readonly T[], tensor: string): readonly T[] => list.filter((_, axis) => axis !== axisOf(tensor))
  const zero = new Map(kernel.rows.filter(({ dim }) => dim === lost).map((row) => [row.index, i32(0)] as const))
  const written = (expr: Expr): Expr =>
    rewrite(substitute(expr, zero), (node) =>
      node.kind === 'load' ? { ...node, indices: cut(node.indices, node.tensor) } : node,
    )
  const body = kernel.body.map((stmt): Stmt => {
    const made = mapStmt(stmt, written)
    if (made.kind === 'store') return { ...made, indices: cut(made.indices, made.tensor) }
    return made.kind === 'storeRow' ? { ...made, rows: cut(made.rows, made.tensor) } : made
  })
  const tensors = kernel.tensors.map((tensor): TensorParam => {
    const dims = cut(tensor.dims, tensor.name)
    return dims.length === tensor.dims.length ? tensor : { ...tensor, dims, layout: rowMajor(dims) }
  })
  const bound = (binding: Binding): Binding => ({ ...binding, shape: cut(binding.shape, binding.param) })
  const [rows, dims] = [kernel.rows.filter(({ dim }) => dim !== lost), kernel.dims.filter((dim) => dim !== lost)]
  return { ...derived, kernel: { ...kernel, dims, rows, tensors, body }, inputs: inputs.map(bound), outputs: outputs.map(bound) }
}

/** The epilogue with rows of one element, in the order of the matmul's axes. Results over the other axes of the matmul get them too. */
function withRows(
  derived: Derived,
  product: readonly string[],
  missing: readonly string[],
  accumulators: readonly string[],
): Derived {
  const { kernel, inputs, outputs } = derived
  const others = product.filter((dim) => !missing.includes(dim)).join()
  const grown = new Set(
    kernel.tensors
      .filter(({ access, dims, layout }) => access === 'out' && dims.join() === others && layout.name === 'row')
      .map(({ name }) => name),
  )
  const known = new Map(kernel.rows.map((row) => [row.dim, row]))
  const rows = product.slice(0, -1).flatMap((dim) => known.get(dim) ?? { index: `i_${dim}`, dim })
  const insert = <T>(list: readonly T[], unit: (dim: string) => T): readonly T[] => {
    const left = [...list]
    return product.flatMap((dim) => (missing.includes(dim) ? unit(dim) : left.splice(0, 1))).concat(left)
  }
  const own = (dim: string): Expr => index(`i_${dim}`)
  const atOwn = (place: Expr, axis: number): Expr => {
    const dim = product[axis]
    return dim !== undefined && missing.includes(dim) ? own(dim) : place
  }
  const written = (expr: Expr): Expr =>
    rewrite(expr, (node) =>
      node.kind === 'load' && accumulators.includes(node.tensor) ? { ...node, indices: node.indices.map(atOwn) } : node,
    )
  const body = kernel.body.map((stmt): Stmt => {
    const made = mapStmt(stmt, written)
    return made.kind === 'storeRow' && grown.has(made.tensor) ? { ...made, rows: insert(made.rows, own) } : made
  })
  const tensors = kernel.tensors.map(
    (tensor): TensorParam => (grown.has(tensor.name) ? { ...tensor, dims: product, layout: rowMajor(product) } : tensor),
  )
  const bound = (binding: Binding): Binding =>
    grown.has(binding.param) ? { ...binding, shape: insert(binding.shape, () => ({ factor: 1, dims: [] })) } : binding
  return { ...derived, kernel: { ...kernel, rows, tensors, body }, inputs, outputs: outputs.map(bound) }
}
