/**
 * The rules of expressions: every name is bound before it is read, and read as its own kind; every node has the type that follows from
 * its operands. The verifiers of kernels (src/ir/verify.ts) and of schedules (src/schedule/verify/verify.ts) are built from these checks.
 */
import type { Check, Defined } from './constructs/construct.js'
import { type DType, dtypeInfo, type ScalarType } from './dtype.js'
import type { Expr, ExprOf } from './expr.js'
import { intrinsic } from './intrinsics.js'
import { type DTypeRef, type Kernel, printType, type TensorParam } from './kernel.js'
import { type MonoidName, monoid } from './monoids.js'
import { printExpr } from './print.js'
import { operands } from './walk.js'

export type Fail = (problem: string) => never

type Binding = Pick<Defined, 'type'> & { readonly kind: 'index' | 'local' | 'row' }

type Tensors = ReadonlyMap<string, { readonly rank: number; readonly type: ScalarType }>

/** Names that are in scope at one point of a kernel. */
export interface Scope {
  readonly fail: Fail
  readonly dims: ReadonlySet<string>
  readonly attrs: ReadonlyMap<string, ScalarType>
  readonly inputs: Tensors
  readonly outputs: Tensors
  /** Stores of each output. */
  readonly stores: number
  readonly bound: ReadonlyMap<string, Binding>
  /** Expressions already checked in this scope: a shared subexpression is checked once. */
  readonly checked: Set<Expr>
}

/** The scope with names added. */
export const bind = (scope: Scope, names: readonly (Binding & { readonly name: string })[]): Scope => ({
  ...scope,
  bound: new Map([...scope.bound, ...names.map(({ name, ...binding }) => [name, binding] as const)]),
  checked: new Set(),
})

export const bindIndex = (scope: Scope, name: string): Scope => bind(scope, [{ kind: 'index', name, type: 'i32' }])

/** The scope with another `fail`, which names the location. */
export const failingWith = (scope: Scope, fail: Fail): Scope => ({ ...scope, fail })

/** Scope of a kernel before any statement: everything its expressions may read, besides its row indices. */
export function scopeOf(kernel: Pick<Kernel, 'dims' | 'attrs' | 'tensors' | 'types' | 'storedPlaces'>, fail: Fail): Scope {
  const signature = (access: TensorParam['access']): Tensors =>
    new Map(
      kernel.tensors
        .filter((tensor) => tensor.access === access)
        .map(({ name, dims, dtype }) => [name, { rank: dims.length, type: scalarOf(dtype, kernel.types, fail) }]),
    )
  return {
    fail,
    dims: new Set(kernel.dims),
    attrs: new Map(kernel.attrs.map((attr) => [attr.name, attr.type])),
    inputs: signature('in'),
    outputs: signature('out'),
    stores: kernel.storedPlaces ?? 1,
    bound: new Map(),
    checked: new Set(),
  }
}

/** Scalar type of a load from the tensor: the same for every storage type it may have. */
function scalarOf(ref: DTypeRef, types: Kernel['types'], fail: Fail): 'f32' | 'i32' {
  const choices: readonly DType[] | undefined = typeof ref === 'string' ? [ref] : types[ref.param]
  if (choices === undefined) return fail(`type parameter ${printType(ref)} is not declared`)
  const scalars = new Set(choices.map((choice) => dtypeInfo[choice].scalar))
  const [scalar] = scalars
  return scalars.size === 1 && scalar !== undefined ? scalar : fail(`storage types ${choices.join(', ')} mix floats and integers`)
}

function combinedType(name: MonoidName, element: ScalarType, fail: Fail): ScalarType {
  const { element: accepted, result } = monoid(name)
  return accepted.includes(element) ? result(element) : fail(`${name} does not reduce ${element}`)
}

function callType({ fn, args }: ExprOf<'call'>, fail: Fail): ScalarType {
  const match = intrinsic(fn).signatures.find(
    ({ params }) => params.length === args.length && params.every((param, i) => param === args[i]?.type),
  )
  return match?.result ?? fail(`${fn} takes no (${args.map(({ type }) => type).join(', ')})`)
}

function boundType(kind: Binding['kind'], name: string, { bound, fail }: Scope): ScalarType {
  const found = bound.get(name)
  if (found === undefined) return fail(`${kind} ${name} is not in scope`)
  return found.kind === kind ? found.type : fail(`${name} is read as ${kind}, but is ${found.kind}`)
}

/** Fails if an expression is not an integer. */
export function expectIndex(expr: Expr, scope: Scope): void {
  expectInteger(expr, checkExpr(expr, scope), scope.fail)
}

function expectInteger(expr: Expr, type: ScalarType, fail: Fail): void {
  if (type !== 'i32') fail(`index or length ${printExpr(expr)} is ${type}, not i32`)
}

/** Type of a node, from its operands. These have been checked, except for the element of a fold. */
function inferType(expr: Expr, scope: Scope): ScalarType {
  const { fail } = scope
  switch (expr.kind) {
    case 'const': {
      const fits = expr.type === 'bool' ? typeof expr.value === 'boolean' : typeof expr.value === 'number'
      if (!fits || (expr.type === 'i32' && !Number.isInteger(expr.value))) fail(`constant ${expr.value} is not ${expr.type}`)
      return expr.type
    }
    case 'dim':
      return scope.dims.has(expr.name) ? 'i32' : fail(`dimension ${expr.name} is not declared`)
    case 'attr':
      return scope.attrs.get(expr.name) ?? fail(`attribute ${expr.name} is not declared`)
    case 'index':
    case 'local':
      return boundType(expr.kind, expr.name, scope)
    case 'element':
      expectInteger(expr.index, expr.index.type, fail)
      return boundType('row', expr.row, scope)
    case 'load': {
      const tensor = scope.inputs.get(expr.tensor)
      if (tensor === undefined) return fail(`${expr.tensor} is not an input`)
      if (tensor.rank !== expr.indices.length)
        fail(`${printExpr(expr)} has ${expr.indices.length} indices, the rank is ${tensor.rank}`)
      for (const at of expr.indices) expectInteger(at, at.type, fail)
      return tensor.type
    }
    case 'call':
      return callType(expr, fail)
    case 'fold': {
      expectInteger(expr.length, expr.length.type, fail)
      if (scope.bound.has(expr.index)) fail(`index ${expr.index} is bound twice`)
      return combinedType(expr.monoid, checkExpr(expr.value, bindIndex(scope, expr.index)), fail)
    }
  }
}

/** Checks an expression and all its operands, operands first, and returns its type. Does not recurse on deep expressions. */
export function checkExpr(root: Expr, scope: Scope): ScalarType {
  const { checked, fail } = scope
  const stack = [root]
  for (let node = stack.at(-1); node !== undefined; node = stack.at(-1)) {
    // The element of a fold has its own scope.
    const inner = node.kind === 'fold' ? [node.length] : operands(node)
    const pending = checked.has(node) ? [] : inner.filter((operand) => !checked.has(operand))
    stack.push(...[...pending].reverse())
    if (pending.length > 0) continue
    stack.pop()
    if (checked.has(node)) continue
    const type = inferType(node, scope)
    if (type !== node.type) fail(`${printExpr(node)} is ${type}, but says ${node.type}`)
    checked.add(node)
  }
  return root.type
}

/** The checks of one scope, as the rules of statements call them. */
export const checkIn = (scope: Scope): Check => {
  const { outputs, fail } = scope
  return {
    type: (expr) => checkExpr(expr, scope),
    element: (index, expr) => checkExpr(expr, bindIndex(scope, index)),
    index: (expr) => expectIndex(expr, scope),
    combined: (name, element) => combinedType(name, element, fail),
    says: (name, said, type) => {
      if (said !== type) fail(`${name} is ${type}, but says ${said}`)
    },
    store: (tensor, rank, value) => {
      const output = outputs.get(tensor) ?? fail(`${tensor} is not an output`)
      if (output.rank !== rank) fail(`the store to ${tensor} has ${rank} indices, the rank is ${output.rank}`)
      if (output.type !== value) fail(`the store to ${tensor} is ${value}, the tensor holds ${output.type}`)
    },
    within: (names) => checkIn(bind(scope, names)),
    fail,
  }
}

/** Fails if an output is not stored exactly once. `stored` names the tensor of every store. */
export function checkOutputs(stored: readonly string[], { outputs, stores, fail }: Scope): void {
  for (const name of outputs.keys()) {
    const times = stored.filter((tensor) => tensor === name).length
    if (times !== stores) fail(`output ${name} is stored ${times} times`)
  }
}
