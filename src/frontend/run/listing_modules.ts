/**
 * Modules of a spec folder that export graphs, plans or programs, alone or as lists. They are run if the folder has no `index.ts`.
 * They are found without running anything, so that modules of ops are still only compiled.
 */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { ts as TypeScript } from 'ts-morph'
import { nameIn } from '../../path_names.js'
import { tsMorph } from '../project/typescript.js'

const lists: ReadonlySet<string> = new Set(['graphs', 'plans', 'programs', 'conversions'])

/** Functions of heddle that declare one. */
const makers: ReadonlySet<string> = new Set(['graph', 'plan', 'autoPlan', 'program'])

/** Sorted paths of such modules below the folder, with `/`; empty if the folder does not exist. */
export async function listingModules(source: string): Promise<readonly string[]> {
  const files = await readdir(source, { recursive: true, withFileTypes: true }).catch(() => [])
  const modules = files
    .filter((file) => file.isFile() && file.name.endsWith('.ts') && !file.name.endsWith('.d.ts'))
    .map(({ parentPath, name }) => join(parentPath, name))
    .sort()
  const texts = await Promise.all(modules.map((path) => readFile(path, 'utf8')))
  return modules.filter((path, i) => exportsList(path, texts[i] ?? '')).map((path) => nameIn(source, path))
}

/** True if a module exports one of the lists by its name, or a value that it declares by one of the functions. */
function exportsList(path: string, text: string): boolean {
  if (![...lists, ...makers].some((name) => text.includes(name))) return false
  const { ScriptTarget, ts } = tsMorph()
  const { statements } = ts.createSourceFile(path, text, ScriptTarget.ES2023)
  return statements.some((statement) => namesOf(statement, ts).some((name) => lists.has(name)) || declares(statement, ts))
}

/** The names that a statement exports explicitly. */
function namesOf(statement: TypeScript.Statement, ts: typeof TypeScript): readonly string[] {
  if (ts.isExportDeclaration(statement) && !statement.isTypeOnly) {
    const { exportClause } = statement
    return exportClause !== undefined && ts.isNamedExports(exportClause) ? exportClause.elements.map(({ name }) => name.text) : []
  }
  if (!ts.isVariableStatement(statement)) return []
  if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return []
  return statement.declarationList.declarations.flatMap(({ name }) => (ts.isIdentifier(name) ? [name.text] : []))
}

/** True if a statement exports a value that a call of one of the functions returns. */
function declares(statement: TypeScript.Statement, ts: typeof TypeScript): boolean {
  if (!ts.isVariableStatement(statement)) return false
  if (!statement.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword)) return false
  return statement.declarationList.declarations.some(
    ({ initializer }) =>
      initializer !== undefined &&
      ts.isCallExpression(initializer) &&
      ts.isIdentifier(initializer.expression) &&
      makers.has(initializer.expression.text),
  )
}
