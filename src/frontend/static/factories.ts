/**
 * Factories are functions that create ops: `const scaled = (name: string, by: number) => op(name, { ... })`, called as in `scaled('half', 0.5)`. Such
 * a function declares constants and returns `op(...)`, or calls another factory; it is not run. While an op is read, the parameters stand for the
 * arguments of the call that creates it.
 */
import {
  type ArrowFunction,
  type CallExpression,
  type FunctionDeclaration,
  Node,
  type ParameterDeclaration,
  type Symbol as TsSymbol,
  type ts,
} from 'ts-morph'
import { quote, reject } from '../diagnostics/reject.js'
import { nameOf } from '../diagnostics/statements.js'
import { type FactoryScope, inFactory, noFactory } from './factory_scope.js'
import { type Declarators, declares, follow, staticFields } from './literals.js'

type Factory = ArrowFunction | FunctionDeclaration

/** An op that a factory call creates. */
export interface Made {
  /** The author's call. */
  readonly at: CallExpression
  /** `op(...)` in the function. */
  readonly declaration: CallExpression
  readonly scope: FactoryScope
}

/** The called function, if its source is available. */
function functionOf(callee: Node): Factory | undefined {
  const found = follow(callee)
  if (Node.isArrowFunction(found)) return found
  const symbol = found.getSymbol()
  const declaration = (symbol?.getAliasedSymbol() ?? symbol)?.getValueDeclaration()
  return Node.isFunctionDeclaration(declaration) ? declaration : undefined
}

/** The statement that keeps a function from being a factory, and its description. */
export function obstacle(callee: Node): { readonly factory: Factory; readonly at: Node; readonly what: string } | undefined {
  const factory = functionOf(callee)
  const body = factory?.getBody()
  if (factory === undefined || !Node.isBlock(body)) return undefined
  const statements = body.getStatements()
  const odd = statements.find(
    (each, at) => !Node.isVariableStatement(each) && !(Node.isReturnStatement(each) && at === statements.length - 1),
  )
  const at = odd ?? statements.at(-1) ?? body
  return { factory, at, what: odd === undefined ? 'its return' : nameOf(odd) }
}

/** The call whose value a function returns; undefined if it returns no call, or does more than declare constants. */
function returnedBy(factory: Factory): CallExpression | undefined {
  const body = factory.getBody()
  if (!Node.isBlock(body)) return plainCall(body)
  const statements = body.getStatements()
  const last = statements.at(-1)
  const isPlain = statements.slice(0, -1).every((statement) => Node.isVariableStatement(statement))
  return isPlain && Node.isReturnStatement(last) ? plainCall(last.getExpression()) : undefined
}

/** The call under parentheses and type annotations of an expression. */
export function plainCall(node: Node | undefined): CallExpression | undefined {
  if (Node.isParenthesizedExpression(node) || Node.isAsExpression(node) || Node.isSatisfiesExpression(node))
    return plainCall(node.getExpression())
  return Node.isCallExpression(node) ? node : undefined
}

/**
 * The op that a call creates through factories; undefined if it creates none.
 * @throws Rejection for functions that call each other in a cycle, and for arguments that are not written out
 */
export function madeBy(at: CallExpression, declarators: Declarators): Made | undefined {
  let call = at
  let scope = noFactory
  while (declares(call, declarators) !== 'op') {
    const factory = functionOf(call.getExpression())
    const returned = factory === undefined ? undefined : returnedBy(factory)
    if (factory === undefined || returned === undefined) return undefined
    if (scope.factories.has(factory))
      reject(
        'recursion',
        at,
        `${quote(at.getExpression())} calls itself before it returns op(...)`,
        'return op(...) at some point',
      )
    scope = bound(factory, call, scope)
    call = returned
  }
  return call === at ? undefined : { at, declaration: call, scope }
}

/** Scope with the parameters of a factory bound to a call's arguments, on top of the bindings of the outer factories. */
function bound(factory: Factory, call: CallExpression, outer: FactoryScope): FactoryScope {
  const given = new Map(outer.given)
  const args = call.getArguments()
  factory.getParameters().forEach((parameter, at) => {
    const argument = args[at] ?? parameter.getInitializer()
    if (argument !== undefined) inFactory(outer, () => bind(parameter, argument, given))
  })
  return { given, factories: new Set([...outer.factories, factory]) }
}

function bind(parameter: ParameterDeclaration, argument: Node, given: Map<ts.Symbol, Node>): void {
  const name = parameter.getNameNode()
  if (parameter.isRestParameter() || Node.isSpreadElement(argument)) {
    const what = Node.isSpreadElement(argument) ? argument : parameter
    reject('parameter', what, `${quote(what)} does not say what each parameter is`, 'write one argument for each parameter')
  }
  const set = (symbol: TsSymbol | undefined, value: Node): void => {
    if (symbol !== undefined) given.set(symbol.compilerSymbol, value)
  }
  if (Node.isIdentifier(name)) {
    set(name.getSymbol(), argument)
    return
  }
  if (!Node.isObjectBindingPattern(name))
    reject('parameter', name, `${quote(name)} destructures a list`, 'take fields by name: ({ name, factor }) => op(...)')
  const fields = staticFields(argument)
  for (const element of name.getElements()) {
    const field = element.getPropertyNameNode() ?? element.getNameNode()
    const value = fields.get(field.getText())?.value ?? element.getInitializer()
    if (value !== undefined) set(element.getNameNode().getSymbol(), value)
  }
}
