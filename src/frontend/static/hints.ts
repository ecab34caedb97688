/** Hints that depend on the names in scope: suggestions for an unknown name, and the correct form of an access. */
import { Node, type Type, ts } from 'ts-morph'
import * as language from '../../lang/index.js'
import { nearest } from '../../nearest.js'
import type { Scope } from './values.js'

/** Replacements for functions of other tools that authors look for here. */
export const otherFunctions: Readonly<Record<string, string>> = {
  sigmoid: '1 / (1 + exp(-x))',
  silu: 'x / (1 + exp(-x))',
  relu: 'maximum(x, 0)',
  softplus: 'log(1 + exp(x))',
  clamp: 'minimum(maximum(x, low), high)',
  clip: 'minimum(maximum(x, low), high)',
  bitcast: 'bitsOf(x), the bits of a float as an integer, or floatOfBits(i), the float of such bits; both of heddle',
  bitCast: 'bitsOf(x), the bits of a float as an integer, or floatOfBits(i), the float of such bits; both of heddle',
  sign: 'x > 0 ? 1 : x < 0 ? -1 : 0',
  where: 'condition ? a : b',
  select: 'condition ? a : b',
  mean: 'sum(n, (c) => ...) / n',
  prod: 'exp and log of a sum, or fold',
  cumsum: 'scan(n, (c) => ...)',
  sort: 'argsort(1024, n, (c) => ...), and read at its elements',
  any: 'max(n, (c) => (condition ? 1 : 0)) > 0',
  all: 'min(n, (c) => (condition ? 1 : 0)) > 0',
  find: 'min(n, (c) => (condition ? c : n))',
  softmax: 'exp of the difference to max(n, ...), over its sum(n, ...)',
}

/** Names of the author's declared or imported values in scope at a node, the innermost first. */
function namesInScope(node: Node): string[] {
  const checker = node.getProject().getTypeChecker().compilerObject
  const symbols = checker.getSymbolsInScope(node.compilerNode, ts.SymbolFlags.Value | ts.SymbolFlags.Alias)
  const isOwn = ({ declarations = [] }: ts.Symbol): boolean =>
    declarations.length > 0 && !declarations.every((declaration) => declaration.getSourceFile().isDeclarationFile)
  return symbols.filter(isOwn).map(({ name }) => name)
}

/** Hint for an undeclared name. */
export function unknownNameHint(node: Node): string {
  const name = node.getText()
  if (Object.hasOwn(language, name)) return `import { ${name} } from 'heddle'`
  const written = Object.hasOwn(otherFunctions, name) ? otherFunctions[name] : undefined
  if (written !== undefined) return `write ${written}`
  const [local] = nearest(
    name,
    namesInScope(node).filter((each) => each !== name),
  )
  if (local !== undefined) return `did you mean ${local}?`
  const [offered] = nearest(name, Object.keys(language))
  return offered === undefined
    ? 'declare it, or import it from its module'
    : `did you mean ${offered}? import { ${offered} } from 'heddle'`
}

/** String literals of a type: its own, or those of its union. */
const textsOf = (type: Type | undefined): readonly string[] =>
  type === undefined
    ? []
    : (type.isUnion() ? type.getUnionTypes() : [type]).flatMap((each) =>
        each.isStringLiteral() ? [String(each.getLiteralValue())] : [],
      )

/**
 * Hint for a string outside of its type's union, such as a misspelt node of a plan's graph: TypeScript lists the members, but truncates the
 * list. A graph's inputs, which groups often name, get their own hint.
 */
export function unlistedHint(node: Node | undefined): string | undefined {
  if (!Node.isStringLiteral(node)) return undefined
  const name = node.getLiteralValue()
  const [, graph] = node.getFirstAncestor(Node.isCallExpression)?.getArguments() ?? []
  const inputs = graph?.getType().getProperty('inputs')?.getTypeAtLocation(node)
  if (textsOf(inputs?.getTypeArguments()[0]).includes(name))
    return `${name} is an input of the graph: name the nodes that read it; every group reads the inputs it needs`
  const [like] = nearest(name, textsOf(node.getContextualType()))
  return like === undefined ? undefined : `did you mean ${like}?`
}

/** Indices in scope by the author's names, the outermost first. */
function indicesIn(scope: Scope): readonly string[] {
  const here = [...scope.bindings].flatMap(([symbol, value]) =>
    value.kind === 'scalar' && value.expr.kind === 'index' ? [symbol.name] : [],
  )
  return [...(scope.outer === undefined ? [] : indicesIn(scope.outer)), ...here]
}

/** Access of a tensor with one index per dimension: the written indices, preceded by others in scope if there are too few. */
export function accessHint(name: string, dims: readonly string[], node: Node, scope: Scope): string {
  const written = Node.isCallExpression(node) ? node.getArguments().map((argument) => argument.getText()) : []
  const others = indicesIn(scope).filter((index) => !written.includes(index))
  const indices = [...others.slice(0, Math.max(0, dims.length - written.length)), ...written].slice(-dims.length)
  return `write ${name}(${(indices.length === dims.length ? indices : dims).join(', ')})`
}
