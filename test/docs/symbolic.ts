/**
 * Symbolic evaluation of texts in source files: literals, templates, constants, conditions, and parameters, which the calls of their function fill in.
 * `…` stands for values known only at run time.
 */
import { join } from 'node:path/posix'
import { ts } from 'ts-morph'

export type Callable = ts.FunctionDeclaration | ts.ArrowFunction | ts.FunctionExpression | ts.MethodDeclaration
export type Call = ts.CallExpression | ts.NewExpression

/** A parameter of a function around an expression, or a field of it. */
export interface Parameter {
  readonly of: Callable
  readonly at: number
  readonly fields: readonly string[]
}
export type Text = readonly (string | Parameter)[]

export const hole = '…'

/** Most alternatives of a text with several conditions. */
const most = 8

/** Functions and calls of all files, by name. */
export class Sources {
  readonly #callables = new Map<string, Map<string, Callable>>()
  readonly #names = new Map<Callable, string>()
  readonly #imports = new Map<string, ReadonlyMap<string, string>>()
  readonly #calls = new Map<string, Call[]>()

  /** @param files names, relative to one folder, each with its source */
  constructor(files: readonly (readonly [name: string, source: string])[]) {
    for (const [name, source] of files) {
      const parsed = ts.createSourceFile(name, source, ts.ScriptTarget.ES2023, true)
      this.#imports.set(name, importsOf(parsed))
      this.#index(parsed, name)
    }
  }

  #index(node: ts.Node, file: string): void {
    const named = namedCallable(node)
    if (named !== undefined) {
      const [name, callable] = named
      this.#callables.set(name, (this.#callables.get(name) ?? new Map<string, Callable>()).set(file, callable))
      this.#names.set(callable, name)
    }
    const callee = isCall(node) ? calleeOf(node) : undefined
    if (isCall(node) && callee !== undefined) {
      const calls = this.#calls.get(callee)
      if (calls === undefined) this.#calls.set(callee, [node])
      else calls.push(node)
    }
    ts.forEachChild(node, (child) => this.#index(child, file))
  }

  callsNamed(name: string): readonly Call[] {
    return this.#calls.get(name) ?? []
  }

  callsOf(callable: Callable): readonly Call[] {
    return this.callsNamed(this.#names.get(callable) ?? '').filter((call) => this.#callableOf(call) === callable)
  }

  /** The called function: of the same file, of the file that it is imported from, of another that the file imports, or the only one of its name. */
  #callableOf(call: Call): Callable | undefined {
    const name = calleeOf(call) ?? ''
    const file = call.getSourceFile().fileName
    const imports = this.#imports.get(file)
    const found = this.#callables.get(name)
    const [only] = found?.size === 1 ? found.values() : []
    const near = [file, imports?.get(name) ?? '', ...(imports?.values() ?? [])].find((each) => found?.has(each))
    return near === undefined ? only : found?.get(near)
  }

  /** Alternatives of an expression's text. */
  textsOf(node: ts.Expression | undefined): readonly Text[] {
    if (node === undefined) return [[]]
    if (ts.isStringLiteralLike(node)) return [[node.text]]
    if (ts.isParenthesizedExpression(node) || ts.isAsExpression(node)) return this.textsOf(node.expression)
    if (ts.isIdentifier(node) || ts.isPropertyAccessExpression(node)) return this.#fieldTexts(node, [])
    if (ts.isConditionalExpression(node)) return [...this.textsOf(node.whenTrue), ...this.textsOf(node.whenFalse)].slice(0, most)
    if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.PlusToken)
      return both(this.textsOf(node.left), this.textsOf(node.right))
    if (ts.isTemplateExpression(node))
      return node.templateSpans.reduce<readonly Text[]>(
        (before, { expression, literal }) => both(both(before, this.#spanOf(expression)), [[literal.text]]),
        [[node.head.text]],
      )
    const callable = ts.isCallExpression(node) ? this.#callableOf(node) : undefined
    if (!ts.isCallExpression(node) || callable?.body === undefined || ts.isBlock(callable.body)) return [[hole]]
    return this.textsOf(callable.body).flatMap((text) => this.filled(text, node, callable))
  }

  /** Value inside of a template; a call prints something that is found at run time. */
  #spanOf(node: ts.Expression): readonly Text[] {
    return ts.isCallExpression(node) ? [[hole]] : this.textsOf(node)
  }

  /** A field of an object literal, of a constant or of a parameter; without fields, the value itself. */
  #fieldTexts(node: ts.Expression, fields: readonly string[]): readonly Text[] {
    if (ts.isAsExpression(node)) return this.#fieldTexts(node.expression, fields)
    if (ts.isPropertyAccessExpression(node)) return this.#fieldTexts(node.expression, [node.name.text, ...fields])
    if (ts.isIdentifier(node)) return this.#boundTexts(node, fields)
    const [first, ...rest] = fields
    if (first === undefined) return this.textsOf(node)
    const value = fieldOf(node, first)
    return value === undefined ? [[hole]] : this.#fieldTexts(value, rest)
  }

  #boundTexts(node: ts.Identifier, fields: readonly string[]): readonly Text[] {
    for (let up: ts.Node = node.parent; up !== undefined; up = up.parent) {
      const constant = constantIn(up, node.text)
      if (constant !== undefined) return this.#fieldTexts(constant, fields)
      if (!isCallable(up)) continue
      const bound = parameterNamed(up, node.text)
      if (bound !== undefined) return this.#names.has(up) ? [[{ ...bound, fields: [...bound.fields, ...fields] }]] : [[hole]]
    }
    return [[hole]]
  }

  /** Alternatives of a text of a called function, with the arguments of the call. */
  filled(text: Text, call: Call, callee: Callable): readonly Text[] {
    return text.reduce<readonly Text[]>(
      (before, part) => {
        if (typeof part === 'string' || part.of !== callee) return both(before, [[part]])
        const given = call.arguments?.[part.at] ?? callee.parameters[part.at]?.initializer
        return both(before, given === undefined ? [[hole]] : this.#fieldTexts(given, part.fields))
      },
      [[]],
    )
  }
}

const isCall = (node: ts.Node): node is Call => ts.isCallExpression(node) || ts.isNewExpression(node)
const isCallable = (node: ts.Node): node is Callable =>
  ts.isFunctionDeclaration(node) || ts.isArrowFunction(node) || ts.isFunctionExpression(node) || ts.isMethodDeclaration(node)

/** A function with its name: a declaration, a method, or a constant. */
function namedCallable(node: ts.Node): readonly [name: string, callable: Callable] | undefined {
  if (ts.isFunctionDeclaration(node) || ts.isMethodDeclaration(node)) return node.name && [node.name.getText(), node]
  const isConstant = ts.isVariableDeclaration(node) && node.initializer !== undefined && isCallable(node.initializer)
  return isConstant && node.initializer !== undefined && isCallable(node.initializer)
    ? [node.name.getText(), node.initializer]
    : undefined
}

/** Name of the called function or method. */
function calleeOf({ expression }: Call): string | undefined {
  if (ts.isIdentifier(expression)) return expression.text
  return ts.isPropertyAccessExpression(expression) ? expression.name.text : undefined
}

const both = (a: readonly Text[], b: readonly Text[]): readonly Text[] =>
  a.flatMap((first) => b.map((second) => joined([...first, ...second]))).slice(0, most)

/** Text with literal neighbours joined. */
function joined(parts: Text): Text {
  const result: (string | Parameter)[] = []
  for (const part of parts) {
    const last = result.at(-1)
    if (typeof part === 'string' && typeof last === 'string') result[result.length - 1] = last + part
    else result.push(part)
  }
  return result
}

/** Parameter of a function that binds a name. */
function parameterNamed(of: Callable, name: string): Parameter | undefined {
  for (const [at, { name: bound }] of of.parameters.entries()) {
    if (ts.isIdentifier(bound) && bound.text === name) return { of, at, fields: [] }
    if (!ts.isObjectBindingPattern(bound)) continue
    const element = bound.elements.find((each) => ts.isIdentifier(each.name) && each.name.text === name)
    if (element !== undefined) return { of, at, fields: [(element.propertyName ?? element.name).getText()] }
  }
  return undefined
}

/** Initializer of a constant that a block or file declares. */
function constantIn(scope: ts.Node, name: string): ts.Expression | undefined {
  if (!ts.isBlock(scope) && !ts.isSourceFile(scope)) return undefined
  return scope.statements
    .filter(ts.isVariableStatement)
    .filter(({ declarationList }) => (declarationList.flags & ts.NodeFlags.Const) !== 0)
    .flatMap(({ declarationList }) => declarationList.declarations)
    .find((each) => each.name.getText() === name)?.initializer
}

/** Value of a field of an object literal. */
export function fieldOf(value: ts.Node | undefined, field: string): ts.Expression | undefined {
  if (value === undefined || !ts.isObjectLiteralExpression(value)) return undefined
  const found = value.properties.find((each) => each.name?.getText() === field)
  if (found === undefined) return undefined
  return ts.isPropertyAssignment(found) ? found.initializer : ts.isShorthandPropertyAssignment(found) ? found.name : undefined
}

/** Paths of the files that a file imports names from. */
const importsOf = (file: ts.SourceFile): ReadonlyMap<string, string> =>
  new Map(
    file.statements.flatMap((statement): [string, string][] => {
      if (!ts.isImportDeclaration(statement) || !ts.isStringLiteral(statement.moduleSpecifier)) return []
      const bindings = statement.importClause?.namedBindings
      if (bindings === undefined || !ts.isNamedImports(bindings)) return []
      const path = join(file.fileName, '..', statement.moduleSpecifier.text).replace(/\.js$/, '.ts')
      return bindings.elements.map(({ name }) => [name.text, path])
    }),
  )
