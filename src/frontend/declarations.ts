/**
 * A project's graphs and plans. Op bodies are compiled without being run; graphs and plans are built by running the module that
 * declares them: `index.ts` of the spec folder, whose exports `graphs` and `plans` count. The modules are translated into a folder
 * of their own below `.heddle`, so that `heddle` means the project's own copy, and imported from there.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, realpath, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ModuleKind, ScriptTarget, ts } from 'ts-morph'
import { usageError } from '../errors.js'
import type { GraphDecl } from '../lang/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import { Places } from './places.js'
import { SourceMaps } from './source_maps.js'

export interface Declarations {
  /** By their names, whatever keys they are exported under. */
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
  /** What an action returns. A refusal that it ends in gets the place of what it is about in front: `specs/plans/mine.ts:3:5: ...`. */
  readonly locating: <T>(action: () => T) => T
}

/**
 * What the spec folder's `index.ts` exports; nothing where there is none.
 * @throws usage `specs.run` for a module that cannot be imported or exports something else under these names; what declaring throws
 */
export async function readDeclarations(root: string, specs = 'specs'): Promise<Declarations> {
  const source = resolve(root, specs)
  if (!existsSync(join(source, 'index.ts'))) return { graphs: {}, plans: [], locating: (action) => action() }
  await mkdir(join(root, '.heddle'), { recursive: true })
  const folder = await realpath(await mkdtemp(join(root, '.heddle', 'specs-')))
  const maps = new SourceMaps(root)
  const places = new Places(root, maps)
  try {
    await translate(root, source, folder, maps)
    const declared = checked(await run(join(folder, 'index.js'), specs, places), specs)
    const locating = <T>(action: () => T): T => {
      try {
        return action()
      } catch (error) {
        throw places.located(error, declared)
      }
    }
    return { ...declared, locating }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes every module of a folder as JavaScript. */
async function translate(root: string, source: string, folder: string, maps: SourceMaps): Promise<void> {
  const options = { module: ModuleKind.ESNext, target: ScriptTarget.ES2023, sourceMap: true }
  for (const file of await readdir(source, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || !file.name.endsWith('.ts') || file.name.endsWith('.d.ts')) continue
    const path = join(file.parentPath, file.name)
    const out = join(folder, relative(source, path).replace(/\.ts$/, '.js'))
    await mkdir(dirname(out), { recursive: true })
    const { outputText, sourceMapText } = ts.transpileModule(await readFile(path, 'utf8'), {
      compilerOptions: options,
      fileName: path,
    })
    if (sourceMapText !== undefined) maps.add(out, path, sourceMapText)
    await writeFile(out, outputText.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'))
  }
  // A package of its own would no longer be inside the project's, which may be heddle itself.
  const manifest = join(root, 'package.json')
  const isModule = existsSync(manifest) && /"type"\s*:\s*"module"/.test(await readFile(manifest, 'utf8'))
  if (!isModule) await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

async function run(entry: string, specs: string, places: Places): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(entry).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    const located = places.located(error)
    if (located instanceof Error && located.name === 'HeddleError') throw located
    const reason = error instanceof Error ? error.message : String(error)
    const thrown = places.thrownAt(error instanceof Error ? error.stack : undefined)
    const at = thrown === undefined ? '' : `${thrown.place.file}:${thrown.place.line}:${thrown.place.column}: `
    const frame = thrown === undefined ? '' : `\n${thrown.frame}`
    throw usageError('specs.run', `${at}${specs}/index.ts cannot be imported: ${reason.split('\n')[0]}${frame}`, {
      hint: 'it is run for its graphs and plans: it may import heddle and the modules below its folder',
      cause: error,
      ...(thrown === undefined ? {} : { places: [thrown.place] }),
    })
  }
}

type Exported = Omit<Declarations, 'locating'>

function checked({ graphs = {}, plans = [] }: Readonly<Record<string, unknown>>, specs: string): Exported {
  if (isGraphs(graphs) && isPlans(plans)) return { graphs: byName(graphs, specs), plans }
  throw usageError('specs.run', `${specs}/index.ts exports graphs or plans that are none`, {
    hint: 'export const graphs = { [layer.name]: layer }; export const plans = [myPlan]',
  })
}

/** @throws usage `specs.graphs` for two graphs of one name */
function byName(graphs: Declarations['graphs'], specs: string): Declarations['graphs'] {
  const found = new Map<string, GraphDecl>()
  for (const decl of Object.values(graphs)) {
    const other = found.get(decl.name)
    if (other !== undefined && other !== decl) {
      throw usageError('specs.graphs', `${specs}/index.ts exports two graphs called ${decl.name}`, {
        hint: 'names are unique in the project: give each graph a name of its own',
      })
    }
    found.set(decl.name, decl)
  }
  return Object.fromEntries(found)
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

const isGraphs = (value: unknown): value is Declarations['graphs'] =>
  isObject(value) && Object.values(value).every((decl) => isObject(decl) && isObject(decl.graph) && Array.isArray(decl.nodes))

const isPlans = (value: unknown): value is Declarations['plans'] =>
  Array.isArray(value) && value.every((decl) => isObject(decl) && typeof decl.graph === 'string' && Array.isArray(decl.groups))
