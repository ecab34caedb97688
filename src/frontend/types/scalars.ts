/**
 * Scalars and their types: checks of a body beyond TypeScript's `number`. Integers, floats and
 * booleans are distinguished, and an index is checked against the dimension it runs over.
 */
import { Node } from 'ts-morph'
import { call, constant, tryCall } from '../../ir/build.js'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { type IntrinsicName, intrinsic } from '../../ir/intrinsics.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { quote, reject } from '../diagnostics/reject.js'
import { describe, type Lowering, type Place, scalar, usable, type Value } from '../static/values.js'
import { isGuarded } from './guards.js'

/** Node of an argument; the node itself if it is not a call. */
export const argumentAt = (node: Node, at: number): Node =>
  Node.isCallExpression(node) ? (node.getArguments()[at] ?? node) : node

const plural: Readonly<Record<ScalarType, string>> = { f32: 'numbers', i32: 'integers', bool: 'booleans' }

export const mismatchHints: Readonly<Record<string, string>> = {
  'bool to number': 'write condition ? 1 : 0',
  'number to bool': 'compare it, as in a !== 0',
  'f32 to i32': 'use toInt, idiv or an integer tensor',
}

/** Hint for reading the counts of a histogram. */
export const nameHistogram = 'name it, and read its counts: const count = histogram(...), then count(j)'

/** The scalar a value is. @throws refusal of kind `row` or `dtype` for anything else. */
export function asScalar(given: Value, node: Node): Expr {
  const value = usable(given)
  if (value.kind === 'scalar') return value.expr
  if (value.kind === 'row' || value.kind === 'pendingRow' || value.kind === 'list') {
    return reject(
      'row',
      node,
      `${quote(node)} is a row where a number is expected`,
      'read an element of it, as in v(c), or reduce it',
    )
  }
  if (value.kind === 'histogram') {
    return reject('row', node, `${quote(node)} is a histogram where a number is expected`, nameHistogram)
  }
  return reject(
    'dtype',
    node,
    `${quote(node)} is ${describe(value)} where a number is expected`,
    value.kind === 'access' ? 'index it: x(m, c)' : undefined,
  )
}

const comparisons: ReadonlySet<IntrinsicName> = new Set(['lt', 'le', 'gt', 'ge', 'eq', 'ne'])

function checkComparison(args: readonly Expr[], node: Node): void {
  const [a, b] = args
  if (a === undefined || b === undefined || a.type === b.type) return
  const literal = (expr: Expr): boolean => expr.kind === 'const' && expr.type === 'i32'
  if (a.type !== 'bool' && b.type !== 'bool' && (literal(a) || literal(b))) return
  const [left, right] = [describe(scalar(a)), describe(scalar(b))]
  const hint =
    a.type === 'bool' || b.type === 'bool'
      ? 'use the boolean as it is'
      : 'convert the integer with toFloat, or declare the other as an integer'
  reject('comparison', node, `${quote(node)} compares ${left} with ${right}`, hint)
}

/** Operations on 32 bits, whose literals may be unsigned: 0x9e3779b9 is the integer with these bits, as in JavaScript. */
const ofBits: ReadonlySet<IntrinsicName> = new Set([
  'bitAnd',
  'bitOr',
  'bitXor',
  'wrappingAdd',
  'wrappingMul',
  'shiftRightUnsigned',
  'floatOfBits',
])

const asBits = (arg: Expr): Expr => {
  const isUnsigned =
    arg.kind === 'const' && Number.isInteger(arg.value) && Number(arg.value) >= 2 ** 31 && Number(arg.value) < 2 ** 32
  return isUnsigned ? constant('i32', Number(arg.value) | 0) : arg
}

/** Applies an intrinsic, or refuses the argument that it does not accept. */
export function applyIntrinsic(fn: IntrinsicName, given: readonly Expr[], nodes: readonly Node[], node: Node): Expr {
  const args = ofBits.has(fn) ? given.map(asBits) : given
  const { signatures, symbol } = intrinsic(fn)
  const name = fn === 'select' ? '?:' : (symbol ?? fn)
  const arity = signatures[0]?.params.length ?? 0
  if (args.length !== arity)
    reject(
      'arity',
      node,
      `${name} takes ${arity} arguments, ${args.length} given`,
      `write ${name}(${'abc'.slice(0, arity).split('').join(', ')})`,
    )
  if (comparisons.has(fn)) checkComparison(args, node)
  const made = tryCall(fn, args)
  if (made !== undefined) {
    checkDivisor(fn, made, nodes, node)
    return made
  }
  const accepts = (arg: Expr, at: number): boolean =>
    signatures.some(({ params }) => params[at] === arg.type || (params[at] === 'f32' && arg.type === 'i32'))
  const found = args.findIndex((arg, at) => !accepts(arg, at))
  // If each argument alone is accepted, their types differ: the last is compared with the one before it.
  const at = found === -1 ? args.length - 1 : found
  const wrong = args[at]
  if (wrong === undefined) throw new Error(`internal: ${fn} refuses no argument`)
  const wanted = found === -1 ? (args[at - 1]?.type ?? 'f32') : (signatures.at(-1)?.params[at] ?? 'f32')
  const hint = wrong.type === 'bool' ? 'bool to number' : wanted === 'bool' ? 'number to bool' : 'f32 to i32'
  const culprit = nodes[at] ?? node
  return reject(
    'dtype',
    culprit,
    `${name} takes ${plural[wanted]}, ${quote(culprit)} is ${describe(scalar(wrong))}`,
    mismatchHints[hint],
  )
}

/** Refuses an integer division by a known 0: there is no quotient, and the behaviour of devices differs. */
function checkDivisor(fn: IntrinsicName, made: Expr, nodes: readonly Node[], node: Node): void {
  const divisor = made.kind === 'call' && (fn === 'idiv' || fn === 'mod') ? made.args[1] : undefined
  if (divisor === undefined) return
  const known = simplifyExpr(divisor)
  if (known.kind === 'const' && known.value === 0)
    reject('zero', nodes[1] ?? node, `${quote(node)} divides an integer by 0`, 'divide by something else')
}

/** An integer expression used as an index or a length. */
export function asIndex(value: Value, node: Node, what: string): Expr {
  const expr = asScalar(value, node)
  if (expr.type === 'i32') return expr
  return reject(
    'index',
    node,
    `${what} ${quote(node)} is ${describe(value)}`,
    'indices and lengths are integers: use idiv, toInt or an integer tensor',
  )
}

/** Use of an index: the dimension that it indexes, and its description in messages. */
interface Wanted {
  readonly dim: string
  readonly what: string
}

/**
 * Lowers an index of a read. Refuses an index that provably runs over another dimension than the one it is used for, unless a condition keeps it
 * inside. A guarded index becomes an offset, which is read only where the condition holds.
 */
export function checkSpan(index: Expr, { dim: wanted, what }: Wanted, node: Node, place: Place, lowering: Lowering): Expr {
  if (index.kind === 'const' && Number(index.value) < 0)
    reject('shape', node, `index ${index.value} of ${what} is negative`, 'indices count from 0')
  if (index.kind !== 'index') return index
  const spans = lowering.spans.get(index.name)
  if (spans === undefined || spans === wanted) return index
  if (isGuarded(index.name, wanted, place, lowering)) return call('add', index, constant('i32', 0))
  // An index of no loop is one of the body's row indices.
  const ofBody = lowering.loops.has(index.name)
    ? ''
    : '; the indices of a body run over the leading dimensions of its outputs, in their order'
  const own = quote(node)
  const instead = `loop over ${wanted}, give both the same dimension name, or read it where it is inside, ${own} < ${wanted} ? ... : 0, or as an offset, first + ${own}`
  return reject('shape', node, `index ${own} runs over ${spans}, but ${what} is ${wanted} long`, instead + ofBody)
}
