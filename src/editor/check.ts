/**
 * Diagnostics of the compiler for one file in an editor: runs the front end without the rest of the project, to be fast while typing. The
 * TypeScript project stays open between calls, and unchanged text is not parsed again.
 */
import { ts } from 'ts-morph'
import type { Diagnostic } from '../frontend/diagnostics/reject.js'
import { openProject, type SpecProject } from '../frontend/project/project.js'
import { readFileAlone } from '../frontend/read/read.js'
import { nameIn, slashed } from '../path_names.js'

/** A diagnostic with its span, in UTF-16 units from the start of the file. */
export interface Finding extends Diagnostic {
  readonly start: number
  readonly length: number
}

export interface FileChecker {
  /**
   * Diagnostics of the ops and layouts that a file declares.
   * @param path of the file, absolute
   * @param texts current texts of files that may differ from the disk, by absolute path, including the file itself
   */
  check(path: string, texts: ReadonlyMap<string, string>): readonly Finding[]
}

/** True if a text may declare something, because it imports heddle. Other files are not checked. */
export const mayDeclare = (text: string): boolean => /from\s+['"]heddle(\/std)?['"]/.test(text) && /\b(op|layout)\b/.test(text)

/** Checker of the files of a project. @throws usage `frontend.heddle` if the folder cannot import heddle */
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
      refreshOthers(opened, texts)
      const project = opened
      return readFileAlone(project, path).flatMap((diagnostic) => spanOf(diagnostic, project, path))
    },
  }
}

/** Reads modules of the project again that have changed on the disk since, except for those with a given text. */
function refreshOthers({ project }: SpecProject, texts: ReadonlyMap<string, string>): void {
  // TypeScript writes paths with `/` on every system.
  const given = new Set([...texts.keys()].map((path) => slashed(path)))
  for (const { fileName, isDeclarationFile } of project.getProgram().compilerObject.getSourceFiles()) {
    if (isDeclarationFile || given.has(fileName) || fileName.includes('/node_modules/')) continue
    project.addSourceFileAtPathIfExists(fileName)?.refreshFromFileSystemSync()
  }
}

/** Diagnostic with its span; empty for one in another file, which the editor checks separately. */
function spanOf(diagnostic: Diagnostic, { project, root }: SpecProject, path: string): readonly Finding[] {
  const file = project.getSourceFile(path)
  if (file === undefined || nameIn(root, path) !== diagnostic.file) return []
  const start = ts.getPositionOfLineAndCharacter(file.compilerNode, diagnostic.line - 1, diagnostic.column - 1)
  const [, carets = '^'] = diagnostic.frame.split('\n')
  return [{ ...diagnostic, start, length: carets.replace(/[^^]/g, '').length }]
}
