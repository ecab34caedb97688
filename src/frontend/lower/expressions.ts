/**
 * Lowering of expressions: one entry for each syntax of the language. Any other syntax is refused by name, with a
 * replacement; nothing is skipped or approximated.
 */
import {
  type BinaryExpression,
  type ConditionalExpression,
  type ElementAccessExpression,
  Node,
  type ObjectLiteralExpression,
  SyntaxKind,
} from 'ts-morph'
import { constant } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { type IntrinsicName, intrinsic } from '../../ir/intrinsics.js'
import { Reported } from '../diagnostics/refusals.js'
import { quote, reject } from '../diagnostics/reject.js'
import { refuseAssignment } from '../diagnostics/statements.js'
import { checkFloat, literalNumber } from '../static/literals.js'
import { resolveIdentifier, resolveProperty } from '../static/resolve.js'
import { describe, type Lowering, lookUp, type Place, refused, scalar, type Value } from '../static/values.js'
import { type Guard, guarded } from '../types/guards.js'
import { applyIntrinsic, asScalar } from '../types/scalars.js'
import { callValue } from './calls.js'
import { refuseObjects } from './chosen.js'

const operators: Partial<Readonly<Record<SyntaxKind, IntrinsicName>>> = {
  [SyntaxKind.PlusToken]: 'add',
  [SyntaxKind.MinusToken]: 'sub',
  [SyntaxKind.AsteriskToken]: 'mul',
  [SyntaxKind.SlashToken]: 'div',
  [SyntaxKind.PercentToken]: 'mod',
  [SyntaxKind.AsteriskAsteriskToken]: 'pow',
  [SyntaxKind.AmpersandToken]: 'bitAnd',
  [SyntaxKind.BarToken]: 'bitOr',
  [SyntaxKind.CaretToken]: 'bitXor',
  [SyntaxKind.LessThanLessThanToken]: 'shiftLeft',
  [SyntaxKind.GreaterThanGreaterThanToken]: 'shiftRight',
  [SyntaxKind.LessThanToken]: 'lt',
  [SyntaxKind.LessThanEqualsToken]: 'le',
  [SyntaxKind.GreaterThanToken]: 'gt',
  [SyntaxKind.GreaterThanEqualsToken]: 'ge',
  [SyntaxKind.EqualsEqualsEqualsToken]: 'eq',
  [SyntaxKind.ExclamationEqualsEqualsToken]: 'ne',
  [SyntaxKind.AmpersandAmpersandToken]: 'and',
  [SyntaxKind.BarBarToken]: 'or',
}

const refusedOperators: Partial<Readonly<Record<SyntaxKind, string>>> = {
  [SyntaxKind.EqualsEqualsToken]: 'write ===',
  [SyntaxKind.ExclamationEqualsToken]: 'write !==',
  [SyntaxKind.QuestionQuestionToken]: 'a value of a kernel is never missing',
  [SyntaxKind.CommaToken]: 'give each value a name with const',
  [SyntaxKind.GreaterThanGreaterThanGreaterThanToken]:
    'write shiftRightUnsigned(a, b): its 32 bits are those of a >>> b, as an integer with a sign',
  [SyntaxKind.InKeyword]: 'name the field',
}

const refusedSyntax: Partial<Readonly<Record<SyntaxKind, readonly [what: string, hint: string]>>> = {
  [SyntaxKind.StringLiteral]: ['a string', 'a body computes numbers and booleans'],
  [SyntaxKind.NoSubstitutionTemplateLiteral]: ['a string', 'a body computes numbers and booleans'],
  [SyntaxKind.TemplateExpression]: ['a template string', 'a body computes numbers and booleans'],
  [SyntaxKind.ArrayLiteralExpression]: ['an array', 'make a row: row(n, (c) => ...)'],
  [SyntaxKind.AwaitExpression]: ['await', 'a body is computed at once'],
  [SyntaxKind.NewExpression]: ['new', 'a body computes numbers and booleans'],
  [SyntaxKind.PostfixUnaryExpression]: ['an increment or decrement', 'name a new value with const'],
  [SyntaxKind.SpreadElement]: ['a spread', 'pass every argument'],
  [SyntaxKind.FunctionExpression]: ['a function expression', 'write an arrow function'],
  [SyntaxKind.ThisKeyword]: ['this', 'take values as parameters'],
  [SyntaxKind.NullKeyword]: ['null', 'every value is a number or a boolean'],
  [SyntaxKind.BigIntLiteral]: ['a bigint', 'write a plain number'],
  [SyntaxKind.NonNullExpression]: ['a non-null assertion', 'a value of a kernel is never missing'],
  [SyntaxKind.DeleteExpression]: ['delete', 'a body has no effects'],
  [SyntaxKind.RegularExpressionLiteral]: ['a regular expression', 'a body computes numbers and booleans'],
  [SyntaxKind.YieldExpression]: ['yield', 'a body is computed at once'],
  [SyntaxKind.TaggedTemplateExpression]: ['a template string', 'a body computes numbers and booleans'],
  [SyntaxKind.ClassExpression]: ['a class', 'a body computes numbers and booleans'],
  [SyntaxKind.TypeOfExpression]: ['typeof', 'types are known at compile time'],
  [SyntaxKind.VoidExpression]: ['void', 'every function returns a value'],
}

const isAssignment = (kind: SyntaxKind): boolean => kind >= SyntaxKind.FirstAssignment && kind <= SyntaxKind.LastAssignment

/** Literals without a fraction are integers; they are converted to floats where a float is expected. */
function literal(value: number, node: Node): Expr {
  checkFloat(value, node)
  const isInteger = Number.isInteger(value) && Math.abs(value) < 2 ** 31 && !Object.is(value, -0)
  return constant(isInteger ? 'i32' : 'f32', value)
}

function power(base: Expr, exponent: Expr, nodes: readonly Node[], node: Node): Expr {
  const isSquare = exponent.kind === 'const' && exponent.value === 2
  return isSquare
    ? applyIntrinsic('square', [base], nodes.slice(0, 1), node)
    : applyIntrinsic('pow', [base, exponent], nodes, node)
}

/** Folds an operator on literals to the literal of its value, so that `1 / 3` and `1e6 * 1e6` are plain constants. */
function foldLiterals(expr: Expr, node: Node): Expr {
  if (expr.kind !== 'call') return expr
  const values = expr.args.flatMap((arg) => (arg.kind === 'const' ? [arg.value] : []))
  if (values.length !== expr.args.length) return expr
  const value = intrinsic(expr.fn).evaluate(...values)
  return typeof value === 'number' ? literal(value, node) : constant('bool', value)
}

/** Maps `make` over the nodes. @throws Reported if one is refused, after all were tried */
function all<T>(nodes: readonly Node[], lowering: Lowering, make: (node: Node, at: number) => T): readonly T[] {
  const made = nodes.map((node, at) => lowering.attempt(() => ({ value: make(node, at) })))
  return made.map((each) => {
    if (each === undefined) throw new Reported()
    return each.value
  })
}

function binary(node: BinaryExpression, place: Place, lowering: Lowering): Value {
  const token = node.getOperatorToken()
  const kind = token.getKind()
  if (isAssignment(kind)) {
    return refuseAssignment(node)
  }
  const fn = operators[kind]
  if (fn === undefined) {
    return reject(
      'expression',
      token,
      `the operator ${quote(token)} is not part of the language`,
      refusedOperators[kind] ?? 'write it with arithmetic',
    )
  }
  const nodes = [node.getLeft(), node.getRight()] as const
  const left = lowering.attempt(() => asScalar(lowering.evaluate(nodes[0], place), nodes[0]))
  const isLogical = fn === 'and' || fn === 'or'
  const inner = isLogical ? guarded(place, ...(left === undefined ? [] : [{ condition: left, holds: fn === 'and' }])) : place
  const right = lowering.attempt(() => asScalar(lowering.evaluate(nodes[1], inner), nodes[1]))
  if (left === undefined || right === undefined) throw new Reported()
  return scalar(
    foldLiterals(fn === 'pow' ? power(left, right, nodes, node) : applyIntrinsic(fn, [left, right], nodes, node), node),
  )
}

/** Guards that hold in a branch of a condition. */
const guardsOf = (condition: Value | undefined, holds: boolean): readonly Guard[] =>
  condition?.kind === 'scalar' ? [{ condition: condition.expr, holds }] : []

function conditional(node: ConditionalExpression, place: Place, lowering: Lowering): Value {
  const nodes = [node.getCondition(), node.getWhenTrue(), node.getWhenFalse()]
  let condition: Value | undefined
  const values = all(nodes, lowering, (part, at) => {
    if (at > 0) return lowering.evaluate(part, guarded(place, ...guardsOf(condition, at === 1)))
    condition = lowering.evaluate(part, place)
    return condition
  })
  refuseObjects(values.slice(1), node)
  const args = all(nodes, lowering, (part, at) => asScalar(values[at] ?? refused, part))
  const [test] = nodes
  if (args[0]?.type !== 'bool' && test !== undefined) {
    return reject('dtype', test, `the condition ${quote(test)} is a number`, 'compare it, as in a !== 0')
  }
  return scalar(applyIntrinsic('select', args, nodes, node))
}

function unary(node: Node, place: Place, lowering: Lowering): Value {
  if (!Node.isPrefixUnaryExpression(node)) throw new Error('internal: not a prefix operator')
  const operand = node.getOperand()
  const token = node.getOperatorToken()
  if (token === SyntaxKind.PlusPlusToken || token === SyntaxKind.MinusMinusToken) {
    return reject('expression', node, 'an increment or decrement is not part of the language', 'name a new value with const')
  }
  if (token === SyntaxKind.PlusToken || token === SyntaxKind.TildeToken) {
    return reject(
      'expression',
      node,
      `the operator ${token === SyntaxKind.PlusToken ? '+' : '~'} of one operand is not part of the language`,
      'write it with arithmetic',
    )
  }
  const value = asScalar(lowering.evaluate(operand, place), operand)
  if (token === SyntaxKind.MinusToken && value.kind === 'const' && typeof value.value === 'number') {
    return scalar(value.type === 'i32' ? literal(-value.value, node) : constant('f32', -value.value))
  }
  return scalar(applyIntrinsic(token === SyntaxKind.MinusToken ? 'neg' : 'not', [value], [operand], node))
}

function record(node: ObjectLiteralExpression, place: Place, lowering: Lowering): Value {
  const fields = new Map<string, Value>()
  for (const property of node.getProperties()) {
    if (Node.isPropertyAssignment(property) && !Node.isComputedPropertyName(property.getNameNode())) {
      const name = property.getName()
      const made = lowering.attempt(() => lowering.evaluate(property.getInitializerOrThrow(), place, name))
      fields.set(name, made ?? refused)
    } else if (Node.isShorthandPropertyAssignment(property)) {
      const made = lowering.attempt(() => resolveIdentifier(property.getNameNode(), place, lowering, property.getValueSymbol()))
      fields.set(property.getName(), made ?? refused)
    } else {
      const what = Node.isSpreadAssignment(property) ? 'an object spread' : `the property ${quote(property)}`
      reject('expression', property, `${what} is not part of the language`, 'name every field: { y: ... }')
    }
  }
  return { kind: 'record', fields, node }
}

function refuse(node: Node): never {
  const [what, hint] = refusedSyntax[node.getKind()] ?? [node.getKindName(), 'a body holds arithmetic, comparisons, ?: and calls']
  return reject('expression', node, `${what} is not part of the language`, hint)
}

/** Refuses `x[m][c]`: elements are read by calling. */
function refuseBrackets(node: ElementAccessExpression, { scope }: Place): never {
  let base: Node = node
  const indices: string[] = []
  while (Node.isElementAccessExpression(base)) {
    indices.unshift(base.getArgumentExpression()?.getText() ?? '')
    base = base.getExpression()
  }
  const symbol = Node.isIdentifier(base) ? base.getSymbol() : undefined
  const value = symbol === undefined ? undefined : lookUp(scope, symbol.compilerSymbol)
  if (value?.kind === 'refused') throw new Reported()
  if (value?.kind === 'access' || value?.kind === 'row')
    reject(
      'dynamicAccess',
      node,
      `${quote(base)} is ${describe(value)}, whose elements are read by calling it`,
      `write ${quote(base)}(${indices.join(', ')})`,
    )
  return reject(
    'dynamicAccess',
    node,
    `${quote(node)} picks a field while running`,
    'name the field, or read an element by calling: x(m, c)',
  )
}

function lower(node: Node, place: Place, lowering: Lowering, name?: string): Value {
  if (Node.isIdentifier(node)) return resolveIdentifier(node, place, lowering)
  if (Node.isNumericLiteral(node)) return scalar(literal(literalNumber(node), node))
  if (Node.isTrueLiteral(node) || Node.isFalseLiteral(node)) return scalar(constant('bool', node.getLiteralValue()))
  if (Node.isParenthesizedExpression(node)) return lowering.evaluate(node.getExpression(), place, name)
  if (Node.isAsExpression(node) || Node.isSatisfiesExpression(node)) return lowering.evaluate(node.getExpression(), place, name)
  if (Node.isBinaryExpression(node)) return binary(node, place, lowering)
  if (Node.isConditionalExpression(node)) return conditional(node, place, lowering)
  if (Node.isPrefixUnaryExpression(node)) return unary(node, place, lowering)
  if (Node.isArrowFunction(node)) return { kind: 'function', node, scope: place.scope }
  if (Node.isObjectLiteralExpression(node)) return record(node, place, lowering)
  if (Node.isPropertyAccessExpression(node)) return resolveProperty(node, place, lowering)
  if (Node.isElementAccessExpression(node)) return refuseBrackets(node, place)
  if (Node.isCallExpression(node)) {
    if (node.hasQuestionDotToken())
      return reject('expression', node, 'an optional call is not part of the language', 'write a plain call')
    const callee = lowering.attempt(() => lowering.evaluate(node.getExpression(), place))
    const args = all(node.getArguments(), lowering, (arg) => lowering.evaluate(arg, place))
    if (callee === undefined) throw new Reported()
    return callValue(callee, args, node, place, lowering, name)
  }
  return refuse(node)
}

/** The value of an expression. */
export function evaluate(node: Node, place: Place, lowering: Lowering, name?: string): Value {
  const value = lower(node, place, lowering, name)
  if (value.kind === 'scalar' && !Node.isNumericLiteral(node) && node.getType().isAny()) {
    return reject('any', node, `${quote(node)} has the type any`, 'give it the type number')
  }
  return value
}
