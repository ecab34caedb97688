/**
 * Expressions as CUDA source. Operators and functions come from the intrinsics table, reductions from the monoid table. This file handles the
 * leaves, and the widths of integer arithmetic: indices of a body are 32-bit, tensor offsets are 64-bit.
 */
import type { Expr, ExprOf } from '../../ir/expr.js'
import { emittedForm } from '../../ir/forms.js'
import { type IntrinsicName, intrinsic } from '../../ir/intrinsics.js'
import type { TensorParam } from '../../ir/kernel.js'
import { monoid } from '../../ir/monoids.js'
import { mark } from '../../ir/trace.js'
import { operands } from '../../ir/walk.js'
import { offsetAt, tensorOf } from '../../loop/access.js'
import { literalText } from './literal.js'
import type { Names } from './names.js'
import { scalarText } from './names.js'

/** Names used by emitted source. Locals and tensors are recorded only if their sets are given. */
export interface Used {
  readonly dims: Set<string>
  readonly attrs: Set<string>
  readonly indices: Set<string>
  readonly locals?: Set<string>
  readonly tensors?: Set<string>
}

/** Meaning of names at one place of a kernel, with the names used so far. */
export interface Scope {
  readonly names: Names
  readonly tensors: readonly TensorParam[]
  readonly fixed: Readonly<Record<string, number>>
  /** Source of a row's element at the current loop index. */
  readonly elements: Map<string, string>
  /** Functions in source that read a row in shared memory at an index; absent if there are no such rows. */
  readonly shared?: Map<string, string>
  readonly used: Used
}

export { tensorOf }

/** Source of a scalar expression, without redundant outer parentheses. */
export const expressionText = (e: Expr, scope: Scope): string => innerText(e, scope) + mark(e)

/** The same without the trace mark: used inside a larger expression, whose mark covers it. */
const innerText = (e: Expr, scope: Scope): string => unwrap(text(e, scope))

/** Source of a scalar expression as an operand of an operator. */
export const operandText = (e: Expr, scope: Scope): string => text(e, scope)

/** Source of an index expression in 64 bits; `wide` converts a 32-bit operand to 64 bits. */
export const wideText = (e: Expr, scope: Scope, wide: (operand: string) => string = toInt64): string =>
  unwrap(widen(e, scope, wide, mayGrow(e)))

/** Offset of a tensor access, in 64 bits. */
export const offsetText = (tensor: string, indices: readonly Expr[], scope: Scope): string =>
  wideText(offsetAt(tensor, indices, scope), scope)

/** The functor of a reduction over elements of a type. */
export const monoidText = (name: ExprOf<'fold'>['monoid'], element: Expr['type']): string =>
  `${monoid(name).cuda}<${scalarText[element]}>`

function text(e: Expr, scope: Scope): string {
  switch (e.kind) {
    case 'const':
      return literalText(e)
    case 'dim':
      scope.used.dims.add(e.name)
      return scope.names.dim(e.name)
    case 'attr':
      scope.used.attrs.add(e.name)
      return scope.names.attr(e.name)
    case 'index':
      scope.used.indices.add(e.name)
      return scope.names.value(e.name)
    case 'local':
      scope.used.locals?.add(e.name)
      return scope.names.value(e.name)
    case 'element':
      return elementText(e, scope)
    case 'load':
      scope.used.tensors?.add(e.tensor)
      return `heddle::read(${scope.names.tensor(e.tensor)}, ${offsetText(e.tensor, e.indices, scope)})`
    case 'call':
      return callText(e, scope)
    case 'fold': {
      const value = `[&](int ${scope.names.value(e.index)}) { return ${innerText(e.value, scope)}; }`
      return `heddle::fold<${monoidText(e.monoid, e.value.type)}>(${innerText(e.length, scope)}, ${value})`
    }
  }
}

/** Source of a call. Arguments of a function need no parentheses of their own; operands of an operator do. */
function callText(e: ExprOf<'call'>, scope: Scope): string {
  const { cuda, symbol } = emittedForm(e)
  const isOperator = symbol !== undefined || e.fn === 'select'
  return cuda(
    e.args.map((arg) => (isOperator ? text(arg, scope) : innerText(arg, scope))),
    e.type,
  )
}

function elementText(e: ExprOf<'element'>, scope: Scope): string {
  const shared = scope.shared?.get(e.row)
  if (shared !== undefined) return `${shared}(${innerText(e.index, scope)})`
  const known = scope.elements.get(e.row)
  if (known === undefined) throw new Error(`internal: row ${e.row} is used before it is computed`)
  return known
}

const arithmetic = new Set<IntrinsicName>(['add', 'sub', 'mul', 'shiftLeft', 'neg'])
const quotient = new Set<IntrinsicName>(['idiv', 'mod', 'shiftRight', 'bitAnd'])

/**
 * Widens arithmetic. Sums and products of 32-bit numbers may need 64 bits: one operand of each is widened, and with it the result. Quotients and
 * masks of numbers that fit 32 bits are computed in 32, where they are several times faster.
 */
function widen(e: Expr, scope: Scope, wide: (operand: string) => string, must: boolean): string {
  const grows = e.kind === 'call' && (arithmetic.has(e.fn) || quotient.has(e.fn)) && mayGrow(e)
  if (!grows) return must ? wide(unwrap(text(e, scope))) : text(e, scope)
  const operands = e.args.map((arg, position) => widen(arg, scope, wide, position === 0))
  return intrinsic(e.fn).cuda(operands, e.type)
}

/** True if a value may need more than 32 bits. Right shifts operate on 32 bits, whatever the distance. */
function mayGrow(e: Expr): boolean {
  const seen = new Set<Expr>()
  const grows = (node: Expr): boolean => {
    if (seen.has(node) || (node.kind === 'call' && node.fn === 'shiftRightUnsigned')) return false
    seen.add(node)
    return (node.kind === 'call' && arithmetic.has(node.fn)) || operands(node).some(grows)
  }
  return grows(e)
}

const toInt64 = (operand: string): string => `static_cast<int64_t>(${operand})`

/** Strips one pair of parentheses around the whole source. */
function unwrap(source: string): string {
  if (!source.startsWith('(')) return source
  let depth = 0
  for (let i = 0; i < source.length; i++) {
    if (source[i] === '(') depth++
    if (source[i] === ')') depth--
    if (depth === 0) return i === source.length - 1 ? source.slice(1, -1) : source
  }
  return source
}
