/**
 * The part of a spec module that importing modules see: its source without the bodies of its ops. The type of an op follows from its signature,
 * and a body is read with the declaration of its op, so a change inside of bodies does not affect other modules.
 */
import { existsSync, readFileSync } from 'node:fs'
import { ts } from 'ts-morph'
import { digestOfText } from './known.js'

/** Digest of a module without the functions that are bodies of `op(...)` of `heddle`. */
export function skeletonOf(file: ts.SourceFile): string {
  const declarators = declaratorsOf(file)
  const bodies = file.statements.flatMap((statement) =>
    ts.isVariableStatement(statement)
      ? statement.declarationList.declarations.flatMap(({ initializer }) => bodyOf(initializer, declarators))
      : [],
  )
  const parts: string[] = []
  let from = 0
  for (const body of bodies) {
    parts.push(file.text.slice(from, body.pos))
    from = body.end
  }
  return digestOfText(JSON.stringify([...parts, file.text.slice(from)]))
}

export const skeletonAt = (path: string): string | undefined =>
  existsSync(path)
    ? skeletonOf(ts.createSourceFile(path, readFileSync(path, 'utf8').replace(/^\uFEFF/, ''), ts.ScriptTarget.ES2023))
    : undefined

/** Local names of `op` of `heddle`. */
function declaratorsOf(file: ts.SourceFile): ReadonlySet<string> {
  const names = file.statements.flatMap((statement) => {
    const isHeddle =
      ts.isImportDeclaration(statement) &&
      ts.isStringLiteral(statement.moduleSpecifier) &&
      statement.moduleSpecifier.text === 'heddle'
    const bindings = isHeddle ? statement.importClause?.namedBindings : undefined
    if (bindings === undefined || !ts.isNamedImports(bindings)) return []
    return bindings.elements.flatMap(({ name, propertyName }) => ((propertyName ?? name).text === 'op' ? [name.text] : []))
  })
  return new Set(names)
}

/** The function of the field `body` of `op('name', { ... })`. */
function bodyOf(value: ts.Expression | undefined, declarators: ReadonlySet<string>): ts.Expression[] {
  if (value === undefined || !ts.isCallExpression(value) || !ts.isIdentifier(value.expression)) return []
  const config = value.arguments[1]
  if (!declarators.has(value.expression.text) || config === undefined || !ts.isObjectLiteralExpression(config)) return []
  return config.properties.flatMap((property) =>
    ts.isPropertyAssignment(property) &&
    ts.isIdentifier(property.name) &&
    property.name.text === 'body' &&
    (ts.isArrowFunction(property.initializer) || ts.isFunctionExpression(property.initializer))
      ? [property.initializer]
      : [],
  )
}
