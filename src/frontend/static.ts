/**
 * Reading signatures: names, dimensions, types and defaults are data that the compiler needs without running the module.
 * They are literals, or module-level constants made of literals, in this module or an imported one.
 */
import { Node, type NumericLiteral, type ts, VariableDeclarationKind } from 'ts-morph'
import { quote, reject } from './diagnostics.js'
import { readBrand } from './resolve.js'

/** A field of an object literal: where its name and its value are written. */
export interface Field {
  readonly key: Node
  readonly value: Node
}

function refuse(node: Node, wanted: string): never {
  return reject(
    'signature',
    node,
    `${quote(node)} is not ${wanted} known at compile time`,
    'write literals, or a module-level const made of literals',
  )
}

/** The declaration of a module-level const that a name stands for, wherever it is. */
function constantInitializer(node: Node): Node | undefined {
  const symbol = node.getSymbol()
  const declaration = (symbol?.getAliasedSymbol() ?? symbol)?.getValueDeclaration()
  if (!Node.isVariableDeclaration(declaration)) return undefined
  const statement = declaration.getVariableStatement()
  return statement?.getDeclarationKind() === VariableDeclarationKind.Const ? declaration.getInitializer() : undefined
}

/** Follows names, parentheses and `as const` to the expression that holds the value. */
export function follow(node: Node): Node {
  if (Node.isParenthesizedExpression(node) || Node.isAsExpression(node) || Node.isSatisfiesExpression(node))
    return follow(node.getExpression())
  if (Node.isIdentifier(node)) {
    const initializer = constantInitializer(node)
    return initializer === undefined ? node : follow(initializer)
  }
  if (Node.isPropertyAccessExpression(node)) {
    const object = follow(node.getExpression())
    const field = Node.isObjectLiteralExpression(object) ? staticFields(object).get(node.getName()) : undefined
    const found = field?.value ?? constantInitializer(node.getNameNode())
    return found === undefined ? node : follow(found)
  }
  return node
}

export function staticString(node: Node): string {
  const value = follow(node)
  if (Node.isStringLiteral(value) || Node.isNoSubstitutionTemplateLiteral(value)) return value.getLiteralValue()
  return refuse(node, 'a text')
}

/** ts-morph's own literal value stops at an exponent (`1e-12` gives 1), so the text is read instead. */
export const literalNumber = (node: NumericLiteral): number => Number(node.compilerNode.text)

export function staticNumber(node: Node): number {
  const value = follow(node)
  if (Node.isNumericLiteral(value)) return literalNumber(value)
  if (Node.isPrefixUnaryExpression(value) && value.getText().startsWith('-')) return -staticNumber(value.getOperand())
  const name = Node.isPropertyAccessExpression(value) || Node.isIdentifier(value) ? value.getText() : ''
  if (name === 'Number.POSITIVE_INFINITY' || name === 'Infinity') return Number.POSITIVE_INFINITY
  if (name === 'Number.NEGATIVE_INFINITY') return Number.NEGATIVE_INFINITY
  return refuse(node, 'a number')
}

/** The default of an attribute: `1e-5`, or `int(64)`. */
export function staticAttr(node: Node): { readonly type: 'f32' | 'i32'; readonly value: number } {
  const value = follow(node)
  if (!Node.isCallExpression(value) || readBrand(value.getExpression())?.kind !== 'int')
    return { type: 'f32', value: staticNumber(node) }
  const [argument] = value.getArguments()
  const integer = argument === undefined ? Number.NaN : staticNumber(argument)
  return Number.isInteger(integer) ? { type: 'i32', value: integer } : refuse(node, 'an integer')
}

/** A list of texts, each with the node it was written at. Spreads of constant lists are followed. */
export function staticStrings(node: Node): { readonly text: string; readonly node: Node }[] {
  const list = follow(node)
  if (!Node.isArrayLiteralExpression(list)) return refuse(node, 'a list of texts')
  return list
    .getElements()
    .flatMap((element) =>
      Node.isSpreadElement(element) ? staticStrings(element.getExpression()) : [{ text: staticString(element), node: element }],
    )
}

/** The fields of an object literal by name. Spreads of constant objects are followed. */
export function staticFields(node: Node): Map<string, Field> {
  const object = follow(node)
  if (!Node.isObjectLiteralExpression(object)) return refuse(node, 'an object')
  const fields = new Map<string, Field>()
  for (const property of object.getProperties()) {
    if (Node.isPropertyAssignment(property) && !Node.isComputedPropertyName(property.getNameNode())) {
      const key = property.getNameNode()
      const name = Node.isStringLiteral(key) ? key.getLiteralValue() : key.getText()
      fields.set(name, { key, value: property.getInitializer() ?? key })
    } else if (Node.isShorthandPropertyAssignment(property)) {
      const initializer = property.getValueSymbol()?.getAliasedSymbol() ?? property.getValueSymbol()
      const declaration = initializer?.getValueDeclaration()
      const value = Node.isVariableDeclaration(declaration) ? declaration.getInitializer() : undefined
      fields.set(property.getName(), { key: property.getNameNode(), value: value ?? property.getNameNode() })
    } else if (Node.isSpreadAssignment(property)) {
      for (const [name, field] of staticFields(property.getExpression())) fields.set(name, field)
    } else if (Node.isMethodDeclaration(property)) {
      reject('signature', property, `${property.getName()} is a method`, `write ${property.getName()}: (...) => ...`)
    } else {
      refuse(property, 'a field')
    }
  }
  return fields
}

/** The exports of `heddle` that declare something, by symbol, so that any import, alias or re-export is recognised. */
export type Declarators = ReadonlyMap<ts.Symbol, 'op' | 'layout' | 'tensor'>

/** Which declaration a call makes, if any. */
export function declares(node: Node, declarators: Declarators): 'op' | 'layout' | 'tensor' | undefined {
  if (!Node.isCallExpression(node)) return undefined
  const { symbol } = node.getExpression().getType().compilerType
  return symbol === undefined ? undefined : declarators.get(symbol)
}
