/**
 * Static evaluation for signatures: names, dimensions, types and defaults are data that the compiler needs without running the module.
 * They are literals, or module-level constants made of literals, in this module or an imported one.
 */
import { Node, type NumericLiteral, type ts, VariableDeclarationKind } from 'ts-morph'
import { limits } from '../../ir/size.js'
import { quote, reject } from '../diagnostics/reject.js'
import { givenFor } from './factory_scope.js'
import { readBrand } from './resolve.js'

/** A field of an object literal: the nodes of its name and its value. */
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

/** Initializer of a name: that of a module-level const in any module, or the argument of a factory parameter. */
function constantInitializer(node: Node, symbol = node.getSymbol()): Node | undefined {
  const argument = givenFor(symbol)
  if (argument !== undefined) return argument
  const declaration = (symbol?.getAliasedSymbol() ?? symbol)?.getValueDeclaration()
  if (!Node.isVariableDeclaration(declaration)) return undefined
  const statement = declaration.getVariableStatement()
  return statement?.getDeclarationKind() === VariableDeclarationKind.Const ? declaration.getInitializer() : undefined
}

/** Nodes already followed, to detect cycles. */
type Trail = readonly Node[]

function onward(trail: Trail, node: Node): Trail {
  if (trail.includes(node) || trail.length > limits.nesting)
    reject('recursion', node, `${quote(node)} is defined by itself`, 'write literals, or a module-level const made of literals')
  return [...trail, node]
}

/** Follows names, parentheses and `as const` to the expression that holds the value. */
export function follow(node: Node, trail: Trail = []): Node {
  const on = onward(trail, node)
  if (Node.isParenthesizedExpression(node) || Node.isAsExpression(node) || Node.isSatisfiesExpression(node))
    return follow(node.getExpression(), on)
  if (Node.isIdentifier(node)) {
    const initializer = constantInitializer(node)
    return initializer === undefined ? node : follow(initializer, on)
  }
  if (Node.isPropertyAccessExpression(node)) {
    const object = follow(node.getExpression(), on)
    const field = Node.isObjectLiteralExpression(object) ? staticFields(object, on).get(node.getName()) : undefined
    const found = field?.value ?? constantInitializer(node.getNameNode())
    return found === undefined ? node : follow(found, on)
  }
  return node
}

export function staticString(node: Node): string {
  const value = follow(node)
  if (Node.isStringLiteral(value) || Node.isNoSubstitutionTemplateLiteral(value)) return value.getLiteralValue()
  if (!Node.isTemplateExpression(value)) return refuse(node, 'a string')
  const parts = value.getTemplateSpans().map((span) => textOf(span.getExpression()) + span.getLiteral().getLiteralText())
  return value.getHead().getLiteralText() + parts.join('')
}

/** A string or a number as a template literal formats it. */
function textOf(node: Node): string {
  const value = follow(node)
  return Node.isNumericLiteral(value) ? String(literalNumber(value)) : staticString(value)
}

/** ts-morph's own literal value stops at an exponent (`1e-12` gives 1), so the text is read instead. */
export const literalNumber = (node: NumericLiteral): number => Number(node.compilerNode.text)

/** The largest float32. */
const largestFloat = 2 ** 128 - 2 ** 104

/** Refuses a number that float32 would round to an infinity or to 0. An intended infinity is written as one. */
export function checkFloat(value: number, node: Node): void {
  const single = Math.fround(value)
  if (Number.isFinite(value) && !Number.isFinite(single)) {
    const reason = `${quote(node)} is ${value}, beyond float32, whose largest number is ${largestFloat}`
    reject('range', node, reason, 'write Infinity or -Infinity where that is meant')
  }
  if (value !== 0 && single === 0)
    reject('range', node, `${quote(node)} is ${value}, which float32 rounds to 0: its smallest number is ${2 ** -149}`, 'write 0')
}

export function staticNumber(node: Node): number {
  const value = follow(node)
  if (Node.isNumericLiteral(value)) return literalNumber(value)
  if (Node.isPrefixUnaryExpression(value) && value.getText().startsWith('-')) return -staticNumber(value.getOperand())
  const name = Node.isPropertyAccessExpression(value) || Node.isIdentifier(value) ? value.getText() : ''
  if (name === 'Number.POSITIVE_INFINITY' || name === 'Infinity') return Number.POSITIVE_INFINITY
  if (name === 'Number.NEGATIVE_INFINITY') return Number.NEGATIVE_INFINITY
  return refuse(node, 'a number')
}

/** A list of numbers. */
export function staticNumbers(node: Node): readonly number[] {
  const list = follow(node)
  return Node.isArrayLiteralExpression(list) ? list.getElements().map(staticNumber) : refuse(node, 'a list of numbers')
}

/** The default of an attribute: `1e-5`, or `int(64)`. */
export function staticAttr(node: Node): { readonly type: 'f32' | 'i32'; readonly value: number } {
  const value = follow(node)
  if (!Node.isCallExpression(value) || readBrand(value.getExpression())?.kind !== 'int') {
    const number = staticNumber(node)
    if (!Number.isFinite(number))
      reject('range', node, `the default ${quote(node)} of an attribute is ${number}`, 'attributes are finite numbers')
    checkFloat(number, node)
    return { type: 'f32', value: number }
  }
  const [argument] = value.getArguments()
  const integer = argument === undefined ? Number.NaN : staticNumber(argument)
  if (!Number.isInteger(integer)) return refuse(node, 'an integer')
  if (integer < -(2 ** 31) || integer >= 2 ** 31)
    reject('range', node, `${quote(node)} is beyond int32`, `integers are ${-(2 ** 31)} to ${2 ** 31 - 1}`)
  return { type: 'i32', value: integer }
}

/** A list of strings, each with its node. Spreads of constant lists are followed. */
export function staticStrings(node: Node, trail: Trail = []): { readonly text: string; readonly node: Node }[] {
  const list = follow(node, trail)
  if (!Node.isArrayLiteralExpression(list)) return refuse(node, 'a list of strings')
  return list
    .getElements()
    .flatMap((element) =>
      Node.isSpreadElement(element)
        ? staticStrings(element.getExpression(), onward(trail, list))
        : [{ text: staticString(element), node: element }],
    )
}

/** The fields of an object literal by name. Spreads of constant objects are followed. */
export function staticFields(node: Node, trail: Trail = []): Map<string, Field> {
  const object = follow(node, trail)
  if (!Node.isObjectLiteralExpression(object)) return refuse(node, 'an object')
  const fields = new Map<string, Field>()
  for (const property of object.getProperties()) {
    if (Node.isPropertyAssignment(property) && !Node.isComputedPropertyName(property.getNameNode())) {
      const key = property.getNameNode()
      const name = Node.isStringLiteral(key) ? key.getLiteralValue() : key.getText()
      fields.set(name, { key, value: property.getInitializer() ?? key })
    } else if (Node.isShorthandPropertyAssignment(property)) {
      const value = constantInitializer(property.getNameNode(), property.getValueSymbol())
      fields.set(property.getName(), { key: property.getNameNode(), value: value ?? property.getNameNode() })
    } else if (Node.isSpreadAssignment(property)) {
      for (const [name, field] of staticFields(property.getExpression(), onward(trail, object))) fields.set(name, field)
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

/** The kind of declaration that a call creates, if any. */
export function declares(node: Node, declarators: Declarators): 'op' | 'layout' | 'tensor' | undefined {
  if (!Node.isCallExpression(node)) return undefined
  const { symbol } = node.getExpression().getType().compilerType
  return symbol === undefined ? undefined : declarators.get(symbol)
}
