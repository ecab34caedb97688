/**
 * Resolves names in a body: to a binding of the body itself, a value branded by `heddle`, or a constant or
 * function of a module. Lookup uses the type checker's symbols, so that imports, aliases and re-exports all work.
 */
import { Node, type PropertyAccessExpression, type Symbol as TsSymbol, VariableDeclarationKind } from 'ts-morph'
import { f32 } from '../../ir/build.js'
import { getOwn } from '../../ir/get_own.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { Reported } from '../diagnostics/refusals.js'
import { quote, Rejection, reject } from '../diagnostics/reject.js'
import { givenFor, isFactoryBlock } from './factory_scope.js'
import { unknownNameHint } from './hints.js'
import { callableHint, globalConstants, insteadOf, insteadOfMember, refuseGlobalMember, staticObjects } from './javascript.js'
import { sourceOf } from './package_sources.js'
import { type Brand, describe, innerScope, type Lowering, lookUp, type Place, scalar, usable, type Value } from './values.js'

/** Reads the brand of src/lang/intrinsics.ts from the type of an expression. */
export function readBrand(node: Node): Brand | undefined {
  const brand = node.getType().getProperty('heddle')?.getTypeAtLocation(node)
  const [kind, name] = ['kind', 'name'].map((field) => brand?.getProperty(field)?.getTypeAtLocation(node).getLiteralValue())
  return typeof kind === 'string' && typeof name === 'string' ? { kind, name } : undefined
}

const isAmbient = (symbol: TsSymbol | undefined): boolean =>
  symbol?.getDeclarations().some((declaration) => declaration.getSourceFile().isDeclarationFile()) ?? false

/** True if a symbol is declared by the project or a package, rather than by TypeScript's own libraries. */
const isDeclaredHere = (symbol: TsSymbol): boolean =>
  symbol.getDeclarations().every((declaration) => !/\/lib\.[\w.]+\.d\.ts$/.test(declaration.getSourceFile().getFilePath()))

/** A module's declaration as a value. Only constants known at compile time and functions have one. */
function moduleValue(symbol: TsSymbol, node: Node, lowering: Lowering): Value {
  const name = quote(node)
  const declaration = symbol.getValueDeclaration()
  const argument = givenFor(symbol)
  if (argument !== undefined) return knownValue(argument, node, lowering)
  if (Node.isFunctionDeclaration(declaration) && Node.isSourceFile(declaration.getParent())) {
    if (declaration.getBody() === undefined) {
      return isAmbient(symbol)
        ? reject('callee', node, `${name} has no counterpart on a device`, insteadOf(name))
        : reject('callee', node, `${name} has no body to compile`, callableHint)
    }
    return { kind: 'function', node: declaration, scope: innerScope() }
  }
  if (isAmbient(symbol) && !isDeclaredHere(symbol))
    return reject('callee', node, `${name} has no counterpart on a device`, insteadOf(name))
  if (!Node.isVariableDeclaration(declaration)) {
    return reject(
      'runtimeValue',
      node,
      `${name} has its value only at run time`,
      'pass it as an attribute of the op, or make it a module-level const',
    )
  }
  const statement = declaration.getVariableStatement()
  if (statement !== undefined && statement.getDeclarationKind() !== VariableDeclarationKind.Const) {
    return reject(
      'mutable',
      node,
      `${name} is captured, but can change: it is declared with ${statement.getDeclarationKind()}`,
      'declare it const',
    )
  }
  const initializer = declaration.getInitializer()
  const isKnown = Node.isSourceFile(statement?.getParent()) || isFactoryBlock(statement?.getParent())
  if (!isKnown || initializer === undefined) {
    return reject(
      'runtimeValue',
      node,
      `${name} has its value only at run time`,
      'pass it as an attribute of the op, or make it a module-level const',
    )
  }
  return knownValue(initializer, node, lowering)
}

/** The value of `node` by its initializer. @throws Rejection if evaluating that requires running the module */
function knownValue(written: Node, node: Node, lowering: Lowering): Value {
  const { value, reason } = constantOf(written, lowering)
  if (value !== undefined) return value
  // A function without a device counterpart is refused where the author passes it on.
  if (reason?.refusal === 'callee' && reason.node === written) throw reason
  return reject(
    'runtimeValue',
    node,
    `${quote(node)} is not a constant known at compile time: it is ${quote(written)}`,
    'pass it as an attribute of the op, or write a number',
  )
}

/** The value of a module-level initializer; undefined if evaluating it requires running the module. */
function constantOf(
  initializer: Node,
  lowering: Lowering,
): { readonly value?: Value | undefined; readonly reason?: Rejection | undefined } {
  const restore = lowering.mark()
  try {
    const value = lowering.evaluate(initializer, { scope: innerScope(), level: 'element' })
    if (value.kind !== 'scalar') return { value }
    const expr = simplifyExpr(value.expr)
    return { value: expr.kind === 'const' ? scalar(expr) : undefined }
  } catch (error) {
    if (!(error instanceof Rejection || error instanceof Reported)) throw error
    restore()
    return { reason: error instanceof Rejection ? error : undefined }
  }
}

const target = (symbol: TsSymbol): TsSymbol => inSources(symbol.getAliasedSymbol() ?? symbol)

/** The same symbol in the source of a declaration file of the package: declarations have no bodies. */
function inSources(symbol: TsSymbol): TsSymbol {
  const file = symbol.getDeclarations()[0]?.getSourceFile()
  const path = sourceOf(file?.getFilePath() ?? '')
  const source = path === undefined ? undefined : file?.getProject().getSourceFile(path)
  const found = source?.getExportSymbols().find((each) => each.getName() === symbol.getName())
  return found === undefined ? symbol : (found.getAliasedSymbol() ?? found)
}

/** The value of an identifier. `symbol` is given where the identifier's own symbol is another one, as in `{ y }`. */
export function resolveIdentifier(node: Node, place: Place, lowering: Lowering, symbol = node.getSymbol()): Value {
  const name = node.getText()
  const unknown = (hint: string): never => reject('unknownIdentifier', node, `unknown identifier ${name}`, hint)
  if (symbol === undefined) return unknown(unknownNameHint(node))
  const bound = lookUp(place.scope, symbol.compilerSymbol)
  if (bound !== undefined) return usable(bound)
  const brand = readBrand(node)
  if (brand !== undefined) return { kind: 'brand', brand }
  const global = getOwn(globalConstants, name)
  if (global !== undefined && isAmbient(symbol)) return scalar(f32(global))
  if (name === 'undefined')
    return reject('expression', node, 'undefined is not a value of a kernel', 'every value is a number or a boolean')
  const found = target(symbol)
  if (found.getDeclarations().length === 0) return unknown('declare it, or import it from its module')
  return moduleValue(found, node, lowering)
}

/** The value of `object.name`: a constant of Math or Number, a member of a namespace import, or a field of a record. */
export function resolveProperty(node: PropertyAccessExpression, place: Place, lowering: Lowering): Value {
  const object = node.getExpression()
  if (node.hasQuestionDotToken())
    return reject('expression', node, 'optional access ?. is not part of the language', 'write a plain access')
  if (Node.isIdentifier(object)) {
    const symbol = object.getSymbol()
    if (symbol !== undefined && isAmbient(symbol) && lookUp(place.scope, symbol.compilerSymbol) === undefined) {
      const constant = getOwn(getOwn(staticObjects, object.getText()) ?? {}, node.getName())
      return constant === undefined ? refuseGlobalMember(node) : scalar(f32(constant))
    }
    if (symbol?.getDeclarations().some(Node.isNamespaceImport)) {
      const member = node.getNameNode().getSymbol()
      const brand = readBrand(node)
      if (brand !== undefined) return { kind: 'brand', brand }
      if (member === undefined)
        return reject('unknownIdentifier', node, `unknown identifier ${quote(node)}`, 'export it from its module')
      return moduleValue(target(member), node, lowering)
    }
  }
  const brand = readBrand(node)
  if (brand?.kind === 'monoid' && (brand.name === 'reduce' || brand.name === 'scan'))
    return { kind: 'monoid', definition: object, does: brand.name }
  const value = lowering.evaluate(object, place)
  const field = value.kind === 'record' ? value.fields.get(node.getName()) : undefined
  if (field !== undefined) return usable(field)
  return reject(
    'unknownIdentifier',
    node.getNameNode(),
    `${quote(object)} is ${describe(value)} without a field ${node.getName()}`,
    value.kind === 'record'
      ? `its fields are ${[...value.fields.keys()].join(', ')}`
      : value.kind === 'scalar'
        ? 'a number has no fields: compute with the functions of heddle'
        : insteadOfMember(quote(object), node.getName()),
  )
}
