/**
 * What the compiler says of one file as an editor has it: the front end without the rest of the project, for whoever types and waits. The
 * TypeScript project stays open between calls, and text that was seen last time is not read again.
 */
import { relative } from 'node:path'
import { ts } from 'ts-morph'
import type { Diagnostic } from '../frontend/diagnostics.js'
import { openProject, type SpecProject } from '../frontend/project.js'
import { readFileAlone } from '../frontend/read.js'

/** A refusal with what it covers, in UTF-16 units from the start of the file. */
export interface Finding extends Diagnostic {
  readonly start: number
  readonly length: number
}

export interface FileChecker {
  /**
   * Refusals of the ops and layouts that a file declares.
   * @param path of the file, absolute
   * @param texts of files whose text is not, or may not be, what is on the disk, by absolute path; the file itself among them
   */
  check(path: string, texts: ReadonlyMap<string, string>): readonly Finding[]
}

/** True if a text may declare something: it imports heddle. The others are none of a compiler's business. */
export const mayDeclare = (text: string): boolean => /from\s+['"]heddle(\/std)?['"]/.test(text) && /\b(op|layout)\b/.test(text)

/** A checker of the files of a project. @throws usage `frontend.heddle` where the folder cannot import heddle */
export function fileChecker(root: string): FileChecker {
  let opened: SpecProject | undefined
  const seen = new Map<string, string>()
  return {
    check(path, texts) {
      opened ??= openProject(root)
      for (const [file, text] of texts) {
        if (seen.get(file) === text) continue
        opened.project.createSourceFile(file, text, { overwrite: true })
        seen.set(file, text)
      }
      const project = opened
      return readFileAlone(project, path).flatMap((diagnostic) => spanOf(diagnostic, project, path))
    },
  }
}

/** The span of a diagnostic; of one that stands in another file, nothing: the editor asks about that file too. */
function spanOf(diagnostic: Diagnostic, { project, root }: SpecProject, path: string): readonly Finding[] {
  const file = project.getSourceFile(path)
  if (file === undefined || relative(root, path).replaceAll('\\', '/') !== diagnostic.file) return []
  const start = ts.getPositionOfLineAndCharacter(file.compilerNode, diagnostic.line - 1, diagnostic.column - 1)
  const [, carets = '^'] = diagnostic.frame.split('\n')
  return [{ ...diagnostic, start, length: carets.replace(/[^^]/g, '').length }]
}
