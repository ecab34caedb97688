/**
 * A project's graphs, plans and programs. Op bodies are compiled without being run; the others are built by running the module that declares
 * them. This is `index.ts` of the spec folder, with its exports `graphs`, `plans`, `programs` and `conversions`, or with graphs, plans and programs
 * that it exports alone. Without it, every module that exports some is run (listing_modules.ts). The modules are transpiled into their own folder below `.heddle`, so that
 * `heddle` resolves to the project's own copy, and imported from there.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { HeddleError, together, usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { collecting } from '../../lang/collected.js'
import type { Conversion } from '../../lang/conversion.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { PlanDecl } from '../../lang/plan.js'
import type { ProgramDecl } from '../../lang/program/program.js'
import { type Memo, openMemo } from '../../memo.js'
import { makeScratch } from '../../scratch.js'
import { writing } from '../../writing.js'
import { tsMorph } from '../project/typescript.js'
import { listingModules } from './listing_modules.js'
import { Places } from './places.js'
import { SourceMaps } from './source_maps.js'

export interface Declarations {
  /** Graphs by name, independent of the keys they are exported under. */
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
  readonly programs: readonly ProgramDecl[]
  /** Graphs that programs apply and that are not among `graphs`. */
  readonly applied: readonly GraphDecl[]
  /** Layout conversions, which programs insert between graphs. */
  readonly conversions: readonly Conversion[]
  /** Returns the result of an action. Prefixes a refusal with the location of its subject: `specs/plans/mine.ts:3:5: ...`. */
  readonly locating: <T>(action: () => T) => T
}

const nothing = { graphs: {}, plans: [], programs: [], applied: [], conversions: [] }

/**
 * Reads the exports of the spec folder's `index.ts`; without one, the exports of its modules.
 * @throws usage `specs.run` for a module that cannot be imported or exports something else under these names; errors of declaring
 */
export async function readDeclarations(root: string, specs = 'specs'): Promise<Declarations> {
  const source = resolve(root, specs)
  const entries = existsSync(join(source, 'index.ts')) ? ['index.ts'] : await listingModules(source)
  if (entries.length === 0) return { ...nothing, locating: (action) => action() }
  const folder = await makeScratch(root, 'specs')
  const maps = new SourceMaps(root)
  const places = new Places(root, maps)
  try {
    await translate(root, source, folder, maps)
    const { value, refused } = await collecting(() => runAll(entries, folder, specs, places))
    if (value === undefined || refused.length > 0) {
      const located = refused.map((error) => places.located(error))
      throw located.every((error) => error instanceof HeddleError) ? together(located) : located[0]
    }
    const declared = merged(value, specs)
    const locating = <T>(action: () => T): T => {
      try {
        return action()
      } catch (error) {
        throw places.located(error, declared)
      }
    }
    return { ...declared, applied: locating(() => appliedBy(declared)), locating }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes every module of a folder as JavaScript. */
export async function translate(root: string, source: string, folder: string, maps: SourceMaps): Promise<void> {
  const memo = openMemo(root)
  for (const file of await readdir(source, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || !file.name.endsWith('.ts') || file.name.endsWith('.d.ts')) continue
    const path = join(file.parentPath, file.name)
    const out = join(folder, relative(source, path).replace(/\.ts$/, '.js'))
    const { text, map } = translated(path, await readFile(path, 'utf8'), memo)
    if (map !== undefined) maps.add(out, path, map)
    await writing(out, async () => {
      await mkdir(dirname(out), { recursive: true })
      await writeFile(out, text)
    })
  }
  // A separate package.json would take the folder out of the project's package, which may be heddle itself.
  const manifest = join(root, 'package.json')
  const isModule = existsSync(manifest) && /"type"\s*:\s*"module"/.test(await readFile(manifest, 'utf8'))
  if (!isModule) await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

/** A module as JavaScript, and its source map, cached by source text. */
export const translated = (path: string, text: string, memo: Memo): { readonly text: string; readonly map: string | undefined } =>
  memo.of('translated', [path, text], () => {
    const { ModuleKind, ScriptTarget, ts } = tsMorph()
    const { outputText, sourceMapText } = ts.transpileModule(text, {
      compilerOptions: { module: ModuleKind.ESNext, target: ScriptTarget.ES2023, sourceMap: true },
      fileName: path,
    })
    return { text: outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'), map: sourceMapText }
  })

type Module = Readonly<Record<string, unknown>>

/** Spec modules that were run, with their exports. */
type Modules = readonly { readonly entry: string; readonly module: Module }[]

async function runAll(entries: readonly string[], folder: string, specs: string, places: Places): Promise<Modules> {
  const made: { readonly entry: string; readonly module: Module }[] = []
  for (const entry of entries) made.push({ entry, module: await run(entry, folder, specs, places) })
  return made
}

/** @param entry the module's path below the specs */
async function run(entry: string, folder: string, specs: string, places: Places): Promise<Module> {
  try {
    return (await import(pathToFileURL(join(folder, entry.replace(/\.ts$/, '.js'))).href)) as Module
  } catch (error) {
    const located = places.located(error)
    if (located instanceof Error && located.name === 'HeddleError') throw located
    const reason = error instanceof Error ? error.message : String(error)
    const thrown = places.thrownAt(error instanceof Error ? error.stack : undefined)
    const at = thrown === undefined ? '' : `${thrown.place.file}:${thrown.place.line}:${thrown.place.column}: `
    const frame = thrown === undefined ? '' : `\n${thrown.frame}`
    throw usageError('specs.run', `${at}${specs}/${entry} cannot be imported: ${reason.split('\n')[0]}${frame}`, {
      hint: 'it is run for its graphs, plans and programs: it may import heddle and the modules below its folder',
      cause: error,
      ...(thrown === undefined ? {} : { places: [thrown.place] }),
    })
  }
}

type Exported = Omit<Declarations, 'locating' | 'applied'>

/** Combined exports of modules; a declaration re-exported by another module counts once. */
function merged(modules: Modules, specs: string): Exported {
  const all = modules.map(({ entry, module }) => checked(module, `${specs}/${entry}`))
  const graphs = all.flatMap((each) => Object.values(each.graphs))
  return {
    graphs: byName(graphs, modules.length === 1 ? `${specs}/${modules[0]?.entry}` : specs),
    plans: [...new Set(all.flatMap(({ plans }) => plans))],
    programs: [...new Set(all.flatMap(({ programs }) => programs))],
    conversions: [...new Set(all.flatMap(({ conversions }) => conversions))],
  }
}

/** @param name of the module, for messages */
function checked(module: Module, name: string): Exported {
  // Declarations that a module exports alone count unless it has a list.
  const {
    graphs = own(module, isGraph),
    plans = own(module, isPlan),
    programs = own(module, isProgram),
    conversions = [],
  } = module
  const list = isObject(programs) ? Object.values(programs) : programs
  if (isGraphs(graphs) && isPlans(plans) && isPrograms(list) && isConversions(conversions)) {
    return { graphs, plans, programs: list, conversions }
  }
  throw usageError('specs.run', `${name} exports graphs, plans, programs or conversions of the wrong type`, {
    hint: 'export const graphs = { [layer.name]: layer }; export const plans = [myPlan]; export const programs = [model]',
  })
}

/** Graphs of programs in the default configuration. @throws usage `specs.graphs`, `specs.programs`, and errors of assembling a program */
function appliedBy({ graphs, programs }: Exported): readonly GraphDecl[] {
  const found = new Map<string, GraphDecl>()
  const names = new Set<string>()
  for (const program of programs) {
    if (names.has(program.name)) {
      throw usageError('specs.programs', `two programs are called ${program.name}`, {
        hint: 'names are unique in the project: give each program a name of its own',
        about: { written: program.written },
      })
    }
    names.add(program.name)
    for (const decl of program.graphs()) {
      const known = getOwn(graphs, decl.name) ?? found.get(decl.name)
      if (known !== undefined && known !== decl && JSON.stringify(known.graph) !== JSON.stringify(decl.graph)) {
        throw usageError(
          'specs.graphs',
          `program ${program.name} applies a graph ${decl.name}, and there is another of that name`,
          {
            hint: 'names are unique in the project: give each graph a name of its own',
            about: { written: program.written },
          },
        )
      }
      if (known === undefined) found.set(decl.name, decl)
    }
  }
  return [...found.values()]
}

/** @throws usage `specs.graphs` for two graphs of one name */
function byName(graphs: readonly GraphDecl[], where: string): Declarations['graphs'] {
  const found = new Map<string, GraphDecl>()
  for (const decl of graphs) {
    const other = found.get(decl.name)
    if (other !== undefined && other !== decl) {
      throw usageError('specs.graphs', `${where} exports two graphs called ${decl.name}`, {
        hint: 'names are unique in the project: give each graph a name of its own',
      })
    }
    found.set(decl.name, decl)
  }
  return Object.fromEntries(found)
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

const own = <T>(module: Module, is: (value: unknown) => value is T): readonly T[] => Object.values(module).filter(is)

const isGraph = (decl: unknown): decl is GraphDecl => isObject(decl) && isObject(decl.graph) && Array.isArray(decl.nodes)

const isGraphs = (value: unknown): value is Declarations['graphs'] => isObject(value) && Object.values(value).every(isGraph)

const isPlan = (decl: unknown): decl is PlanDecl => isObject(decl) && typeof decl.graph === 'string' && Array.isArray(decl.groups)

const isPlans = (value: unknown): value is Declarations['plans'] => Array.isArray(value) && value.every(isPlan)

const isProgram = (decl: unknown): decl is ProgramDecl =>
  isObject(decl) && typeof decl.of === 'function' && typeof decl.graphs === 'function'

const isPrograms = (value: unknown): value is Declarations['programs'] => Array.isArray(value) && value.every(isProgram)

const isConversions = (value: unknown): value is Declarations['conversions'] =>
  Array.isArray(value) && value.every((each) => isObject(each) && isObject(each.op))
