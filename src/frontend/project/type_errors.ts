/** TypeScript's own errors in spec modules, except those that the front end has already reported. Runs after the declarations are read. */
import { type Node, type SourceFile, ts } from 'ts-morph'
import { type Diagnostic, locate, reject } from '../diagnostics/reject.js'
import { otherFunctions, unlistedHint } from '../static/hints.js'
import { failureHint, guarded, type SpecProject } from './project.js'

/** A refusal, and the declaration that it was found in. */
export interface Rejected {
  readonly declaration: Node
  readonly diagnostic: Diagnostic
}

/** TypeScript's error codes for a missing module. */
const noModule: ReadonlySet<number> = new Set([2307, 2792])

/** TypeScript's error codes for a value of another type, such as a string outside of a union. */
const noSuchText: ReadonlySet<number> = new Set([2322, 2820])

/** Hint for a missing `heddle` package, and for a name that it does not export. */
function missingHint(message: string): string | undefined {
  if (/^Cannot find module 'heddle'/.test(message)) return 'install it beside the specs: npm install heddle'
  const [, name = ''] = /^Module '"heddle"' has no exported member (?:named )?'(\w+)'/.exec(message) ?? []
  const written = Object.hasOwn(otherFunctions, name) ? otherFunctions[name] : undefined
  return written === undefined ? undefined : `write ${written}`
}

/** Syntax errors of a file: with any, no other errors can be found in it. */
export const syntaxErrors = (file: SourceFile, { project }: SpecProject): readonly ts.Diagnostic[] =>
  guarded(
    () => project.getProgram().compilerObject.getSyntacticDiagnostics(file.compilerNode),
    () => [],
  )

/** TypeScript's own errors in a file, except those that the front end has already reported. */
export function typeErrors(file: SourceFile, opened: SpecProject, refused: readonly Rejected[]): Diagnostic[] {
  const { project, fileName } = opened
  const check = (): readonly ts.Diagnostic[] =>
    guarded(
      () => project.getProgram().compilerObject.getSemanticDiagnostics(file.compilerNode),
      (failure) => {
        // A refusal in the file is also what TypeScript failed on.
        if (!refused.some(({ declaration }) => declaration.getSourceFile() === file))
          reject('typeScript', file, failure, failureHint)
        return []
      },
    )
  const syntax = syntaxErrors(file, opened)
  const found = syntax.length > 0 ? syntax : check()
  // Imports from a missing module have no types; TypeScript would report that again at every use.
  const absent = found.filter(({ code }) => noModule.has(code))
  return (absent.length > 0 ? absent : found).flatMap(({ start = 0, length = 1, code, messageText }): Diagnostic[] => {
    const place = locate(file, start, length)
    const isCovered = refused.some(
      ({ declaration, diagnostic }) =>
        (declaration.getSourceFile() === file && declaration.getPos() <= start && start < declaration.getEnd()) ||
        (diagnostic.file === fileName(file) && diagnostic.line === place.line),
    )
    const message = ts.flattenDiagnosticMessageText(messageText, '\n')
    const hint = missingHint(message) ?? (noSuchText.has(code) ? unlistedHint(file.getDescendantAtPos(start)) : undefined)
    return isCovered
      ? []
      : [{ code: `TS${code}`, message, file: fileName(file), ...place, ...(hint === undefined ? {} : { hint }) }]
  })
}
