/**
 * The TypeScript project of the spec modules. Opening one parses the standard library, so it is opened once
 * and reused; each read sees the current files. No spec module is ever executed.
 */
import { existsSync, readFileSync, statSync } from 'node:fs'
import path, { dirname, join, resolve } from 'node:path'
import { ModuleKind, ModuleResolutionKind, Project, ScriptTarget, type SourceFile, ts } from 'ts-morph'
import { usageError } from '../../errors.js'
import { nameIn, type PathModule, slashed } from '../../path_names.js'
import { configOf } from '../cache/known.js'
import { deepLine } from '../diagnostics/nesting.js'
import type { Declarators } from '../static/literals.js'
import { sourceOf } from '../static/package_sources.js'

export interface SpecProject {
  readonly root: string
  /** The path of its `tsconfig.json`, which need not exist. */
  readonly config: string
  readonly project: Project
  /** A source file's path relative to the root, with `/`. */
  readonly fileName: (file: SourceFile) => string
}

export const failureHint = 'write it in smaller parts; where that is not the reason, in another way'

/**
 * Returns the result of an action. If TypeScript itself fails, by the depth of its input or by a defect of its own, returns
 * `otherwise` of the reason.
 */
export function guarded<R>(action: () => R, otherwise: (failure: string) => R): R {
  try {
    return action()
  } catch (error) {
    const message = error instanceof Error ? (error.message.split('\n')[0] ?? '') : ''
    if (error instanceof RangeError && message.includes('call stack'))
      return otherwise('this is nested deeper than TypeScript can read')
    if (message.startsWith('Debug Failure')) return otherwise(`TypeScript cannot check this: ${message}`)
    throw error
  }
}

const defaults = {
  target: ScriptTarget.ES2023,
  module: ModuleKind.NodeNext,
  moduleResolution: ModuleResolutionKind.NodeNext,
  strict: true,
} as const

/** TypeScript's library files, for projects that do not set `lib`. */
const languageLibraries = ['lib.es2023.d.ts']

/** Opens the project of a root folder; `tsconfig` defaults to the root's own, if it has one. */
export function openProject(root: string, tsconfig?: string): SpecProject {
  const base = resolve(root)
  const config = configOf(base, tsconfig)
  const hasConfig = existsSync(config)
  if (tsconfig !== undefined && !hasConfig) throw usageError('frontend.tsconfig', `${config} does not exist`)
  const project = new Project({
    ...(hasConfig ? { tsConfigFilePath: config } : {}),
    skipAddingFilesFromTsConfig: true,
    skipFileDependencyResolution: true,
    // Ambient packages such as Node's types are not part of the language and slow to check.
    compilerOptions: { ...(hasConfig ? {} : defaults), noEmit: true, skipLibCheck: true, types: [] },
  })
  // Browser declarations are not part of the language either; reading them would take half of the total time.
  if (project.compilerOptions.get().lib === undefined) project.compilerOptions.set({ lib: languageLibraries })
  return { root: base, config, project, fileName: (file) => nameIn(base, file.getFilePath()) }
}

/** The project's configuration file, and those that it extends. */
export function configsOf({ config }: SpecProject): readonly string[] {
  if (!existsSync(config)) return [config]
  const source = ts.readJsonConfigFile(config, ts.sys.readFile)
  // The files it names do not matter here.
  const host = { ...ts.sys, readDirectory: () => [] }
  ts.parseJsonSourceFileConfigFileContent(source, host, dirname(config))
  return [config, ...(source.extendedSourceFiles ?? [])]
}

const isFolder = (path: string): boolean => existsSync(path) && statSync(path).isDirectory()

/** Globs of specs. In a glob, a backslash of a path would escape the next character. */
export const patternsOf = (root: string, specs: readonly string[], paths: PathModule = path, isDir = isFolder): string[] =>
  specs.map((spec) => {
    const named = paths.resolve(root, spec)
    return slashed(isDir(named) ? `${named}/**/*.ts` : named, paths)
  })

/** Sorted paths of the spec files that match patterns, without opening them. */
export function specPaths({ root, project }: SpecProject, specs: readonly string[]): string[] {
  return specs.length === 0 ? [] : [...new Set(project.getFileSystem().globSync(patternsOf(root, specs)))].sort()
}

/** The spec files: those that match the patterns (globs, folders or files under the root), and those given in memory. */
export function specFiles(
  { root, project }: SpecProject,
  specs: readonly string[],
  files: Readonly<Record<string, string>>,
): SourceFile[] {
  const memory = Object.entries(files).map(([path, text]) =>
    guarded(
      () => project.createSourceFile(join(root, path), text, { overwrite: true }),
      (failure) => refuseFile(path, text, failure),
    ),
  )
  const patterns = patternsOf(root, specs)
  const found =
    patterns.length === 0
      ? []
      : guarded(
          () => project.addSourceFilesAtPaths(patterns),
          (failure) => {
            const host = project.getFileSystem()
            const texts = host.globSync(patterns).map((path) => [path, host.readFileSync(path)] as const)
            const [path, text] = texts.find((each) => deepLine(each[1]) !== undefined) ?? [`a file of ${specs.join(', ')}`, '']
            return refuseFile(nameIn(root, path), text, failure)
          },
        )
  const sources = [...new Set([...found, ...memory])].sort((a, b) => (a.getFilePath() < b.getFilePath() ? -1 : 1))
  if (sources.length === 0) {
    throw usageError('frontend.no_specs', `no spec files match ${specs.join(', ')} under ${root}`, {
      hint: 'give folders, files or globs',
    })
  }
  return sources
}

/** @throws usage `frontend.parse` for a file that the parser fails on */
function refuseFile(path: string, text: string, failure: string): never {
  const line = deepLine(text)
  throw usageError('frontend.parse', `${path}${line === undefined ? '' : `:${line}`} cannot be parsed: ${failure}`, {
    hint: failureHint,
  })
}

/** The file that `import ... from 'heddle'` resolves to in the project. @throws usage `frontend.heddle` when the root cannot import it */
export function heddleModule({ root, project }: SpecProject): string {
  const options = project.getCompilerOptions()
  const from = join(root, 'spec.ts')
  const { resolvedModule } = ts.resolveModuleName(
    'heddle',
    from,
    options,
    project.getModuleResolutionHost(),
    undefined,
    undefined,
    ts.ModuleKind.ESNext,
  )
  if (resolvedModule === undefined) {
    throw usageError('frontend.heddle', `"heddle" cannot be imported from ${root}`, {
      hint: 'install it there: npm install heddle',
    })
  }
  return resolvedModule.resolvedFileName
}

/** The folder of the package that `heddle` resolves to in the project. @throws usage `frontend.heddle` */
export function packageOf(opened: SpecProject): string | undefined {
  const module = heddleModule(opened)
  for (let folder = dirname(module); folder !== dirname(folder); folder = dirname(folder))
    if (isPackage(folder)) return resolve(folder)
  return undefined
}

/** The modules of the standard library, in the package that `heddle` resolves to in the project. @throws usage `frontend.heddle` */
export function standardFiles(opened: SpecProject): readonly SourceFile[] {
  const folder = packageOf(opened)
  return folder === undefined ? [] : opened.project.addSourceFilesAtPaths(slashed(join(folder, 'src', 'std', '*.ts')))
}

function isPackage(folder: string): boolean {
  const manifest = join(folder, 'package.json')
  return existsSync(manifest) && /"name"\s*:\s*"heddle"/.test(readFileSync(manifest, 'utf8'))
}

/** Opens the sources of package modules that the program has as declaration files, which hold neither bodies nor values. */
function openSources(opened: SpecProject): void {
  const { project } = opened
  standardFiles(opened)
  for (const { fileName } of project.getProgram().compilerObject.getSourceFiles()) {
    const source = sourceOf(fileName)
    if (source !== undefined) project.addSourceFileAtPathIfExists(source)
  }
}

/**
 * Finds the declaring functions of `heddle` in the program, under any local name.
 * @throws usage `frontend.heddle` when the root cannot import `heddle`.
 */
export function findDeclarators(opened: SpecProject): Declarators {
  const { project } = opened
  openSources(opened)
  const checker = project.getTypeChecker().compilerObject
  const file = project.getProgram().compilerObject.getSourceFile(heddleModule(opened))
  const module = file === undefined ? undefined : checker.getSymbolAtLocation(file)
  const found = new Map<ts.Symbol, 'op' | 'layout' | 'tensor'>()
  for (const exported of module === undefined ? [] : checker.getExportsOfModule(module)) {
    const { name } = exported
    if (name !== 'op' && name !== 'layout' && name !== 'tensor') continue
    found.set(exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported, name)
  }
  return found
}
