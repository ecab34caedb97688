/**
 * Reuses the TypeScript project of a folder in processes that read it repeatedly, such as `heddle watch`: parsed files stay, and
 * modules with changed text are parsed again. Any other change, such as of a configuration, a package, or the set of modules,
 * opens another project.
 */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { configOf, knownTrace } from '../cache/known.js'
import { openProject, type SpecProject, specPaths } from './project.js'

/** Open projects by root; only texts of their modules have changed since they were opened. */
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

/** Updates a parsed module to the text of its file. */
function refresh({ project }: SpecProject, path: string): void {
  const file = project.getSourceFile(path)
  if (file === undefined) return
  if (!existsSync(path)) file.forget()
  else if (file.getFullText() !== readFileSync(path, 'utf8')) file.refreshFromFileSystemSync()
}
