/** Refuses statements outside of the subset: each by its JavaScript name, with a replacement. */
import {
  type Block,
  type Expression,
  type ForOfStatement,
  type ForStatement,
  Node,
  type Statement,
  SyntaxKind,
  VariableDeclarationKind,
  type VariableStatement,
} from 'ts-morph'
import { quote, reject } from './reject.js'

const reduceHint = 'reduce with sum, max or min, carry something along with fold, or make a row(n, (c) => ...)'

const refusedStatements: Partial<Readonly<Record<SyntaxKind, readonly [what: string, hint: string]>>> = {
  [SyntaxKind.IfStatement]: ['an if statement', 'write condition ? a : b'],
  [SyntaxKind.SwitchStatement]: ['a switch statement', 'write nested conditions: a ? x : b ? y : z'],
  [SyntaxKind.ForStatement]: ['a for loop', reduceHint],
  [SyntaxKind.ForOfStatement]: ['a for loop', reduceHint],
  [SyntaxKind.ForInStatement]: ['a for loop', reduceHint],
  [SyntaxKind.WhileStatement]: ['a while loop', reduceHint],
  [SyntaxKind.DoStatement]: ['a do loop', reduceHint],
  [SyntaxKind.TryStatement]: ['a try statement', 'a kernel throws nothing: choose with condition ? a : b'],
  [SyntaxKind.ThrowStatement]: ['a throw statement', 'a kernel throws nothing: state what inputs may be in facts of the op'],
  [SyntaxKind.FunctionDeclaration]: [
    'a function declaration inside a body',
    'write it as a const arrow function, or at module level',
  ],
  [SyntaxKind.ClassDeclaration]: ['a class', 'a body computes numbers and booleans'],
  [SyntaxKind.ReturnStatement]: ['a return before the end', 'return once, at the end; choose with condition ? a : b'],
}

/** Name of a statement, such as `an if statement`. */
export const nameOf = (statement: Statement): string =>
  refusedStatements[statement.getKind()]?.[0] ?? `a statement (${quote(statement)})`

/** The reduction that a loop computes: `sum` for `total += x(m, c)`. */
function accumulates(loop: ForStatement | ForOfStatement): string | undefined {
  const sums = loop.getStatement().getDescendantsOfKind(SyntaxKind.PlusEqualsToken).length
  return sums === 1 ? 'sum' : undefined
}

/** Refuses a statement that is neither a constant nor the one return. */
export function refuseStatement(statement: Statement): never {
  if (Node.isExpressionStatement(statement)) return refuseEffect(statement.getExpression())
  const [what, hint] = refusedStatements[statement.getKind()] ?? [
    statement.getKindName(),
    'a function holds const declarations and one return at its end',
  ]
  const isSum = (Node.isForStatement(statement) || Node.isForOfStatement(statement)) && accumulates(statement) !== undefined
  return reject(
    'statement',
    statement,
    `${what} is not part of the language`,
    isSum ? 'write const total = sum(n, (c) => ...), where the index c takes the place of the loop' : hint,
  )
}

/** Refuses an expression statement by its intended effect. */
function refuseEffect(expression: Expression): never {
  if (Node.isBinaryExpression(expression)) {
    const kind = expression.getOperatorToken().getKind()
    if (kind >= SyntaxKind.FirstAssignment && kind <= SyntaxKind.LastAssignment) refuseAssignment(expression)
  }
  if (Node.isPostfixUnaryExpression(expression) || Node.isPrefixUnaryExpression(expression))
    reject(
      'mutable',
      expression,
      `${quote(expression)} changes a value, but a body changes nothing`,
      'name the new value with const',
    )
  if (Node.isCallExpression(expression) && expression.getExpression().getText().startsWith('console.'))
    reject(
      'statement',
      expression,
      'a kernel prints nothing',
      'a body runs under Node as it stands: set a breakpoint there, or call it from a test',
    )
  if (Node.isCallExpression(expression)) {
    const block = expression.getParent()?.getParent()
    const hint =
      Node.isBlock(block) && block.getStatements().length === 1
        ? `return it, or leave out the braces: (c) => ${quote(expression)}`
        : 'a body has no effects: give the value a name with const'
    reject('statement', expression, `the value of ${quote(expression)} is not used`, hint)
  }
  return reject(
    'statement',
    expression,
    `the value of ${quote(expression)} is not used`,
    'a body has no effects: give the value a name with const',
  )
}

/** Refuses `a = b`, `a += b`, `y[0] = b`. */
export function refuseAssignment(node: Node): never {
  const target = Node.isBinaryExpression(node) ? node.getLeft() : node
  const bound = Node.isIdentifier(target) ? `${quote(target)} is assigned` : `${quote(node)} assigns`
  const hint = Node.isElementAccessExpression(target)
    ? 'outputs are returned: return { y: row(n, (c) => ...) }'
    : 'name the new value with const'
  return reject('mutable', node, `${bound}, but a body changes nothing`, hint)
}

/** Refuses `let` and `var`, with a replacement. */
export function refuseVariable(statement: VariableStatement): void {
  const kind = statement.getDeclarationKind()
  if (kind === VariableDeclarationKind.Const) return
  const [declaration] = statement.getDeclarations()
  const name = declaration?.getName() ?? ''
  const inLoop = statement
    .getParentOrThrow()
    .getDescendantsOfKind(SyntaxKind.Identifier)
    .some((use) => use.getText() === name && use.getFirstAncestor(isLoop) !== undefined)
  const hint = inLoop
    ? `write const ${name} = sum(n, (c) => ...), or carry it along with fold`
    : 'use const; a new value gets a new name'
  reject('statement', statement, `${kind} is not part of the language: a body changes nothing`, hint)
}

const isLoop = (node: Node): boolean => Node.isIterationStatement(node)

/** True if an expression only assigns a variable of a refused `let` of the same function: that error is already reported. */
export function followsFromVariable(statement: Statement): boolean {
  if (!Node.isExpressionStatement(statement)) return false
  const expression = statement.getExpression()
  const target = Node.isBinaryExpression(expression)
    ? expression.getLeft()
    : Node.isPostfixUnaryExpression(expression) || Node.isPrefixUnaryExpression(expression)
      ? expression.getOperand()
      : undefined
  const declaration = Node.isIdentifier(target) ? target.getSymbol()?.getValueDeclaration() : undefined
  if (!Node.isVariableDeclaration(declaration)) return false
  const declared = declaration.getVariableStatement()
  return (
    declared !== undefined &&
    declared.getDeclarationKind() !== VariableDeclarationKind.Const &&
    !Node.isSourceFile(declared.getParent())
  )
}

/** True if a block contains a return at any depth. */
export const returnsSomewhere = (block: Block): boolean => block.getDescendantsOfKind(SyntaxKind.ReturnStatement).length > 0
