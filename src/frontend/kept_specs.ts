/**
 * What spec modules were read as, kept between runs. An entry says which files TypeScript read for it, with their digests: where all are the
 * same, no module is parsed. Where spec modules have changed, they and those that import them are read anew, and the others are not. Any
 * other change, such as of a library's types, has everything read.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ts } from 'ts-morph'
import { openKept } from '../kept.js'
import { codes, type Diagnostic } from './diagnostics.js'
import { heddleModule, packageOf, type SpecProject, specFiles, specPaths } from './project.js'
import { assemble, type Declared, type FileRead, readFiles, type StandardRead } from './read_files.js'

type ReadSpecs = Declared & { readonly diagnostics: readonly Diagnostic[] }

/** A module of the project: a spec, or what one imports. */
interface Module {
  readonly digest: string
  /** Modules of the project that it imports. */
  readonly imports: readonly string[]
  /** Of a spec. */
  readonly read: FileRead | undefined
}

interface Trace {
  /** Files of packages and of the language, by path. */
  readonly base: ReadonlyMap<string, string>
  /** Modules of the project, by path. */
  readonly modules: ReadonlyMap<string, Module>
  /** Names of the modules in their folders: a new one may be what an import means. */
  readonly folders: ReadonlyMap<string, string>
  readonly standard: readonly StandardRead[]
  /** Whether what one module says has a meaning for those alone that import it. */
  readonly separable: boolean
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The digest of a file as TypeScript reads it, without a byte order mark. */
const digestAt = (path: string): string | undefined =>
  existsSync(path) ? digest(readFileSync(path, 'utf8').replace(/^\uFEFF/, '')) : undefined

/** The specs of a project. @param only as `ReadOptions` has it: what is known of all serves as well */
export function readKept(opened: SpecProject, specs: readonly string[], only?: ReadonlySet<string>): ReadSpecs {
  const paths = specPaths(opened, specs)
  const slot = openKept(opened.root).slot<Trace>('specs', keyOf(opened, specs))
  const trace = paths.length === 0 ? undefined : slot.read()
  const known = trace !== undefined && isBaseSame(trace, paths) ? trace : undefined
  const changed = known === undefined ? undefined : changedModules(known)
  if (known !== undefined && changed?.size === 0) return only === undefined ? whole(known) : part(whole(known), only)
  if (only !== undefined) return readAll(opened, specs, only)
  const isPart = known?.separable === true && [...(changed ?? [])].every((path) => known.modules.has(path))
  const anew = known !== undefined && changed !== undefined && isPart ? readChanged(opened, known, changed) : undefined
  if (anew !== undefined) {
    if ('diagnostics' in anew) return { kernels: [], standard: [], layouts: [], diagnostics: anew.diagnostics }
    slot.write(anew)
    return whole(anew)
  }
  const sources = specFiles(opened, specs, {})
  const { files, standard, diagnostics } = readFiles(opened, sources)
  if (diagnostics.length === 0) slot.write(traced(opened, files, standard))
  return { ...assemble(files, standard), diagnostics }
}

const whole = ({ modules, standard }: Trace): ReadSpecs => ({ ...assemble(readsOf(modules), standard), diagnostics: [] })

function part({ kernels, layouts }: Declared, only: ReadonlySet<string>): ReadSpecs {
  return { kernels: kernels.filter(({ name }) => only.has(name)), standard: [], layouts, diagnostics: [] }
}

function readAll(opened: SpecProject, specs: readonly string[], only: ReadonlySet<string>): ReadSpecs {
  const { files, standard, diagnostics } = readFiles(opened, specFiles(opened, specs, {}), { only })
  return { ...assemble(files, standard), diagnostics }
}

/** Settings that TypeScript reads by, and what decides which files are read. */
function keyOf(opened: SpecProject, specs: readonly string[]): string[] {
  const { root, project } = opened
  const manifest = join(root, 'package.json')
  const library = packageOf(opened)
  const standard = library === undefined ? [] : readdirSync(join(library, 'src', 'std'))
  const settings = [project.getCompilerOptions(), ts.version, specs, standard.sort(), heddleModule(opened)]
  return [root, JSON.stringify(settings), digestAt(manifest) ?? '']
}

/** Whether nothing has changed but modules of the project. */
function isBaseSame({ base, modules, folders }: Trace, paths: readonly string[]): boolean {
  const specs = [...modules].flatMap(([path, { read }]) => (read === undefined ? [] : [path]))
  if (specs.length !== paths.length || !paths.every((path) => modules.get(path)?.read !== undefined)) return false
  return (
    [...base].every(([path, known]) => digestAt(path) === known) &&
    [...folders].every(([folder, known]) => namesIn(folder) === known)
  )
}

const namesIn = (folder: string): string => (existsSync(folder) ? readdirSync(folder).filter(isModule).sort().join(' ') : '')

const isModule = (name: string): boolean => /\.([mc]?[jt]sx?|json)$/.test(name)

/** Modules whose text is another, and those that import them. */
function changedModules({ modules }: Trace): Set<string> {
  const changed = new Set([...modules].flatMap(([path, module]) => (digestAt(path) === module.digest ? [] : [path])))
  for (let before = -1; before < changed.size; ) {
    before = changed.size
    for (const [path, { imports }] of modules) if (imports.some((each) => changed.has(each))) changed.add(path)
  }
  return changed
}

const readsOf = (modules: Trace['modules']): Map<string, FileRead> =>
  new Map([...modules].flatMap(([path, { read }]) => (read === undefined ? [] : [[path, read] as const])))

/** Reads what has changed beside what is known. Undefined where only all of it together tells what is wrong. */
function readChanged(
  opened: SpecProject,
  trace: Trace,
  changed: ReadonlySet<string>,
): Trace | { readonly diagnostics: readonly Diagnostic[] } | undefined {
  const paths = [...changed].filter((path) => trace.modules.get(path)?.read !== undefined && existsSync(path))
  const kept = new Map([...readsOf(trace.modules)].filter(([path]) => !changed.has(path)))
  const sources = paths.sort().map((path) => opened.project.addSourceFileAtPath(path))
  const { files, diagnostics } = readFiles(opened, sources, { known: { files: kept, standard: trace.standard } })
  // Which of two is one too many, the order of all modules tells.
  if (diagnostics.some(({ code }) => code === codes.duplicate)) return undefined
  if (diagnostics.length > 0) return { diagnostics }
  const all = new Map([...kept, ...atPaths(opened, files)])
  const returned = new Set([...all.values()].flatMap((read) => [...read.returned]))
  if ([...kept.values()].some(({ uncalled }) => uncalled.some((id) => !returned.has(id)))) return undefined
  const made = traced(opened, files, trace.standard)
  const others = [...trace.modules].filter(([path]) => !changed.has(path))
  const modules = new Map([...others, ...[...made.modules].filter(([path]) => changed.has(path) || !trace.modules.has(path))])
  return {
    base: new Map([...trace.base, ...made.base]),
    modules,
    folders: new Map([...trace.folders, ...made.folders]),
    standard: trace.standard,
    separable: made.separable,
  }
}

const atPaths = ({ root }: SpecProject, files: ReadonlyMap<string, FileRead>): Map<string, FileRead> =>
  new Map([...files].map(([name, read]) => [join(root, name), read]))

/** What TypeScript has read for modules. */
function traced(opened: SpecProject, files: ReadonlyMap<string, FileRead>, standard: readonly StandardRead[]): Trace {
  const { project } = opened
  const program = project.getProgram().compilerObject
  const library = packageOf(opened)
  const reads = atPaths(opened, files)
  const isBase = (file: ts.SourceFile): boolean =>
    program.isSourceFileDefaultLibrary(file) ||
    file.fileName.includes('/node_modules/') ||
    (library !== undefined && ['src', 'dist'].some((part) => file.fileName.startsWith(`${library}/${part}/`)))
  const [base, own] = [new Map<string, string>(), new Map<string, ts.SourceFile>()]
  for (const file of program.getSourceFiles()) {
    // The language's own declarations are ts-morph's, in no folder: the version of TypeScript says which they are.
    if (program.isSourceFileDefaultLibrary(file) && !existsSync(file.fileName)) continue
    if (isBase(file)) base.set(file.fileName, digest(file.text))
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
  return {
    base,
    modules: new Map(
      [...own].map(([path, file]) => [path, { digest: digest(file.text), imports: importsOf(file), read: reads.get(path) }]),
    ),
    folders: new Map([...own.keys()].map((path) => [dirname(path), namesIn(dirname(path))])),
    standard,
    separable: [...own.values()].every(isSeparable),
  }
}

/** Whether a module has a meaning for those alone that import it: no script, and none that adds to others. */
const isSeparable = (file: ts.SourceFile): boolean =>
  ts.isExternalModule(file) &&
  !file.isDeclarationFile &&
  [file.referencedFiles, file.typeReferenceDirectives, file.libReferenceDirectives].every(({ length }) => length === 0) &&
  !file.statements.some(isAmbient)

const isAmbient = (statement: ts.Statement): boolean =>
  ts.canHaveModifiers(statement) && ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.DeclareKeyword) === true
