/**
 * Caches the reads of spec modules between runs. An entry lists the files that TypeScript read for it, with their digests (cache/known.ts): if
 * all are unchanged, no module is parsed. If spec modules have changed, only they and those that import them are read again. If a change
 * is inside of bodies of ops, which no other module can see, only they are. Any other change, such as of a library's types,
 * causes everything to be read.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ts } from 'ts-morph'
import { nameIn, slashed } from '../../path_names.js'
import { assemble, type Declared, type FileRead, partOf, type StandardRead } from '../cache/declared.js'
import {
  changedModules,
  digestOfText,
  knownTrace,
  type Module,
  namesIn,
  readsOf,
  settingsOf,
  slotOf,
  type Trace,
} from '../cache/known.js'
import { skeletonAt, skeletonOf } from '../cache/skeleton.js'
import { codes, type Diagnostic } from '../diagnostics/reject.js'
import { configsOf, packageOf, type SpecProject, specFiles, specPaths } from '../project/project.js'
import { type ReadFiles, readFiles } from './read_files.js'

/** The specs of a project. @param only as in `ReadOptions`; a cached read of all specs serves it as well */
export function readCached(
  opened: SpecProject,
  specs: readonly string[],
  only?: ReadonlySet<string>,
): Declared & { readonly diagnostics: readonly Diagnostic[] } {
  const { files, standard, diagnostics } = readModules(opened, specs, only)
  const read = assemble(files, standard)
  return { ...(only === undefined ? read : partOf(read, only)), diagnostics }
}

/** The same by module. With `only`, modules have at least the requested ops. */
export function readModules(opened: SpecProject, specs: readonly string[], only?: ReadonlySet<string>): ReadFiles {
  const { root, config } = opened
  const paths = specPaths(opened, specs)
  const slot = slotOf(root, specs, config)
  const known = paths.length === 0 ? undefined : knownTrace(root, specs, config, paths)
  const changed = known === undefined ? undefined : changedModules(known, (path) => isContained(opened, known, path))
  if (known !== undefined && changed?.size === 0) return whole(known)
  const isPart = known?.separable === true && [...(changed ?? [])].every((path) => known.modules.has(path))
  const updated = known !== undefined && changed !== undefined && isPart ? readChanged(opened, known, changed) : undefined
  if (updated !== undefined && !('diagnostics' in updated)) {
    slot.write(updated)
    return whole(updated)
  }
  // Errors of other ops do not matter.
  if (only !== undefined) return readFiles(opened, specFiles(opened, specs, {}), { only })
  if (updated !== undefined) return { files: new Map(), standard: [], diagnostics: updated.diagnostics }
  const read = readFiles(opened, specFiles(opened, specs, {}))
  if (read.diagnostics.length === 0) slot.write(traced(opened, read.files, read.standard))
  return read
}

const whole = ({ modules, standard }: Trace): ReadFiles => ({ files: readsOf(modules), standard, diagnostics: [] })

/** True if a changed module is unchanged for its importers, and no cached read of another module refers to a location in it. */
function isContained(opened: SpecProject, { modules }: Trace, path: string): boolean {
  const skeleton = modules.get(path)?.skeleton
  if (skeleton === undefined || skeletonAt(path) !== skeleton) return false
  const inside = `${nameIn(opened.root, path)} `
  const others = [...modules].flatMap(([other, { read }]) => (other === path || read === undefined ? [] : [read]))
  return !others.some(({ layouts, returned }) => [...layouts.keys(), ...returned].some((id) => id.startsWith(inside)))
}

/** Reads the changed modules and merges them with the cached ones. Undefined if only a complete read can report the errors. */
function readChanged(
  opened: SpecProject,
  trace: Trace,
  changed: ReadonlySet<string>,
): Trace | { readonly diagnostics: readonly Diagnostic[] } | undefined {
  const paths = [...changed].filter((path) => trace.modules.get(path)?.read !== undefined && existsSync(path))
  const unchanged = new Map([...readsOf(trace.modules)].filter(([path]) => !changed.has(path)))
  const sources = paths.sort().map((path) => opened.project.addSourceFileAtPath(path))
  const { files, diagnostics } = readFiles(opened, sources, { known: { files: unchanged, standard: trace.standard } })
  // The order of all modules decides which of two declarations is the duplicate.
  if (diagnostics.some(({ code }) => code === codes.duplicate)) return undefined
  if (diagnostics.length > 0) return { diagnostics }
  const all = new Map([...unchanged, ...atPaths(opened, files)])
  const returned = new Set([...all.values()].flatMap((read) => [...read.returned]))
  if ([...unchanged.values()].some(({ uncalled }) => uncalled.some((id) => !returned.has(id)))) return undefined
  const made = traced(opened, files, trace.standard)
  const others = [...trace.modules].filter(([path]) => !changed.has(path))
  const modules = new Map([...others, ...[...made.modules].filter(([path]) => changed.has(path) || !trace.modules.has(path))])
  return {
    settings: trace.settings,
    base: new Map([...trace.base, ...made.base]),
    modules,
    folders: new Map([...trace.folders, ...made.folders]),
    standard: trace.standard,
    separable: made.separable,
  }
}

const atPaths = ({ root }: SpecProject, files: ReadonlyMap<string, FileRead>): Map<string, FileRead> =>
  new Map([...files].map(([name, read]) => [slashed(join(root, name)), read]))

/** Trace of a reading: all files that TypeScript has read for the modules. */
function traced(opened: SpecProject, files: ReadonlyMap<string, FileRead>, standard: readonly StandardRead[]): Trace {
  const { project } = opened
  const program = project.getProgram().compilerObject
  const library = packageOf(opened)
  const reads = atPaths(opened, files)
  // In the package itself the specs are those of the project.
  const parts = library === opened.root ? ['src', 'dist'] : ['src', 'dist', 'specs']
  const isBase = (file: ts.SourceFile): boolean =>
    program.isSourceFileDefaultLibrary(file) ||
    file.fileName.includes('/node_modules/') ||
    (library !== undefined && parts.some((part) => file.fileName.startsWith(`${slashed(library)}/${part}/`)))
  const [base, own] = [new Map<string, string>(), new Map<string, ts.SourceFile>()]
  for (const file of program.getSourceFiles()) {
    // The language's declarations come from ts-morph, in no folder: the version of TypeScript determines them.
    if (program.isSourceFileDefaultLibrary(file) && !existsSync(file.fileName)) continue
    if (isBase(file)) base.set(file.fileName, digestOfText(file.text))
    else own.set(file.fileName, file)
  }
  const options = project.getCompilerOptions()
  const host = project.getModuleResolutionHost()
  const importsOf = (file: ts.SourceFile): string[] =>
    ts.preProcessFile(file.text).importedFiles.flatMap(({ fileName }) => {
      const mode = ts.ModuleKind.ESNext
      const { resolvedModule } = ts.resolveModuleName(fileName, file.fileName, options, host, undefined, undefined, mode)
      return resolvedModule !== undefined && own.has(resolvedModule.resolvedFileName) ? [resolvedModule.resolvedFileName] : []
    })
  const moduleOf = (path: string, file: ts.SourceFile): Module => {
    const read = reads.get(path)
    return { digest: digestOfText(file.text), skeleton: skeletonOf(file), imports: importsOf(file), read }
  }
  return {
    settings: settingsOf(opened.root, configsOf(opened), library),
    base,
    modules: new Map([...own].map(([path, file]) => [path, moduleOf(path, file)])),
    folders: new Map([...own.keys()].map((path) => [dirname(path), namesIn(dirname(path))])),
    standard,
    separable: [...own.values()].every(isSeparable),
  }
}

/** True if a module affects only those that import it: it is not a script, and augments no other module. */
const isSeparable = (file: ts.SourceFile): boolean =>
  ts.isExternalModule(file) &&
  !file.isDeclarationFile &&
  [file.referencedFiles, file.typeReferenceDirectives, file.libReferenceDirectives].every(({ length }) => length === 0) &&
  !file.statements.some(isAmbient)

const isAmbient = (statement: ts.Statement): boolean =>
  ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) === true
