/**
 * Functions of the subset: constants, then one result. Calls are inlined. At row level a constant becomes a `let`, so
 * it is computed once per row and keeps the author's name; inside an element it is bound to its expression, whose node all
 * uses share.
 */
import {
  type BindingElement,
  type BindingName,
  type Block,
  Node,
  type ParameterDeclaration,
  type Statement,
  SyntaxKind,
  type VariableDeclaration,
} from 'ts-morph'
import type { Expr } from '../../ir/expr.js'
import { placeHistogram, placeRow } from '../constructs/rows.js'
import { Reported } from '../diagnostics/refusals.js'
import { quote, reject } from '../diagnostics/reject.js'
import { followsFromVariable, refuseStatement, refuseVariable, returnsSomewhere } from '../diagnostics/statements.js'
import {
  describe,
  type FunctionNode,
  innerScope,
  type Lowering,
  lookUp,
  type Place,
  refused,
  type Value,
  type ValueOf,
} from '../static/values.js'

const functionName = (node: FunctionNode): string => {
  if (Node.isFunctionDeclaration(node)) return node.getName() ?? 'default'
  const parent = node.getParent()
  return Node.isVariableDeclaration(parent) ? parent.getName() : 'the function'
}

/** Expressions that are free to recompute. */
const trivial: Readonly<Record<Expr['kind'], boolean>> = {
  const: true,
  dim: true,
  attr: true,
  index: true,
  local: true,
  element: false,
  load: false,
  call: false,
  fold: false,
}

/** Gives a value a name: a `let` or a row statement at row level where that saves work. */
function settle(value: Value, name: string, place: Place, lowering: Lowering): Value {
  if (value.kind === 'pendingRow') return placeRow(value, name, place, lowering)
  if (value.kind === 'histogram') return placeHistogram(value, name, place, lowering)
  if (value.kind !== 'scalar' || place.level !== 'row' || trivial[value.expr.kind]) return value
  const { type } = value.expr
  const local = lowering.unique(name)
  lowering.emit({ kind: 'let', name: local, type, value: value.expr })
  lowering.named.set(local, value.expr)
  return { kind: 'scalar', expr: { kind: 'local', type, name: local } }
}

/** Binds every name of a pattern to the refused value. */
function bindRefused(name: BindingName, place: Place): void {
  if (Node.isIdentifier(name)) bindSymbol(name, refused, place)
  else for (const element of name.getElements()) if (Node.isBindingElement(element)) bindRefused(element.getNameNode(), place)
}

function bindSymbol(name: Node, value: Value, place: Place): void {
  const symbol = name.getSymbol()
  if (symbol !== undefined) place.scope.bindings.set(symbol.compilerSymbol, value)
}

/** Binds a name or the fields of an object pattern. */
function bindName(name: BindingName, value: Value, place: Place, lowering: Lowering): void {
  if (Node.isIdentifier(name)) {
    bindSymbol(name, value, place)
    return
  }
  if (value.kind === 'refused') {
    bindRefused(name, place)
    return
  }
  const hint = 'take fields by name: ({ x, gamma }, { n, eps })'
  if (!Node.isObjectBindingPattern(name) || value.kind !== 'record') {
    bindRefused(name, place)
    reject('parameter', name, `${quote(name)} cannot destructure ${describe(value)}`, hint)
  }
  for (const element of name.getElements()) {
    const field = lowering.attempt(() => fieldFor(element, value))
    if (field === undefined) bindRefused(element.getNameNode(), place)
    else lowering.attempt(() => bindName(element.getNameNode(), field, place, lowering))
  }
}

/** Field of an object that a pattern element takes. */
function fieldFor(element: BindingElement, { fields }: ValueOf<'record'>): Value {
  const rest = element.getDotDotDotToken() !== undefined
  if (rest || element.getInitializer() !== undefined)
    reject(
      'parameter',
      element,
      `${quote(element)}: a pattern has ${rest ? 'no rest' : 'no default'}`,
      rest
        ? 'take fields by name: ({ x, gamma }, { n, eps })'
        : 'every field is there: an attribute has its default in attrs of the op',
    )
  const property = element.getPropertyNameNode() ?? element.getNameNode()
  return (
    fields.get(property.getText()) ??
    reject('unknownIdentifier', property, `there is no field ${quote(property)}`, `there are ${[...fields.keys()].join(', ')}`)
  )
}

/** True if a parameter is worth a `let`: it is read more than once, or from a loop. */
function isReadOften(node: FunctionNode, name: string): boolean {
  const reads = node.getDescendantsOfKind(SyntaxKind.Identifier).filter((identifier) => identifier.getText() === name)
  return reads.length > 2 || node.getDescendantsOfKind(SyntaxKind.ArrowFunction).length > 0
}

function checkParameter(parameter: ParameterDeclaration): void {
  const form = parameter.isRestParameter()
    ? 'is a rest parameter'
    : parameter.hasInitializer()
      ? 'has a default'
      : parameter.hasQuestionToken()
        ? 'is optional'
        : undefined
  if (form !== undefined)
    reject('parameter', parameter, `parameter ${quote(parameter)} ${form}`, 'write plain parameters and pass every argument')
}

/** Binds the names of a declaration to its value. Reads of a refused value end without another error. */
function declareConst(declaration: VariableDeclaration, place: Place, lowering: Lowering): void {
  const nameNode = declaration.getNameNode()
  const name = declaration.getName()
  const value = lowering.attempt(() => {
    const initializer = declaration.getInitializer()
    // `let` and `var` are refused as such (refuseVariable).
    if (initializer === undefined && declaration.getVariableStatement()?.getDeclarationKind() !== 'const') throw new Reported()
    if (initializer === undefined) return reject('statement', declaration, `${name} has no value`, 'give it one')
    return settle(lowering.evaluate(initializer, place, name), name, place, lowering)
  })
  if (value === undefined) bindRefused(nameNode, place)
  else bindName(nameNode, value, place, lowering)
}

/** Refuses a statement, unless it follows from an earlier refusal. */
function refuseOther(statement: Statement, place: Place): true {
  if (followsFromVariable(statement)) return true
  if (Node.isFunctionDeclaration(statement)) bindSymbol(statement.getNameNode() ?? statement, refused, place)
  if (Node.isExpressionStatement(statement) && readsRefused(statement, place)) return true
  return refuseStatement(statement)
}

const readsRefused = (statement: Statement, { scope }: Place): boolean =>
  statement.getDescendantsOfKind(SyntaxKind.Identifier).some((name) => {
    const symbol = name.getSymbol()
    return symbol !== undefined && lookUp(scope, symbol.compilerSymbol)?.kind === 'refused'
  })

/** The result of a block: constants, then `return`. Every statement is lowered, also after a refusal. */
function runBlock(block: Block, place: Place, lowering: Lowering, wanted?: string): Value {
  const statements = block.getStatements()
  const last = statements.at(-1)
  let isRefused = false
  for (const statement of statements) {
    if (Node.isReturnStatement(statement) && statement === last) continue
    const done = lowering.attempt(() => {
      if (!Node.isVariableStatement(statement)) return refuseOther(statement, place)
      for (const declaration of statement.getDeclarations()) declareConst(declaration, place, lowering)
      refuseVariable(statement)
      return true
    })
    isRefused ||= done === undefined
  }
  const result = Node.isReturnStatement(last) ? last.getExpression() : undefined
  if (result !== undefined) return lowering.evaluate(result, place, wanted)
  // A return inside a statement that was refused is part of that mistake.
  if (isRefused && (returnsSomewhere(block) || statements.length === 1)) throw new Reported()
  return reject('statement', block, 'the function returns nothing', 'end it with return and a value')
}

/** Inlines a call. */
export function callFunction(
  { node, scope }: ValueOf<'function'>,
  args: readonly Value[],
  at: Node,
  place: Place,
  lowering: Lowering,
  wanted?: string,
): Value {
  const depth = lowering.stack.indexOf(node)
  if (depth !== -1) {
    const cycle = [...lowering.stack.slice(depth), node].map(functionName).join(' -> ')
    reject(
      'recursion',
      at,
      `${functionName(node)} calls itself: ${cycle}`,
      'a body has no recursion; repeat with a reduction over a row',
    )
  }
  if (node.isAsync() || (Node.isFunctionDeclaration(node) && node.isGenerator())) {
    const what = node.isAsync() ? 'async' : 'a generator'
    reject('expression', at, `${functionName(node)} is ${what}`, 'write an ordinary function: a body is computed at once')
  }
  const parameters = node.getParameters()
  parameters.forEach(checkParameter)
  if (parameters.length !== args.length) {
    const names = parameters.map((parameter) => parameter.getName()).join(', ')
    reject(
      'arity',
      at,
      `${functionName(node)} takes ${parameters.length} arguments, ${args.length} given`,
      `its parameters are (${names})`,
    )
  }
  const inner: Place = { ...place, scope: innerScope(scope) }
  parameters.forEach((parameter, i) => {
    const arg = args[i]
    if (arg === undefined) return
    const name = parameter.getName()
    const keep = arg.kind === 'scalar' && !isReadOften(node, name)
    bindName(parameter.getNameNode(), keep ? arg : settle(arg, name, place, lowering), inner, lowering)
  })
  lowering.stack.push(node)
  const body = node.getBody()
  if (body === undefined)
    return reject('callee', at, `${functionName(node)} has no body to compile`, 'call a function of the subset')
  const result = Node.isBlock(body) ? runBlock(body, inner, lowering, wanted) : lowering.evaluate(body, inner, wanted)
  lowering.stack.pop()
  return result
}
