/**
 * Epilogues that a matmul library computes. A plan may leave a group with a matmul to the library: the epilogue is derived as for a generated kernel,
 * and has to be one that the library offers, regardless of the ops that it consists of. Values between its members are float32, as in a generated
 * epilogue.
 */
import { usageError } from '../../errors.js'
import { f32, index, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { type Graph, type GraphNode, type NodeOf, outputsOf, type ValueId } from '../../ir/graph.js'
import type { StmtOf, TensorParam } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import type { MatmulKernel } from '../../ir/template.js'
import { mapOperands, visit } from '../../ir/walk.js'
import type { PlanDecl } from '../../lang/plan.js'
import { isUsed } from '../space/members.js'
import { equalExprs } from '../space/positions.js'

/** An epilogue in terms of the kernel's tensors. */
export interface LibraryEpilogue {
  readonly bias: string | undefined
  readonly residual: string | undefined
  readonly relu: boolean
}

/** @throws usage `plan.library` for a name that is not a group of the plan */
export function checkLibrary({ name, library = [], groups }: PlanDecl): void {
  const known = groups.map(({ kernel }) => kernel)
  const other = library.find((group) => !known.includes(group))
  if (other === undefined) return
  throw usageError('plan.library', `plan ${name}: ${other} is to be the library's, but is not a group`, {
    hint: `groups: ${known.join(', ')}`,
    about: { path: ['library', other] },
  })
}

/**
 * The matmul of a library group, before anything is derived.
 * @param nodes the group's nodes in graph order
 * @throws usage `plan.library` unless there is one, of floats, whose factors are computed outside, followed by nodes of which only the last is
 * needed outside
 */
export function libraryMatmul(graph: Graph, group: string, nodes: readonly GraphNode[]): NodeOf<'matmul'> {
  const [first, second] = nodes.flatMap((node) => (node.kind === 'matmul' ? [node] : []))
  const names = nodes.map(({ name }) => name)
  const last = names.at(-1) ?? ''
  if (first === undefined) throw refuse(group, names[0] ?? '', last, 'neither is a matmul')
  if (second !== undefined) throw refuse(group, first.name, second.name, 'both are matmuls')
  if (nodes.length === 1) {
    throw usageError('plan.library', `group ${group}: the matmul ${first.name} has nothing after it`, {
      hint: "leave it out of the groups: a matmul by itself is the library's",
    })
  }
  const front = nodes.find(
    (node) => node.kind === 'op' && outputsOf(node).some((id) => id === source(graph, first.a) || id === source(graph, first.b)),
  )
  if (front !== undefined)
    throw refuse(group, front.name, first.name, `${front.name} computes a factor, and the library multiplies stored values`)
  if (graph.values[first.a]?.dtype === 'i8') throw refuse(group, first.name, last, 'it has no epilogue for sums of int8')
  const inside = new Set(nodes)
  const needed = nodes.slice(0, -1).find((node) => outputsOf(node).some((id) => isUsed(graph, id, inside)))
  if (needed === undefined) return first
  const reason = `the result of ${needed.name} is needed outside of the group, and the library stores the last one only`
  throw refuse(group, first.name, last, reason)
}

/** The value that a view reads; the value itself if it is not a view. */
function source(graph: Graph, id: ValueId): ValueId {
  const view = graph.nodes.find((node) => node.kind === 'view' && node.out === id)
  return view?.kind === 'view' ? source(graph, view.input) : id
}

const refuse = (group: string, first: string, second: string, reason: string) =>
  usageError('plan.library', `group ${group}: the library cannot compute nodes ${first} and ${second} as one: ${reason}`, {
    hint: `take ${group} out of \`library\`: a generated kernel takes any epilogue that works element by element`,
    about: { nodes: [first, second] },
  })

/**
 * The library's form of a derived matmul kernel.
 * @param ends the matmul and the last node of the group
 * @throws usage `plan.library` naming the two nodes and the reason
 */
export function libraryEpilogue(
  group: string,
  [matmul, last]: readonly [matmul: string, last: string],
  kernel: MatmulKernel,
): LibraryEpilogue {
  const fail = (reason: string) => refuse(group, matmul, last, reason)
  const [stored, ...more] = kernel.epilogue.body
  if (stored?.kind !== 'storeRow' || more.length > 0 || stored.when !== undefined) throw fail(noForm)
  const { sum, relu } = splitRelu(stored.value, kernel, fail)
  const added = addedTo(sum, stored, kernel, fail)
  if (added.residual !== undefined && relu) throw fail('it computes a residual or relu, not both')
  checkStorage(kernel, stored, added, fail)
  return { ...added, relu }
}

type Fail = (reason: string) => Error

const noForm =
  'its forms add a bias to each column, a residual to each element, or both, or apply relu with or without a bias ' +
  '(its GELU approximates tanh and errs by more than the tolerance table allows)'

/** A sum of loads that includes the matmul, and whether relu is applied to it. */
function splitRelu(value: Expr, kernel: MatmulKernel, fail: Fail): { readonly sum: Expr; readonly relu: boolean } {
  const isSum = (expr: Expr): boolean => {
    const terms = addends(expr)
    return terms.every(({ kind }) => kind === 'load') && terms.some((term) => isProduct(term, kernel))
  }
  let sum: Expr | undefined
  // Operands are visited after their expression: the first sum found is a whole one.
  visit(value, (expr) => {
    sum ??= isSum(expr) ? expr : undefined
  })
  if (sum === undefined) throw fail(`${noForm}; this is ${printExpr(value)}`)
  const applied = replace(value, sum, x)
  if (equalExprs(applied, x)) return { sum, relu: false }
  if (isRelu(applied)) return { sum, relu: true }
  throw fail(`${noForm}; this is ${printExpr(value)}`)
}

const isProduct = (expr: Expr, { products }: MatmulKernel): boolean =>
  expr.kind === 'load' && products.some(({ accumulator }) => expr.tensor === accumulator)

/** The terms of nested sums. */
const addends = (expr: Expr): readonly Expr[] =>
  expr.kind === 'call' && expr.fn === 'add' && expr.type === 'f32' ? expr.args.flatMap(addends) : [expr]

function replace(expr: Expr, what: Expr, by: Expr): Expr {
  return equalExprs(expr, what) ? by : mapOperands(expr, (operand) => replace(operand, what, by))
}

const x = local('x')

const isRelu = (expr: Expr): boolean =>
  expr.kind === 'call' && expr.fn === 'maximum' && [x, f32(0)].every((wanted) => expr.args.some((arg) => equalExprs(arg, wanted)))

/** Tensors that a sum adds to the matmul. */
function addedTo(
  sum: Expr,
  stored: StmtOf<'storeRow'>,
  kernel: MatmulKernel,
  fail: Fail,
): Pick<LibraryEpilogue, 'bias' | 'residual'> {
  const column = index(stored.index)
  const element = [...stored.rows, column]
  const at = (indices: readonly Expr[], wanted: readonly Expr[]) =>
    indices.length === wanted.length && indices.every((expr, i) => equalExprs(expr, wanted[i]))
  const found: { bias: string | undefined; residual: string | undefined } = { bias: undefined, residual: undefined }
  const [product, ...repeated] = addends(sum).filter((term) => isProduct(term, kernel))
  if (product?.kind !== 'load' || repeated.length > 0 || !at(product.indices, element))
    throw fail(`${noForm}; this is ${printExpr(sum)}`)
  for (const term of addends(sum)) {
    if (term === product || term.kind !== 'load') continue
    if (at(term.indices, stored.rows))
      throw fail(`${term.tensor} has one element per row, and the library's bias has one per column`)
    const part = at(term.indices, [column]) ? 'bias' : at(term.indices, element) ? 'residual' : undefined
    if (part === undefined || found[part] !== undefined) throw fail(`${noForm}; this is ${printExpr(sum)}`)
    found[part] = term.tensor
  }
  return found
}

/** Checks that tensors are row-major matrices of the operands' type, as the library stores and reads them. */
function checkStorage(
  kernel: MatmulKernel,
  stored: StmtOf<'storeRow'>,
  { bias, residual }: Pick<LibraryEpilogue, 'bias' | 'residual'>,
  fail: Fail,
): void {
  const tensor = (name: string): TensorParam | undefined => kernel.tensors.find((param) => param.name === name)
  const operand = tensor(kernel.a.tensor)
  for (const name of [stored.tensor, bias, residual]) {
    const param = name === undefined ? undefined : tensor(name)
    if (param === undefined) continue
    if (param.layout.name !== 'row')
      throw fail(`${param.name} is in layout ${param.layout.name}, and the library takes row-major matrices`)
    if (JSON.stringify(param.dtype) !== JSON.stringify(operand?.dtype))
      throw fail(`${param.name} is stored in another type than the operands of the matmul`)
  }
}
