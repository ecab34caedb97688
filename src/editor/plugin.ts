/**
 * The TypeScript language-service plugin: shows the compiler's own errors where ops are written. tsserver loads it by `"plugins"` of a
 * tsconfig.json and asks it, synchronously, each time an editor wants the errors of a file. It adds to what TypeScript says and takes nothing away;
 * whatever goes wrong in it is logged, and the editor goes on without it.
 */
import type ts from 'typescript'
import { type FileChecker, type Finding, fileChecker, mayDeclare } from './check.js'

interface Checked {
  /** What was looked at, by path. */
  readonly texts: ReadonlyMap<string, string>
  readonly findings: readonly Finding[]
}

const isSame = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean =>
  a.size === b.size && [...a].every(([path, text]) => b.get(path) === text)

/** The project's own modules as the editor has them: what a body calls may be in any of them. */
function textsOf(program: ts.Program): ReadonlyMap<string, string> {
  const own = program.getSourceFiles().filter((file) => !file.isDeclarationFile && !file.fileName.includes('/node_modules/'))
  return new Map(own.map((file) => [file.fileName, file.text]))
}

const plugin: ts.server.PluginModuleFactory = ({ typescript }) => ({
  create({ languageService, project }) {
    const checked = new Map<string, Checked>()
    let checker: FileChecker | undefined

    /** The compiler's findings; those of the last time where nothing has changed since. */
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
