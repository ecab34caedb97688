/**
 * `heddle/lint`: the errors of the TypeScript plugin as a rule of oxlint and ESLint, whose editors' extensions show them. It needs no language
 * server of TypeScript: TypeScript 7 loads no plugins. Both interfaces to an editor, this and plugin.ts, use the front end through check.ts alone.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { HeddleError } from '../errors.js'
import { type FileChecker, type Finding, fileChecker, mayDeclare } from './check.js'

/** A line from 1, a column from 0. */
interface Position {
  readonly line: number
  readonly column: number
}

/** The part of ESLint's interface, which oxlint shares, that the rule uses. */
export interface RuleContext {
  readonly filename: string
  readonly sourceCode: { readonly text: string }
  report(problem: { readonly message: string; readonly loc: { readonly start: Position; readonly end: Position } }): void
}

export interface LintRule {
  readonly meta: { readonly type: 'problem'; readonly docs: { readonly description: string } }
  create(context: RuleContext): { Program?: () => void }
}

/** The project of a file: the nearest folder above it with a package.json. */
function projectOf(file: string): string {
  const start = dirname(file)
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, 'package.json'))) return folder
  return start
}

const checkers = new Map<string, FileChecker>()

/** Findings in a file with a text that may not be saved. */
function findingsIn(file: string, text: string): readonly Finding[] {
  const root = projectOf(file)
  const checker = checkers.get(root) ?? fileChecker(root)
  checkers.set(root, checker)
  return checker.check(file, new Map([[file, text]]))
}

const withHint = ({ code, message, hint }: { code: string; message: string; hint?: string | undefined }): string =>
  `${code}: ${message}${hint === undefined ? '' : `\nhint: ${hint}`}`

function reportAll(context: RuleContext): void {
  const { filename, sourceCode } = context
  try {
    for (const finding of findingsIn(filename, sourceCode.text)) {
      const start = { line: finding.line, column: finding.column - 1 }
      const end = { line: finding.line, column: start.column + finding.length }
      context.report({ message: withHint(finding), loc: { start, end } })
    }
  } catch (error) {
    // A file that was not checked is not passed over in silence.
    if (!(error instanceof HeddleError)) throw error
    const start = { line: 1, column: 0 }
    context.report({ message: withHint(error), loc: { start, end: start } })
  }
}

const specs: LintRule = {
  meta: { type: 'problem', docs: { description: 'ops and layouts that heddle gen refuses' } },
  create: (context) => (mayDeclare(context.sourceCode.text) ? { Program: () => reportAll(context) } : {}),
}

/** Plugin of oxlint and ESLint with the rule `heddle/specs`. */
export default { meta: { name: 'heddle' }, rules: { specs } }
