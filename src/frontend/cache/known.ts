/**
 * Cached reads of a project's specs, valid while no file that the reading depended on has changed. They are found without loading
 * TypeScript, which most verbs then never do. read/cached.ts writes the cache, and reads changed modules.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { openMemo } from '../../memo.js'
import { slashed } from '../../path_names.js'
import { assemble, type Declared, type FileRead, type StandardRead } from './declared.js'

/** A module of the project: a spec, or an import of one. */
export interface Module {
  readonly digest: string
  /** A digest of the part that importing modules see (skeleton.ts). */
  readonly skeleton: string | undefined
  /** Modules of the project that it imports. */
  readonly imports: readonly string[]
  /** The cached read of a spec. */
  readonly read: FileRead | undefined
}

/** Dependencies and results of a reading. */
export interface Trace {
  readonly settings: Settings
  /** Digests of files of packages and of the language, by path. */
  readonly base: ReadonlyMap<string, string>
  /** Modules of the project, by path as TypeScript writes it: with `/`. */
  readonly modules: ReadonlyMap<string, Module>
  /** Names of the modules in their folders: an import may resolve to a new one. */
  readonly folders: ReadonlyMap<string, string>
  readonly standard: readonly StandardRead[]
  /** True if every module affects only the modules that import it. */
  readonly separable: boolean
}

/** Settings that determine how TypeScript reads, and the package that `heddle` resolves to. */
export interface Settings {
  /** Digests of configurations and package files by path; undefined for missing files. */
  readonly files: ReadonlyMap<string, string | undefined>
  /** Real paths of `heddle` in the `node_modules` of each folder from the project up. */
  readonly installed: string
  readonly typescript: string
  /** The folder of the package that `heddle` resolves to. */
  readonly library: string | undefined
  /** Names of its standard library's modules. */
  readonly standard: string
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The digest of a source as TypeScript reads it, without a byte order mark. */
export const digestOfText = (text: string): string => digest(text.replace(/^\uFEFF/, ''))

export const digestAt = (path: string): string | undefined =>
  existsSync(path) ? digestOfText(readFileSync(path, 'utf8')) : undefined

/** @param configs configuration files of the settings */
export function settingsOf(root: string, configs: readonly string[], library: string | undefined): Settings {
  const packages = [join(root, 'package.json'), ...(library === undefined ? [] : [join(library, 'package.json')])]
  return {
    files: new Map([...configs, ...packages].map((path) => [path, digestAt(path)])),
    installed: installedIn(root),
    typescript: typescriptVersion(),
    library,
    standard: library === undefined ? '' : namesIn(join(library, 'src', 'std')),
  }
}

const isSame = (root: string, { files, installed, typescript, library, standard }: Settings): boolean =>
  [...files].every(([path, known]) => digestAt(path) === known) &&
  installedIn(root) === installed &&
  typescriptVersion() === typescript &&
  (library === undefined || namesIn(join(library, 'src', 'std')) === standard)

/** Installation paths of `heddle` seen from a folder: a nearer one, or a link to another, may replace it. */
function installedIn(root: string): string {
  const found: string[] = []
  for (let folder = root; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', 'heddle')
    if (existsSync(path)) found.push(`${path} ${realpathSync(path)}`)
    if (folder === dirname(folder)) return found.join('\n')
  }
}

let version: string | undefined

/** Version of TypeScript: digests of the package files of ts-morph and of its copy of TypeScript. */
export function typescriptVersion(): string {
  if (version !== undefined) return version
  const morph = createRequire(import.meta.url).resolve('ts-morph')
  const common = createRequire(morph).resolve('@ts-morph/common')
  version = [morph, common].map((path) => digestAt(join(dirname(path), '..', 'package.json')) ?? path).join(' ')
  return version
}

export const namesIn = (folder: string): string =>
  existsSync(folder) ? readdirSync(folder).filter(isModule).sort().join(' ') : ''

const isModule = (name: string): boolean => /\.([mc]?[jt]sx?|json)$/.test(name)

/** Cache slot of a project's specs. A project may be read under several configurations. */
export const slotOf = (root: string, specs: readonly string[], config: string) =>
  openMemo(root).slot<Trace>('specs', [root, config, ...specs])

export const configOf = (root: string, config?: string): string => resolve(root, config ?? 'tsconfig.json')

/** The cached trace, if the settings and packages are unchanged and the specs are those of the given paths. */
export function knownTrace(root: string, specs: readonly string[], config: string, paths: readonly string[]): Trace | undefined {
  const trace = slotOf(root, specs, config).read()
  return trace !== undefined && isSame(root, trace.settings) && isBaseSame(trace, paths) ? trace : undefined
}

/** True if nothing but modules of the project has changed. */
function isBaseSame({ base, modules, folders }: Trace, paths: readonly string[]): boolean {
  const specs = [...modules].flatMap(([path, { read }]) => (read === undefined ? [] : [path]))
  if (specs.length !== paths.length || !paths.every((path) => modules.get(path)?.read !== undefined)) return false
  return (
    [...base].every(([path, known]) => digestAt(path) === known) &&
    [...folders].every(([folder, known]) => namesIn(folder) === known)
  )
}

/**
 * Modules with changed text, and those that import them.
 * @param isContained true if a changed module is unchanged for its importers
 */
export function changedModules({ modules }: Trace, isContained: (path: string) => boolean = () => false): Set<string> {
  const texts = [...modules].flatMap(([path, module]) => (digestAt(path) === module.digest ? [] : [path]))
  const seen = new Set(texts.filter((path) => !isContained(path)))
  for (let before = -1; before < seen.size; ) {
    before = seen.size
    for (const [path, { imports }] of modules) if (imports.some((each) => seen.has(each))) seen.add(path)
  }
  return new Set([...texts, ...seen])
}

export const readsOf = (modules: Trace['modules']): Map<string, FileRead> =>
  new Map([...modules].flatMap(([path, { read }]) => (read === undefined ? [] : [[path, read] as const])))

export const wholeOf = ({ modules, standard }: Trace): Declared => assemble(readsOf(modules), standard)

/** Specs that did not change. */
export interface KnownSpecs extends Declared {
  readonly settings: Settings
}

/** The cached specs of a folder; undefined if anything has changed since, or nothing is cached. */
export function knownSpecs(root: string, specs: string): KnownSpecs | undefined {
  const trace = unchangedTrace(root, specs)
  return trace === undefined ? undefined : { ...wholeOf(trace), settings: trace.settings }
}

/** The trace of the last read of a folder of specs; undefined if anything has changed since, or nothing is cached. */
export function unchangedTrace(root: string, specs: string): Trace | undefined {
  const base = resolve(root)
  const paths = filesBelow(resolve(base, specs))
  if (paths === undefined || paths.length === 0) return undefined
  const trace = knownTrace(base, [specs], configOf(base), paths)
  return trace === undefined || changedModules(trace).size > 0 ? undefined : trace
}

/**
 * Everything that the last read of a folder of specs depended on, sorted: modules of the project and their folders, to which a new one may be
 * added, configurations, and files of packages.
 * Undefined if no read is cached, as with `HEDDLE_KEPT=off`.
 */
export function filesRead(root: string, specs = 'specs'): readonly string[] | undefined {
  const base = resolve(root)
  const trace = slotOf(base, [specs], configOf(base)).read()
  if (trace === undefined) return undefined
  const stated = [...trace.settings.files].flatMap(([path, known]) => (known === undefined ? [] : [path]))
  return [...new Set([...trace.modules.keys(), ...trace.folders.keys(), ...stated, ...trace.base.keys()])].sort()
}

/** The TypeScript files below a folder, sorted; undefined if it is not a folder, or has links, which a glob would follow. */
function filesBelow(folder: string): string[] | undefined {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  if (entries.some((entry) => entry.isSymbolicLink())) return undefined
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  const paths = files.map(({ parentPath, name }) => join(parentPath, name))
  return paths.some((path) => /[/\\]\./.test(path.slice(folder.length))) ? undefined : paths.map((path) => slashed(path)).sort()
}
