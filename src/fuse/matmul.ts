/** Derives a matmul kernel: the product runs in the template's main loop, the ops behind it become the epilogue of each element. */
import { dim, index } from '../ir/build.js'
import type { Graph, GraphNode, NodeOf } from '../ir/graph.js'
import type { Kernel, TensorParam } from '../ir/kernel.js'
import { rowMajor } from '../ir/layout.js'
import type { MatmulKernel } from '../ir/template.js'
import { visitKernel } from '../ir/walk.js'
import type { Derived } from './derive.js'
import { valueAt } from './edit.js'
import { deriveMembers, isUsed } from './members.js'
import { equalExprs } from './positions.js'
import { illegal, isElementwise, type Member } from './space.js'

/**
 * @param members the ops of the group, none for a bare product
 * @throws usage `plan.illegal` when the product is not `m k, n k -> m n` of row-major tensors, is needed outside of the group, or
 * when an op behind it does not work element by element on its rows
 */
export function deriveMatmul(
  graph: Graph,
  name: string,
  matmul: NodeOf<'matmul'>,
  members: readonly Member[],
): Derived<MatmulKernel> {
  const last = members.at(-1)?.node.name ?? matmul.name
  const { a, b, out } = matmul.subscripts
  const [m, k] = a
  const [n] = b
  if (
    JSON.stringify([a, b, out]) !==
      JSON.stringify([
        [m, k],
        [n, k],
        [m, n],
      ]) ||
    rowsOnly(graph, matmul) !== undefined
  ) {
    throw illegal(name, matmul.name, last, 'only products "m k, n k -> m n" of row-major tensors take an epilogue')
  }
  const derived = members.length === 0 ? bare(graph, name, matmul) : deriveMembers(graph, name, members)
  const inside = new Set<GraphNode>(members.map(({ node }) => node))
  if (members.length > 0 && isUsed(graph, matmul.out, inside)) {
    throw illegal(name, matmul.name, last, `the product ${matmul.name} is needed outside of the group`)
  }
  const before = members.find(({ node }) => graph.nodes.indexOf(node) < graph.nodes.indexOf(matmul))
  if (before !== undefined) throw illegal(name, before.node.name, matmul.name, 'an op before a product cannot be in its kernel')
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
  return assemble(graph, name, matmul, { ...derived, kernel: epilogue }, accumulator, [rows ?? '', columns ?? ''])
}

/** The operand that is not row-major, if any. */
const rowsOnly = (graph: Graph, { a, b, out }: NodeOf<'matmul'>): number | undefined =>
  [a, b, out].find((id) => valueAt(graph.values, id).layout !== 'row')

/** The epilogue of a bare product: it is stored as it is. */
function bare(graph: Graph, name: string, matmul: NodeOf<'matmul'>): Derived {
  const { dtype, shape } = valueAt(graph.values, matmul.out)
  const tensor = (param: string, access: TensorParam['access']): TensorParam => ({
    name: param,
    access,
    dtype,
    dims: ['m', 'n'],
    layout: rowMajor(['m', 'n']),
  })
  const kernel: Kernel = {
    name,
    source: { file: graph.name, line: 1, column: 1 },
    dims: ['m', 'n'],
    types: typeof dtype === 'string' ? {} : { [dtype.param]: ['f32', 'f16', 'bf16'] },
    attrs: [],
    tensors: [tensor('x', 'in'), tensor('y', 'out')],
    rows: [{ index: 'i_m', dim: 'm' }],
    body: [
      {
        kind: 'storeRow',
        tensor: 'y',
        rows: [index('i_m')],
        length: dim('n'),
        index: 'c',
        value: { kind: 'load', type: 'f32', tensor: 'x', indices: [index('i_m'), index('c')] },
      },
    ],
  }
  const binding = (param: string) => [{ param, value: matmul.out, shape }]
  return { kernel, inputs: binding('x'), outputs: binding('y'), attrs: {} }
}

function assemble(
  graph: Graph,
  name: string,
  matmul: NodeOf<'matmul'>,
  { kernel: epilogue, inputs, outputs, attrs }: Derived,
  accumulator: string,
  [m, n]: readonly [string, string],
): Derived<MatmulKernel> {
  const taken = new Set([
    ...epilogue.dims,
    ...epilogue.tensors.map((tensor) => tensor.name),
    ...epilogue.attrs.map((attr) => attr.name),
  ])
  const fresh = (wanted: string): string => {
    const given = taken.has(wanted) ? fresh(`${wanted}_`) : wanted
    taken.add(given)
    return given
  }
  const k = fresh('k')
  const operand = (wanted: string, id: number, rows: string): TensorParam => {
    const dims = [rows, k]
    return { name: fresh(wanted), access: 'in', dtype: valueAt(graph.values, id).dtype, dims, layout: rowMajor(dims) }
  }
  const [a, b] = [operand('a', matmul.a, m), operand('b', matmul.b, n)]
  const kernel: MatmulKernel = {
    kind: 'matmul',
    name,
    source: epilogue.source,
    dims: [...epilogue.dims, k],
    types: epilogue.types,
    attrs: epilogue.attrs,
    tensors: [a, b, ...epilogue.tensors.filter((tensor) => tensor.name !== accumulator)],
    a: a.name,
    b: b.name,
    m,
    n,
    k,
    constantB: Object.values(graph.weights).includes(matmul.b),
    epilogue,
    accumulator,
    constants: inputs.filter(({ value }) => Object.values(graph.weights).includes(value)).map(({ param }) => param),
  }
  const bound = [
    { param: a.name, value: matmul.a, shape: valueAt(graph.values, matmul.a).shape },
    { param: b.name, value: matmul.b, shape: valueAt(graph.values, matmul.b).shape },
    ...inputs.filter(({ param }) => param !== accumulator),
  ]
  return { kernel, inputs: bound, outputs, attrs }
}
