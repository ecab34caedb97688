/** Ops and layouts that spec modules declare: by `op(...)` and `layout(...)` directly, and by functions that return `op(...)`. */
import { type CallExpression, Node, type SourceFile, type Symbol as TsSymbol, type ts } from 'ts-morph'
import type { SourceSpan } from '../../ir/kernel.js'
import { Refused } from '../diagnostics/refusals.js'
import { quote, Rejection, reject } from '../diagnostics/reject.js'
import { type Made, madeBy, obstacle, plainCall } from '../static/factories.js'
import { inFactory, noFactory } from '../static/factory_scope.js'
import { type Declarators, declares, staticString } from '../static/literals.js'

export interface Declaration {
  readonly kind: 'op' | 'layout'
  /** `op(...)` or `layout(...)`. */
  readonly call: CallExpression
  readonly isExported: boolean
  /** The factory call that creates it, if any. */
  readonly made?: Made
}

export const exportsOf = (file: SourceFile): readonly TsSymbol[] =>
  file.getExportSymbols().map((symbol) => symbol.getAliasedSymbol() ?? symbol)

const isTyped = (node: Node | undefined) =>
  Node.isAsExpression(node) || Node.isSatisfiesExpression(node) || Node.isParenthesizedExpression(node)

/** Parent of a value, past type annotations and parentheses. */
function around(value: Node): Node | undefined {
  const parent = value.getParent()
  return parent !== undefined && isTyped(parent) ? around(parent) : parent
}

const isExported = (call: Node, exported: ReadonlySet<ts.Symbol>): boolean => {
  const parent = around(call)
  const symbol = Node.isVariableDeclaration(parent) ? parent.getSymbol()?.compilerSymbol : undefined
  return Node.isExportAssignment(parent) || (symbol !== undefined && exported.has(symbol))
}

/** Every op and layout that a file declares directly. The functions of a declaration declare nothing, so they are not searched. */
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
 * Ops declared by factory calls in a file: calls that are the value of an exported const.
 * @param attempt runs an action that may refuse a call
 * @param refused collects the functions that are refused as factories
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
    `${name} returns an op, but does more than return op(...)${because}`,
    'a function that makes ops declares constants and returns op(...); its parameters may choose by condition ? a : b in a body',
  )
}

/** True if a call returns an op, recognised by the fields of its type: no other type has all of them. */
function isOp(call: CallExpression): boolean {
  const type = call.getType()
  return ['name', 'dims', 'inputs', 'outputs', 'updates', 'attrs', 'body'].every((field) => type.getProperty(field) !== undefined)
}

/** Runs an action with factory parameters bound to their arguments. A refusal names the op it concerns. */
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

/** The declared name of an op; empty if it is not a static string. */
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
