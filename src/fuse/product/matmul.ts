/** Derives a matmul kernel: the product runs in the template's main loop, the ops behind it become the epilogue of each element. */
import { dim, index } from '../../ir/build.js'
import type { Graph, GraphNode, NodeOf } from '../../ir/graph.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { type Layout, rowMajor } from '../../ir/layout.js'
import { parseLayoutName, splitLayout } from '../../ir/split_layout.js'
import type { MatmulKernel } from '../../ir/template.js'
import { visitKernel } from '../../ir/walk.js'
import { type LayoutsByName, valueAt } from '../graph/edit.js'
import type { Derived } from '../rows/derive.js'
import { deriveMembers, isUsed } from '../space/members.js'
import { equalExprs } from '../space/positions.js'
import { illegal, isElementwise, type Member } from '../space/space.js'

/** Axes of a product by role. */
interface Roles {
  /** In both operands and the result. */
  readonly batch: readonly string[]
  readonly m: string
  readonly n: string
  readonly k: string
}

/**
 * @param members the ops of the group, none for a bare product
 * @throws usage `plan.illegal` when the product is not `m k, n k -> m n` of row-major tensors (of int8, any layouts, and a batch where
 * nothing is behind it), is needed outside of the group, or when an op behind it does not work element by element on its rows
 */
export function deriveMatmul(
  graph: Graph,
  name: string,
  matmul: NodeOf<'matmul'>,
  members: readonly Member[],
  layouts: LayoutsByName,
): Derived<MatmulKernel> {
  const last = members.at(-1)?.node.name ?? matmul.name
  const roles = rolesOf(matmul)
  const integer = valueAt(graph.values, matmul.a).dtype === 'i8' && valueAt(graph.values, matmul.b).dtype === 'i8'
  const plain = roles?.batch.length === 0 && matmul.subscripts.out[0] === roles.m
  const rowMajorOnly = [matmul.a, matmul.b, matmul.out].every((id) => valueAt(graph.values, id).layout === 'row')
  if (roles === undefined || !(integer ? plain || members.length === 0 : plain && rowMajorOnly)) {
    const reason = integer
      ? 'products of int8 take an epilogue as "m k, n k -> m n", and a batch as "b m k, b n k -> b m n" without one'
      : 'only products "m k, n k -> m n" of row-major tensors take an epilogue'
    throw illegal(name, matmul.name, last, reason)
  }
  const inside = new Set<GraphNode>(members.map(({ node }) => node))
  if (members.length > 0 && isUsed(graph, matmul.out, inside)) {
    throw illegal(name, matmul.name, last, `the product ${matmul.name} is needed outside of the group`)
  }
  const before = members.find(({ node }) => graph.nodes.indexOf(node) < graph.nodes.indexOf(matmul))
  if (before !== undefined) throw illegal(name, before.node.name, matmul.name, 'an op before a product cannot be in its kernel')
  if (members.length === 0) return assemble(graph, name, matmul, roles, bare(graph, name, matmul, roles, layouts), 'x', layouts)
  const derived = deriveMembers(graph, name, members, layouts)
  const accumulator = derived.inputs.find(({ value }) => value === matmul.out)?.param
  if (accumulator === undefined) throw illegal(name, matmul.name, last, 'no op of the group reads the product')
  const epilogue = derived.kernel
  const [row] = epilogue.rows
  const product = epilogue.tensors.find((tensor) => tensor.name === accumulator)
  const [rows, columns] = product?.dims ?? []
  if (
    !isElementwise(epilogue) ||
    row === undefined ||
    epilogue.rows.length !== 1 ||
    row.dim !== rows ||
    columns === undefined ||
    product?.dims.length !== 2
  ) {
    throw illegal(name, matmul.name, last, 'an epilogue works on each element of the product by itself, row by row')
  }
  for (const stmt of epilogue.body) {
    if (stmt.kind !== 'storeRow' || stmt.length.kind !== 'dim' || stmt.length.name !== columns) continue
    visitKernel({ ...epilogue, body: [stmt] }, (expr) => {
      if (expr.kind !== 'load' || expr.tensor !== accumulator) return
      if (!equalExprs(expr.indices[0], index(row.index)) || !equalExprs(expr.indices[1], index(stmt.index)))
        throw illegal(name, matmul.name, last, 'the epilogue of an element reads another element of the product')
    })
  }
  const named: Roles = { batch: [], m: rows, n: columns, k: roles.k }
  return assemble(graph, name, matmul, roles, { ...derived, named }, accumulator, layouts)
}

/** The axes by role; undefined unless there is one of each and the result's last axis is b's own. */
function rolesOf({ subscripts: { a, b, out } }: NodeOf<'matmul'>): Roles | undefined {
  const has = (axes: readonly string[]) => (axis: string) => axes.includes(axis)
  const batch = out.filter((axis) => has(a)(axis) && has(b)(axis))
  const [m, ...moreM] = a.filter((axis) => has(out)(axis) && !has(b)(axis))
  const [n, ...moreN] = b.filter((axis) => has(out)(axis) && !has(a)(axis))
  const [k, ...moreK] = a.filter((axis) => has(b)(axis) && !has(out)(axis))
  if (m === undefined || n === undefined || k === undefined || moreM.length + moreN.length + moreK.length > 0) return undefined
  if (out.at(-1) !== n || out.length !== batch.length + 2) return undefined
  return a.length === batch.length + 2 && b.length === batch.length + 2 ? { batch, m, n, k } : undefined
}

/** A derived epilogue with the kernel's names for the product's axes. */
type Epilogue = Derived & { readonly named: Roles }

/** The epilogue of a bare product: it is stored as it is. */
function bare(graph: Graph, name: string, matmul: NodeOf<'matmul'>, roles: Roles, layouts: LayoutsByName): Epilogue {
  const { dtype, shape, layout } = valueAt(graph.values, matmul.out)
  const named: Roles = { batch: roles.batch.map((_, i) => `b${i}`), m: 'm', n: 'n', k: 'k' }
  const dims = matmul.subscripts.out.map((axis) => nameOf(axis, roles, named))
  const rows = [...named.batch, named.m]
  const accumulated: TensorParam = {
    name: 'x',
    access: 'in',
    dtype,
    dims: [...rows, named.n],
    layout: rowMajor([...rows, named.n]),
  }
  const stored: TensorParam = { name: 'y', access: 'out', dtype, dims, layout: layoutOver(layout, dims, layouts) }
  const at = (axis: string) => index(`i_${axis}`)
  const type = dtype === 'i32' ? 'i32' : 'f32'
  const kernel: Kernel = {
    name,
    source: { file: graph.name, line: 1, column: 1 },
    dims: [...rows, named.n],
    types: typeof dtype === 'string' ? {} : { [dtype.param]: ['f32', 'f16', 'bf16'] },
    attrs: [],
    tensors: [accumulated, stored],
    rows: rows.map((axis) => ({ index: `i_${axis}`, dim: axis })),
    body: [
      {
        kind: 'storeRow',
        tensor: 'y',
        rows: dims.slice(0, -1).map(at),
        length: dim(named.n),
        index: 'c',
        value: { kind: 'load', type, tensor: 'x', indices: [...rows.map(at), index('c')] },
      },
    ],
  }
  const binding = (param: string) => [{ param, value: matmul.out, shape }]
  return { kernel, inputs: binding('x'), outputs: binding('y'), attrs: {}, named }
}

const nameOf = (axis: string, roles: Roles, named: Roles): string => {
  const batch = named.batch[roles.batch.indexOf(axis)]
  return axis === roles.m ? named.m : axis === roles.n ? named.n : axis === roles.k ? named.k : (batch ?? axis)
}

/** The layout a value's name stands for, over the given dimensions. */
function layoutOver(text: string, dims: readonly string[], layouts: LayoutsByName): Layout {
  const { name, runs } = parseLayoutName(text)
  const layout = layouts.get(name)
  if (name === 'row') return rowMajor(dims)
  if (layout === undefined) throw new Error(`internal: layout ${name} is not declared`)
  return runs === undefined ? layout : splitLayout(layout, runs, dims)
}

function assemble(
  graph: Graph,
  name: string,
  matmul: NodeOf<'matmul'>,
  roles: Roles,
  { kernel: epilogue, inputs, outputs, attrs, named: given }: Epilogue,
  accumulator: string,
  layouts: LayoutsByName,
): Derived<MatmulKernel> {
  const taken = new Set([
    ...epilogue.dims,
    ...epilogue.tensors.map((tensor) => tensor.name),
    ...epilogue.attrs.map((attr) => attr.name),
  ])
  const fresh = (wanted: string): string => {
    const made = taken.has(wanted) ? fresh(`${wanted}_`) : wanted
    taken.add(made)
    return made
  }
  const named: Roles = { ...given, k: fresh('k') }
  const operand = (wanted: string, id: number, axes: readonly string[]): TensorParam => {
    const dims = axes.map((axis) => nameOf(axis, roles, named))
    const { dtype, layout } = valueAt(graph.values, id)
    return { name: fresh(wanted), access: 'in', dtype, dims, layout: layoutOver(layout, dims, layouts) }
  }
  const [a, b] = [operand('a', matmul.a, matmul.subscripts.a), operand('b', matmul.b, matmul.subscripts.b)]
  const kernel: MatmulKernel = {
    kind: 'matmul',
    name,
    source: epilogue.source,
    dims: [...epilogue.dims, named.k],
    types: epilogue.types,
    attrs: epilogue.attrs,
    tensors: [a, b, ...epilogue.tensors.filter((tensor) => tensor.name !== accumulator)],
    a: a.name,
    b: b.name,
    batch: named.batch,
    m: named.m,
    n: named.n,
    k: named.k,
    epilogue,
    accumulator,
  }
  const bound = [
    { param: a.name, value: matmul.a, shape: valueAt(graph.values, matmul.a).shape },
    { param: b.name, value: matmul.b, shape: valueAt(graph.values, matmul.b).shape },
    ...inputs.filter(({ param }) => param !== accumulator),
  ]
  return { kernel, inputs: bound, outputs, attrs }
}
