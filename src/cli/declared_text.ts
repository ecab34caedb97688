/** Source of the statement at a location in a spec, for `inspect` and `explore`. Results are cached per spec text and query. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { openMemo } from '../memo.js'
import { packageRoot } from '../toolchain/paths.js'

/** A statement and its first line. */
export interface DeclaredText {
  readonly line: number
  readonly text: string
}

/** Path of a spec: in the project, or in the package for the standard library. */
export function specPath(root: string, file: string): string {
  const own = resolve(root, file)
  return existsSync(own) ? own : resolve(packageRoot(), file)
}

const nothing: DeclaredText = { line: 1, text: '' }

async function parsed(text: string) {
  const { Project, Node } = await import('ts-morph')
  const project = new Project({ useInMemoryFileSystem: true, skipLoadingLibFiles: true, skipFileDependencyResolution: true })
  return { file: project.createSourceFile('spec.ts', text), isStatement: Node.isStatement }
}

async function cached(
  root: string,
  path: string,
  question: string,
  find: (text: string) => Promise<readonly DeclaredText[]>,
): Promise<readonly DeclaredText[]> {
  if (!existsSync(path)) return []
  const text = await readFile(path, 'utf8')
  const slot = openMemo(root).slot<readonly DeclaredText[]>('declaration', [text, question])
  const known = slot.read()
  if (known !== undefined) return known
  const found = await find(text)
  slot.write(found)
  return found
}

/** Innermost statement around a position; empty for a kernel without an op of its own, such as a bare matmul. */
export async function statementAt(
  root: string,
  path: string,
  { line, column }: { readonly line: number; readonly column: number },
): Promise<DeclaredText> {
  const [found = nothing] = await cached(root, path, `${line}:${column}`, async (text) => {
    const { file, isStatement } = await parsed(text)
    const at = file.compilerNode.getPositionOfLineAndCharacter(line - 1, column - 1)
    const statement = file.getDescendantAtPos(at)?.getFirstAncestor(isStatement)
    return statement === undefined ? [] : [{ line: statement.getStartLineNumber(), text: statement.getText() }]
  })
  return found
}

/** Statements of a module that contain any of these lines. */
export const statementsOver = (root: string, path: string, lines: readonly number[]): Promise<readonly DeclaredText[]> =>
  cached(root, path, `over ${lines.join()}`, async (text) => {
    const { file } = await parsed(text)
    return file
      .getStatements()
      .filter((each) => lines.some((line) => line >= each.getStartLineNumber() && line <= each.getEndLineNumber()))
      .map((each) => ({ line: each.getStartLineNumber(), text: each.getText() }))
  })
