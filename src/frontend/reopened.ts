/**
 * The TypeScript project of a folder for processes that read it again and again, such as `heddle watch`: what TypeScript has parsed stays, and
 * modules whose text is another are parsed anew. Anything else that has changed, such as a configuration, a package, or which modules there
 * are, opens another project.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { configOf, knownTrace } from './cache/known.js'
import { openProject, type SpecProject, specPaths } from './project.js'

/** Projects that were read while what is known of them held but for texts of modules. */
const open = new Map<string, SpecProject>()

/** The project of a folder, with modules as they are now. */
export function reopened(root: string, specs: string): SpecProject {
  const base = resolve(root)
  const before = open.get(base)
  const project = before ?? openProject(base)
  const trace = knownTrace(base, [specs], configOf(base), specPaths(project, [specs]))
  if (trace === undefined) {
    open.delete(base)
    return before === undefined ? project : openProject(base)
  }
  for (const path of trace.modules.keys()) refresh(project, path)
  open.set(base, project)
  return project
}

/** Brings a module that was parsed to what its file holds. */
function refresh({ project }: SpecProject, path: string): void {
  const file = project.getSourceFile(path)
  if (file === undefined) return
  if (!existsSync(path)) file.forget()
  else if (file.getFullText() !== readFileSync(path, 'utf8')) file.refreshFromFileSystemSync()
}
