/**
 * Functions of the subset: constants, then one result. Calls are inlined. At row level a constant becomes a `let`, so
 * it is computed once a row and keeps the author's name; inside an element it is bound to its expression, whose node all
 * uses share.
 */
import { type BindingName, type Block, Node, type ParameterDeclaration, SyntaxKind, VariableDeclarationKind } from 'ts-morph'
import type { Expr } from '../ir/expr.js'
import { quote, reject } from './diagnostics.js'
import { placeRow } from './rows.js'
import { describe, type FunctionNode, innerScope, type Lowering, type Place, type Value, type ValueOf } from './values.js'

const functionName = (node: FunctionNode): string => {
  if (Node.isFunctionDeclaration(node)) return node.getName() ?? 'default'
  const parent = node.getParent()
  return Node.isVariableDeclaration(parent) ? parent.getName() : 'the function'
}

/** Expressions that cost nothing to repeat. */
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
  if (value.kind !== 'scalar' || place.level !== 'row' || trivial[value.expr.kind]) return value
  const { type } = value.expr
  const local = lowering.unique(name)
  lowering.emit({ kind: 'let', name: local, type, value: value.expr })
  return { kind: 'scalar', expr: { kind: 'local', type, name: local } }
}

/** Binds a name or the fields of an object pattern. */
function bindName(name: BindingName, value: Value, place: Place): void {
  if (Node.isIdentifier(name)) {
    const symbol = name.getSymbol()
    if (symbol !== undefined) place.scope.bindings.set(symbol.compilerSymbol, value)
    return
  }
  const hint = 'take fields by name: ({ x, gamma }, { n, eps })'
  if (!Node.isObjectBindingPattern(name) || value.kind !== 'record') {
    reject('parameter', name, `${quote(name)} cannot take ${describe(value)} apart`, hint)
  }
  for (const element of name.getElements()) {
    if (element.getDotDotDotToken() !== undefined || element.getInitializer() !== undefined) {
      reject('parameter', element, `${quote(element)}: a pattern has neither rest nor default`, hint)
    }
    const property = element.getPropertyNameNode() ?? element.getNameNode()
    const field = value.fields.get(property.getText())
    if (field === undefined) {
      reject(
        'unknownIdentifier',
        property,
        `there is no ${quote(property)} to take`,
        `there are ${[...value.fields.keys()].join(', ')}`,
      )
    }
    bindName(element.getNameNode(), field, place)
  }
}

/** Whether a parameter is worth a `let`: it is read more than once, or from a loop. */
function isReadOften(node: FunctionNode, name: string): boolean {
  const reads = node.getDescendantsOfKind(SyntaxKind.Identifier).filter((identifier) => identifier.getText() === name)
  return reads.length > 2 || node.getDescendantsOfKind(SyntaxKind.ArrowFunction).length > 0
}

function checkParameter(parameter: ParameterDeclaration): void {
  const form = parameter.isRestParameter()
    ? 'a rest parameter'
    : parameter.hasInitializer()
      ? 'a default'
      : parameter.hasQuestionToken()
        ? 'optional'
        : undefined
  if (form !== undefined)
    reject('parameter', parameter, `parameter ${quote(parameter)} is ${form}`, 'write plain parameters and pass every argument')
}

const statementHints: Partial<Readonly<Record<SyntaxKind, string>>> = {
  [SyntaxKind.IfStatement]: 'write condition ? a : b',
  [SyntaxKind.ForStatement]: 'reduce with sum, max, min, or make a row(n, (c) => ...)',
  [SyntaxKind.ForOfStatement]: 'reduce with sum, max, min, or make a row(n, (c) => ...)',
  [SyntaxKind.WhileStatement]: 'reduce with sum, max, min, or make a row(n, (c) => ...)',
  [SyntaxKind.ExpressionStatement]: 'a body has no effects: give the value a name with const',
  [SyntaxKind.FunctionDeclaration]: 'write it as a const arrow function, or at module level',
  [SyntaxKind.ReturnStatement]: 'return once, at the end; choose with condition ? a : b',
}

/** The result of a block: constants, then `return`. */
function runBlock(block: Block, place: Place, lowering: Lowering, wanted?: string): Value {
  const statements = block.getStatements()
  const last = statements.at(-1)
  for (const statement of statements) {
    if (Node.isVariableStatement(statement)) {
      const kind = statement.getDeclarationKind()
      if (kind !== VariableDeclarationKind.Const)
        reject('statement', statement, `${kind} is not part of the language`, 'use const')
      for (const declaration of statement.getDeclarations()) {
        const name = declaration.getName()
        const initializer =
          declaration.getInitializer() ?? reject('statement', declaration, `${name} has no value`, 'give it one')
        bindName(declaration.getNameNode(), settle(lowering.evaluate(initializer, place, name), name, place, lowering), place)
      }
    } else if (!Node.isReturnStatement(statement) || statement !== last) {
      const hint = statementHints[statement.getKind()] ?? 'a function holds const declarations and one return at its end'
      reject('statement', statement, `${statement.getKindName()} is not part of the language`, hint)
    }
  }
  const result = Node.isReturnStatement(last) ? last.getExpression() : undefined
  return result === undefined
    ? reject('statement', block, 'the function returns nothing', 'end it with return and a value')
    : lowering.evaluate(result, place, wanted)
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
    reject('expression', at, `${functionName(node)} is async or a generator`, 'write an ordinary function')
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
    bindName(parameter.getNameNode(), keep ? arg : settle(arg, name, place, lowering), inner)
  })
  lowering.stack.push(node)
  const body = node.getBody()
  if (body === undefined)
    return reject('callee', at, `${functionName(node)} has no body to compile`, 'call a function of the subset')
  const result = Node.isBlock(body) ? runBlock(body, inner, lowering, wanted) : lowering.evaluate(body, inner, wanted)
  lowering.stack.pop()
  return result
}
