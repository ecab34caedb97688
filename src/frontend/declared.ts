/** Which ops and layouts spec modules declare: by `op(...)` and `layout(...)` themselves, and by functions that return `op(...)`. */
import { type CallExpression, Node, type SourceFile, type Symbol as TsSymbol, type ts } from 'ts-morph'
import type { SourceSpan } from '../ir/kernel.js'
import { quote, Rejection, reject } from './diagnostics.js'
import { type Made, madeBy, obstacle, plainCall } from './factories.js'
import { inFactory, noFactory } from './factory_scope.js'
import { Refused } from './refusals.js'
import { type Declarators, declares, staticString } from './static.js'

export interface Declaration {
  readonly kind: 'op' | 'layout'
  /** `op(...)` or `layout(...)`. */
  readonly call: CallExpression
  readonly isExported: boolean
  /** How a function makes it, where one does. */
  readonly made?: Made
}

export const exportsOf = (file: SourceFile): readonly TsSymbol[] =>
  file.getExportSymbols().map((symbol) => symbol.getAliasedSymbol() ?? symbol)

const isTyped = (node: Node | undefined) =>
  Node.isAsExpression(node) || Node.isSatisfiesExpression(node) || Node.isParenthesizedExpression(node)

/** What surrounds a value, whatever its author says of its type. */
function around(value: Node): Node | undefined {
  const parent = value.getParent()
  return parent !== undefined && isTyped(parent) ? around(parent) : parent
}

const isExported = (call: Node, exported: ReadonlySet<ts.Symbol>): boolean => {
  const parent = around(call)
  const symbol = Node.isVariableDeclaration(parent) ? parent.getSymbol()?.compilerSymbol : undefined
  return Node.isExportAssignment(parent) || (symbol !== undefined && exported.has(symbol))
}

/** Every op and layout a file declares by itself. A declaration's functions declare nothing, so they are not searched. */
export function declarationsIn(file: SourceFile, declarators: Declarators): Declaration[] {
  const exported = new Set(exportsOf(file).map(({ compilerSymbol }) => compilerSymbol))
  const found: Declaration[] = []
  file.forEachDescendant((node, traversal) => {
    const kind = declares(node, declarators)
    if (!Node.isCallExpression(node) || kind === undefined || kind === 'tensor') return
    traversal.skip()
    found.push({ kind, call: node, isExported: isExported(node, exported) })
  })
  return found
}

/**
 * What calls of functions in a file declare: those that are the value of an exported const.
 * @param attempt runs what may refuse a call
 * @param refused gets the functions that are refused as makers of ops
 */
export function madeIn(
  file: SourceFile,
  declarators: Declarators,
  attempt: (call: CallExpression, action: () => void) => void,
  refused: Set<Node> = new Set(),
): Declaration[] {
  const exported = new Set(exportsOf(file).map(({ compilerSymbol }) => compilerSymbol))
  const found: Declaration[] = []
  for (const variable of file.getVariableDeclarations()) {
    const call = plainCall(variable.getInitializer())
    if (call === undefined || !isExported(call, exported) || declares(call, declarators) !== undefined) continue
    attempt(call, () => {
      const made = madeBy(call, declarators)
      if (made !== undefined) found.push({ kind: 'op', call: made.declaration, isExported: true, made })
      else if (isOp(call)) {
        const factory = obstacle(call.getExpression())?.factory
        if (factory !== undefined) refused.add(factory)
        refuseFactory(call)
      }
    })
  }
  return found
}

function refuseFactory(call: CallExpression): never {
  const name = quote(call.getExpression())
  const found = obstacle(call.getExpression())
  const because = found === undefined ? '' : `: it has ${found.what} in line ${found.at.getStartLineNumber()}`
  return reject(
    'notExported',
    call,
    `${name} gives an op, but does not only return op(...)${because}`,
    'a function that makes ops declares constants and returns op(...); its parameters may choose by condition ? a : b in a body',
  )
}

/** By the type that `op` returns, which nothing else has all fields of. */
function isOp(call: CallExpression): boolean {
  const type = call.getType()
  return ['name', 'dims', 'inputs', 'outputs', 'updates', 'attrs', 'body'].every((field) => type.getProperty(field) !== undefined)
}

/** Reads what is declared, the parameters of functions that make it standing for their arguments. A refusal says which op it is of. */
export function whileReading<T>({ made }: Declaration, place: (call: CallExpression) => SourceSpan, action: () => T): T {
  if (made === undefined) return action()
  try {
    return inFactory(made.scope, action)
  } catch (error) {
    const { file, line } = place(made.at)
    const within = ({ refusal, node, message, hint }: Rejection): Rejection =>
      new Rejection(refusal, node, `${message}, in the op made at ${file}:${line}`, hint)
    if (error instanceof Rejection) throw within(error)
    throw error instanceof Refused ? new Refused(error.rejections.map(within)) : error
  }
}

/** The name an op is declared with, where it is written out. */
export function nameOf({ call, made }: Declaration): string {
  const [name] = call.getArguments()
  if (name === undefined) return ''
  try {
    return inFactory(made?.scope ?? noFactory, () => staticString(name))
  } catch (error) {
    if (error instanceof Rejection) return ''
    throw error
  }
}
