/**
 * What the specs of a project were read as by an earlier run, where nothing has changed since that reading looked at: found without loading
 * TypeScript, which most verbs then never do. reading.ts writes what is known, and reads what has changed.
 */
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { openMemo } from '../../memo.js'
import { assemble, type Declared, type FileRead, type StandardRead } from './declared.js'

/** A module of the project: a spec, or what one imports. */
export interface Module {
  readonly digest: string
  /** A digest of what others can see of it (skeleton.ts). */
  readonly skeleton: string | undefined
  /** Modules of the project that it imports. */
  readonly imports: readonly string[]
  /** Of a spec. */
  readonly read: FileRead | undefined
}

/** What a reading looked at, and what it found. */
export interface Trace {
  readonly settings: Settings
  /** Files of packages and of the language, by path. */
  readonly base: ReadonlyMap<string, string>
  /** Modules of the project, by path. */
  readonly modules: ReadonlyMap<string, Module>
  /** Names of the modules in their folders: a new one may be what an import means. */
  readonly folders: ReadonlyMap<string, string>
  readonly standard: readonly StandardRead[]
  /** True if what one module says has a meaning for those alone that import it. */
  readonly separable: boolean
}

/** What decides how TypeScript reads and what `heddle` means. */
export interface Settings {
  /** Digests of configurations and package files by path; undefined for those that are not there. */
  readonly files: ReadonlyMap<string, string | undefined>
  /** What `heddle` is in the `node_modules` of each folder from the project up. */
  readonly installed: string
  readonly typescript: string
  /** The folder of the package that `heddle` means. */
  readonly library: string | undefined
  /** Names of its standard library's modules. */
  readonly standard: string
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64url')

/** The digest of a text as TypeScript reads it, without a byte order mark. */
export const digestOfText = (text: string): string => digest(text.replace(/^\uFEFF/, ''))

export const digestAt = (path: string): string | undefined =>
  existsSync(path) ? digestOfText(readFileSync(path, 'utf8')) : undefined

/** @param configs configurations that the settings are read from */
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

/** Where `heddle` is installed for a folder: it may be replaced by a nearer one, or by a link to another. */
function installedIn(root: string): string {
  const found: string[] = []
  for (let folder = root; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', 'heddle')
    if (existsSync(path)) found.push(`${path} ${realpathSync(path)}`)
    if (folder === dirname(folder)) return found.join('\n')
  }
}

let version: string | undefined

/** Which TypeScript reads: the package files of what brings it. */
function typescriptVersion(): string {
  if (version !== undefined) return version
  const morph = createRequire(import.meta.url).resolve('ts-morph')
  const common = createRequire(morph).resolve('@ts-morph/common')
  version = [morph, common].map((path) => digestAt(join(dirname(path), '..', 'package.json')) ?? path).join(' ')
  return version
}

export const namesIn = (folder: string): string =>
  existsSync(folder) ? readdirSync(folder).filter(isModule).sort().join(' ') : ''

const isModule = (name: string): boolean => /\.([mc]?[jt]sx?|json)$/.test(name)

/** The place of what is known of specs. A project may be read under several configurations. */
export const slotOf = (root: string, specs: readonly string[], config: string) =>
  openMemo(root).slot<Trace>('specs', [root, config, ...specs])

export const configOf = (root: string, config?: string): string => resolve(root, config ?? 'tsconfig.json')

/** What is known, where the settings and the packages are the same and the specs are those of the given paths. */
export function knownTrace(root: string, specs: readonly string[], config: string, paths: readonly string[]): Trace | undefined {
  const trace = slotOf(root, specs, config).read()
  return trace !== undefined && isSame(root, trace.settings) && isBaseSame(trace, paths) ? trace : undefined
}

/** True if nothing has changed but modules of the project. */
function isBaseSame({ base, modules, folders }: Trace, paths: readonly string[]): boolean {
  const specs = [...modules].flatMap(([path, { read }]) => (read === undefined ? [] : [path]))
  if (specs.length !== paths.length || !paths.every((path) => modules.get(path)?.read !== undefined)) return false
  return (
    [...base].every(([path, known]) => digestAt(path) === known) &&
    [...folders].every(([folder, known]) => namesIn(folder) === known)
  )
}

/**
 * Modules whose text is another, and those that import them.
 * @param isContained whether a module whose text is another is the same for those that import it
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

/** The specs of a folder as they were read last; undefined where anything has changed since, or nothing is known. */
export function knownSpecs(root: string, specs: string): KnownSpecs | undefined {
  const base = resolve(root)
  const paths = filesBelow(resolve(base, specs))
  if (paths === undefined || paths.length === 0) return undefined
  const trace = knownTrace(base, [specs], configOf(base), paths)
  if (trace === undefined || changedModules(trace).size > 0) return undefined
  return { ...wholeOf(trace), settings: trace.settings }
}

/** The TypeScript files below a folder, sorted; undefined for what is none, or one with links, which a glob would follow. */
function filesBelow(folder: string): string[] | undefined {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true) return undefined
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  if (entries.some((entry) => entry.isSymbolicLink())) return undefined
  const files = entries.filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
  const paths = files.map(({ parentPath, name }) => join(parentPath, name))
  return paths.some((path) => path.slice(folder.length).includes('/.')) ? undefined : paths.sort()
}
