/**
 * TypeScript language-service plugin: shows the compiler's own errors in ops. tsserver loads it by `"plugins"` of a tsconfig.json and calls it
 * synchronously each time an editor requests the errors of a file. It adds to TypeScript's errors and removes none. Its own failures are
 * logged, and the editor continues without it.
 */
import type ts from 'typescript'
import { type FileChecker, type Finding, fileChecker, mayDeclare } from './check.js'

interface Checked {
  /** Checked texts, by path. */
  readonly texts: ReadonlyMap<string, string>
  readonly findings: readonly Finding[]
}

const isSame = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean =>
  a.size === b.size && [...a].every(([path, text]) => b.get(path) === text)

/** Current texts of the project's own modules: a body may call functions of any of them. */
function textsOf(program: ts.Program): ReadonlyMap<string, string> {
  const own = program.getSourceFiles().filter((file) => !file.isDeclarationFile && !file.fileName.includes('/node_modules/'))
  return new Map(own.map((file) => [file.fileName, file.text]))
}

const plugin: ts.server.PluginModuleFactory = ({ typescript }) => ({
  create({ languageService, project }) {
    const checked = new Map<string, Checked>()
    let checker: FileChecker | undefined

    /** Findings of the compiler, cached while nothing changes. */
    const findingsIn = (path: string): readonly Finding[] => {
      const program = languageService.getProgram()
      const text = program?.getSourceFile(path)?.text
      if (program === undefined || text === undefined || !mayDeclare(text)) return []
      const texts = textsOf(program)
      const known = checked.get(path)
      if (known !== undefined && isSame(known.texts, texts)) return known.findings
      checker ??= fileChecker(project.getCurrentDirectory())
      const findings = checker.check(path, texts)
      checked.set(path, { texts, findings })
      return findings
    }

    const toTypeScript =
      (file: ts.SourceFile) =>
      ({ code, message, hint, start, length }: Finding): ts.Diagnostic => ({
        file,
        start,
        length,
        code: Number(code.replace(/\D+/, '')),
        category: typescript.DiagnosticCategory.Error,
        messageText: `${code}: ${message}${hint === undefined ? '' : `\nhint: ${hint}`}`,
        source: 'heddle',
      })

    return {
      ...languageService,
      getSemanticDiagnostics(path) {
        const theirs = languageService.getSemanticDiagnostics(path)
        try {
          const file = languageService.getProgram()?.getSourceFile(path)
          return file === undefined ? theirs : [...theirs, ...findingsIn(path).map(toTypeScript(file))]
        } catch (error) {
          project.projectService.logger.info(`heddle: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
          return theirs
        }
      },
    }
  },
})

export default plugin
