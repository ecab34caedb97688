/**
 * The IR verifier: what every pass may rely on and must keep. It runs after each pass; a failure is a defect of that
 * pass, so the error is internal and names it. Rules: names are unique, every name is bound before it is read and read
 * as what it is, every node has the type its operands give it, and every output is stored exactly once.
 */
import { constructOf } from './constructs/index.js'
import { type DType, dtypeInfo, type ScalarType } from './dtype.js'
import type { Expr } from './expr.js'
import { intrinsic } from './intrinsics.js'
import type { DTypeRef, Kernel, Stmt, TensorParam } from './kernel.js'
import type { Layout } from './layout.js'
import { type MonoidName, monoid } from './monoids.js'
import { printExpr, printStmt } from './print.js'
import { introducedNames } from './walk.js'

type Fail = (problem: string) => never

type Binding = { readonly kind: 'index' | 'local' | 'row'; readonly type: ScalarType }

interface Names {
  readonly fail: Fail
  readonly dims: ReadonlySet<string>
  readonly attrs: ReadonlyMap<string, ScalarType>
  readonly inputs: ReadonlyMap<string, { readonly rank: number; readonly type: ScalarType }>
  readonly bound: ReadonlyMap<string, Binding>
}

const bind = (names: Names, name: string, binding: Binding): Names => ({
  ...names,
  bound: new Map([...names.bound, [name, binding]]),
})

/** What a load of the tensor yields: the same for every storage type it may have. */
function scalarOf(ref: DTypeRef, types: Kernel['types'], fail: Fail): 'f32' | 'i32' {
  const choices: readonly DType[] | undefined = typeof ref === 'string' ? [ref] : types[ref.param]
  if (choices === undefined) return fail(`type parameter ${JSON.stringify(ref)} is not declared`)
  const scalars = new Set(choices.map((choice) => dtypeInfo[choice].scalar))
  const [scalar] = scalars
  return scalars.size === 1 && scalar !== undefined ? scalar : fail(`storage types ${choices.join(', ')} mix floats and integers`)
}

function reductionType(name: MonoidName, element: ScalarType, fail: Fail): ScalarType {
  const { element: accepted, result } = monoid(name)
  return accepted.includes(element) ? result(element) : fail(`${name} does not reduce ${element}`)
}

function callType(expr: Extract<Expr, { kind: 'call' }>, names: Names): ScalarType {
  const args = expr.args.map((arg) => checkExpr(arg, names))
  const match = intrinsic(expr.fn).signatures.find(
    ({ params }) => params.length === args.length && params.every((param, i) => param === args[i]),
  )
  return match?.result ?? names.fail(`${expr.fn} takes no (${args.join(', ')})`)
}

function boundType(kind: Binding['kind'], name: string, names: Names): ScalarType {
  const found = names.bound.get(name)
  if (found === undefined) return names.fail(`${kind} ${name} is not in scope`)
  return found.kind === kind ? found.type : names.fail(`${name} is read as ${kind}, but is ${found.kind}`)
}

function expectIndex(expr: Expr, names: Names): void {
  const type = checkExpr(expr, names)
  if (type !== 'i32') names.fail(`index or length ${printExpr(expr)} is ${type}, not i32`)
}

/** The type the operands give a node, operands checked. */
function inferType(expr: Expr, names: Names): ScalarType {
  const { fail } = names
  switch (expr.kind) {
    case 'const': {
      const fits = expr.type === 'bool' ? typeof expr.value === 'boolean' : typeof expr.value === 'number'
      if (!fits || (expr.type === 'i32' && !Number.isInteger(expr.value))) fail(`constant ${expr.value} is not ${expr.type}`)
      return expr.type
    }
    case 'dim':
      return names.dims.has(expr.name) ? 'i32' : fail(`dimension ${expr.name} is not declared`)
    case 'attr':
      return names.attrs.get(expr.name) ?? fail(`attribute ${expr.name} is not declared`)
    case 'index':
    case 'local':
      return boundType(expr.kind, expr.name, names)
    case 'element':
      expectIndex(expr.index, names)
      return boundType('row', expr.row, names)
    case 'load': {
      const tensor = names.inputs.get(expr.tensor)
      if (tensor === undefined) return fail(`${expr.tensor} is not an input`)
      if (tensor.rank !== expr.indices.length)
        fail(`${printExpr(expr)} has ${expr.indices.length} indices, the rank is ${tensor.rank}`)
      for (const at of expr.indices) expectIndex(at, names)
      return tensor.type
    }
    case 'call':
      return callType(expr, names)
    case 'fold': {
      expectIndex(expr.length, names)
      if (names.bound.has(expr.index)) fail(`index ${expr.index} is bound twice`)
      const element = checkExpr(expr.value, bind(names, expr.index, { kind: 'index', type: 'i32' }))
      return reductionType(expr.monoid, element, fail)
    }
  }
}

function checkExpr(expr: Expr, names: Names): ScalarType {
  const type = inferType(expr, names)
  return type === expr.type ? type : names.fail(`${printExpr(expr)} is ${type}, but says ${expr.type}`)
}

type Outputs = ReadonlyMap<string, { readonly rank: number; readonly type: ScalarType }>

function checkStore(tensor: string, rank: number, value: ScalarType, outputs: Outputs, fail: Fail): void {
  const output = outputs.get(tensor)
  if (output === undefined) fail(`${tensor} is not an output`)
  if (output.rank !== rank) fail(`the store to ${tensor} has ${rank} indices, the rank is ${output.rank}`)
  if (output.type !== value) fail(`the store to ${tensor} is ${value}, the tensor holds ${output.type}`)
}

/** Checks a statement and returns the names that the next one may read. */
function checkStmt(stmt: Stmt, names: Names, outputs: Outputs): Names {
  const fail: Fail = (problem) => names.fail(`${problem}\n  in ${printStmt(stmt)}`)
  const here: Names = { ...names, fail }
  const construct = constructOf(stmt)
  construct.verify(stmt, {
    type: (expr) => checkExpr(expr, here),
    element: (at, expr) => checkExpr(expr, bind(here, at, { kind: 'index', type: 'i32' })),
    index: (expr) => expectIndex(expr, here),
    combined: (name, element) => reductionType(name, element, fail),
    says: (name, said, type) => {
      if (said !== type) fail(`${name} is ${type}, but says ${said}`)
    },
    store: (tensor, rank, value) => checkStore(tensor, rank, value, outputs, fail),
    fail,
  })
  return construct.defines(stmt).reduce((known, { name, ...binding }) => bind(known, name, binding), names)
}

/** Names a kernel introduces: parameters, row indices, and those of its statements. */
const kernelNames = (kernel: Kernel): string[] => [
  ...kernel.dims,
  ...kernel.attrs.map((attr) => attr.name),
  ...kernel.tensors.map((tensor) => tensor.name),
  ...kernel.rows.map((row) => row.index),
  ...kernel.body.flatMap(introducedNames),
]

/** An output that updates an input has its memory, so the two must agree in all that says how elements lie there. */
function checkUpdate(tensor: TensorParam, tensors: readonly TensorParam[], fail: Fail): void {
  const { name, access, updates } = tensor
  if (updates === undefined) return
  const before = tensors.find((other) => other.name === updates)
  if (access !== 'out' || before?.access !== 'in') fail(`${name} updates ${updates}: an output may update an input`)
  const form = (of: TensorParam | undefined): string => JSON.stringify([of?.dtype, of?.dims, of?.layout.name])
  if (form(tensor) !== form(before)) fail(`${name} updates ${updates}, which is stored otherwise`)
  if (tensors.some((other) => other !== tensor && other.updates === updates)) fail(`${updates} is updated twice`)
}

function checkParameters(kernel: Kernel, fail: Fail): void {
  const seen = new Set<string>()
  for (const name of kernelNames(kernel)) {
    if (seen.has(name)) fail(`name ${name} is introduced twice`)
    seen.add(name)
  }
  const dims = new Set(kernel.dims)
  for (const row of kernel.rows) if (!dims.has(row.dim)) fail(`row index ${row.index} spans unknown dimension ${row.dim}`)
  for (const { name, dims: extents, layout } of kernel.tensors) {
    for (const extent of extents) if (!dims.has(extent)) fail(`tensor ${name} has unknown dimension ${extent}`)
    if (layout.axes.length !== extents.length)
      fail(`tensor ${name} of rank ${extents.length} is in a layout of ${layout.axes.length} axes`)
  }
  for (const tensor of kernel.tensors) checkUpdate(tensor, kernel.tensors, fail)
  const firstOut = kernel.tensors.findIndex((tensor) => tensor.access === 'out')
  if (firstOut < 0) fail('it has no output')
  if (kernel.tensors.slice(firstOut).some((tensor) => tensor.access === 'in')) fail('an input follows an output')
}

/**
 * Checks every rule of the IR.
 * @param pass the pass that made the kernel; the error names it.
 * @throws an internal error naming pass, kernel, problem and statement.
 */
export function verifyKernel(kernel: Kernel, pass: string): void {
  const fail: Fail = (problem) => {
    throw new Error(`internal: after ${pass}: kernel ${kernel.name}: ${problem}`)
  }
  checkParameters(kernel, fail)
  const signature = (access: TensorParam['access']): Outputs =>
    new Map(
      kernel.tensors
        .filter((tensor) => tensor.access === access)
        .map(({ name, dims, dtype }) => [name, { rank: dims.length, type: scalarOf(dtype, kernel.types, fail) }]),
    )
  const outputs = signature('out')
  let names: Names = {
    fail,
    dims: new Set(kernel.dims),
    attrs: new Map(kernel.attrs.map((attr) => [attr.name, attr.type])),
    inputs: signature('in'),
    bound: new Map(kernel.rows.map((row) => [row.index, { kind: 'index', type: 'i32' }])),
  }
  for (const stmt of kernel.body) names = checkStmt(stmt, names, outputs)
  for (const name of outputs.keys()) {
    const stores = kernel.body.filter((stmt) => 'tensor' in stmt && stmt.tensor === name)
    if (stores.length !== 1) fail(`output ${name} is stored ${stores.length} times`)
  }
}

/** Checks that a layout is integer arithmetic over its own axes. @throws an internal error naming the pass. */
export function verifyLayout(layout: Layout, pass: string): void {
  const fail: Fail = (problem) => {
    throw new Error(`internal: after ${pass}: layout ${layout.name}: ${problem}`)
  }
  if (new Set(layout.axes).size !== layout.axes.length) fail('an axis is named twice')
  const names: Names = { fail, dims: new Set(layout.axes), attrs: new Map(), inputs: new Map(), bound: new Map() }
  const indices: Names = { ...names, bound: new Map(layout.axes.map((axis) => [axis, { kind: 'index', type: 'i32' }])) }
  expectIndex(layout.offset, indices)
  expectIndex(layout.size, names)
}
