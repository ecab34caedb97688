/**
 * Finds code in which a pass refers to an op, an input or a node of the shipped specs by name. Words that the TypeScript compiler checks against a
 * closed set, such as kinds of statements and intrinsics, are not names; only strings in places for arbitrary strings count.
 */
import { Node, type Project, type SourceFile, SyntaxKind, ts } from 'ts-morph'
import { graphs, ops } from '../../specs/index.js'

/** Suffixes of nodes that plans insert, and the forms of a scale. */
const endings = ['.pack', '.unpack', '.int8', '.float', '.step', '.steps', '.inverse']

/** Every op, input, result, weight, attribute and node of the specs. */
export const specNames: ReadonlySet<string> = new Set([
  ...Object.entries(ops).flatMap(([kernel, { name, inputs, outputs, attrs }]) => [
    kernel,
    name,
    ...[inputs, outputs, attrs].flatMap((each) => Object.keys(each)),
  ]),
  ...Object.values(graphs).flatMap(({ nodes, graph: { inputs, outputs, weights, attrs } }) => [
    ...nodes,
    ...attrs,
    ...[inputs, outputs, weights].flatMap((each) => Object.keys(each)),
  ]),
])

export interface Found {
  readonly file: string
  readonly line: number
  readonly text: string
}

/** True if any string has this type. */
const isAnyText = (type: ts.Type | undefined): boolean =>
  type === undefined ||
  (type.flags & (ts.TypeFlags.String | ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0 ||
  (type.isUnion() && type.types.some(isAnyText)) ||
  (type.isTypeParameter() && isAnyText(type.getConstraint()))

/** True if a literal is in a place for any string: compared with one, or passed as one. */
function isFree(node: Node, checker: ts.TypeChecker): boolean {
  const parent = node.getParent()
  if (parent === undefined || Node.isImportDeclaration(parent) || Node.isExportDeclaration(parent)) return false
  if (Node.isLiteralTypeNode(parent)) return false
  if (Node.isPropertyAssignment(parent) && parent.getNameNode() === node) return false
  if (Node.isBinaryExpression(parent) && /^[!=]==$/.test(parent.getOperatorToken().getText())) {
    const other = parent.getLeft() === node ? parent.getRight() : parent.getLeft()
    return isAnyText(other.getType().compilerType)
  }
  if (Node.isCaseClause(parent)) {
    const of = parent.getFirstAncestorByKindOrThrow(SyntaxKind.SwitchStatement).getExpression()
    return isAnyText(of.getType().compilerType)
  }
  return Node.isExpression(node) && isAnyText(checker.getContextualType(node.compilerNode))
}

/** True if a property is one of any name: of a record, not of a declared type. */
const isIndexed = (name: Node): boolean => name.getSymbol() === undefined

/** The names of specs that a file refers to. */
export function namesIn(file: SourceFile, project: Project): readonly Found[] {
  const checker = project.getTypeChecker().compilerObject
  const found: Found[] = []
  const add = (node: Node, text: string) => found.push({ file: file.getBaseName(), line: node.getStartLineNumber(), text })
  file.forEachDescendant((node) => {
    if (Node.isStringLiteral(node) || Node.isNoSubstitutionTemplateLiteral(node)) {
      const text = node.getLiteralText()
      const known = specNames.has(text) || endings.some((ending) => text.endsWith(ending))
      if (known && isFree(node, checker)) add(node, text)
    } else if (Node.isRegularExpressionLiteral(node)) {
      const words = node.getText().match(/[A-Za-z_][\w]*/g) ?? []
      const text = words.find((word) => specNames.has(word) || endings.includes(`.${word}`))
      if (text !== undefined) add(node, text)
    } else if (Node.isTemplateMiddle(node) || Node.isTemplateTail(node)) {
      const text = endings.find((ending) => new RegExp(`^\\${ending}\\b`).test(node.compilerNode.text))
      if (text !== undefined) add(node, text)
    } else if (Node.isPropertyAccessExpression(node) && specNames.has(node.getName()) && isIndexed(node.getNameNode())) {
      add(node, node.getName())
    }
  })
  return found
}
