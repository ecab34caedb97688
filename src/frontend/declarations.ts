/**
 * A project's graphs and plans. Op bodies are compiled without being run; graphs and plans are built by running the module that
 * declares them: `index.ts` of the spec folder, whose exports `graphs` and `plans` count. The modules are translated into a folder
 * of their own below `.heddle`, so that `heddle` means the project's own copy, and imported from there.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { ModuleKind, ScriptTarget, ts } from 'ts-morph'
import { usageError } from '../errors.js'
import type { GraphDecl } from '../lang/graph.js'
import type { PlanDecl } from '../lang/plan.js'

export interface Declarations {
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly plans: readonly PlanDecl[]
}

/**
 * What the spec folder's `index.ts` exports; nothing where there is none.
 * @throws usage `specs.run` for a module that cannot be imported or exports something else under these names; what declaring throws
 */
export async function readDeclarations(root: string, specs = 'specs'): Promise<Declarations> {
  const source = resolve(root, specs)
  if (!existsSync(join(source, 'index.ts'))) return { graphs: {}, plans: [] }
  await mkdir(join(root, '.heddle'), { recursive: true })
  const folder = await mkdtemp(join(root, '.heddle', 'specs-'))
  try {
    await translate(root, source, folder)
    return checked(await run(join(folder, 'index.js'), specs), specs)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Writes every module of a folder as JavaScript. */
export async function translate(root: string, source: string, folder: string): Promise<void> {
  const options = { module: ModuleKind.ESNext, target: ScriptTarget.ES2023 }
  for (const file of await readdir(source, { recursive: true, withFileTypes: true })) {
    if (!file.isFile() || !file.name.endsWith('.ts') || file.name.endsWith('.d.ts')) continue
    const path = join(file.parentPath, file.name)
    const out = join(folder, relative(source, path).replace(/\.ts$/, '.js'))
    await mkdir(dirname(out), { recursive: true })
    await writeFile(
      out,
      ts.transpileModule(await readFile(path, 'utf8'), { compilerOptions: options, fileName: path }).outputText,
    )
  }
  // A package of its own would no longer be inside the project's, which may be heddle itself.
  const manifest = join(root, 'package.json')
  const isModule = existsSync(manifest) && /"type"\s*:\s*"module"/.test(await readFile(manifest, 'utf8'))
  if (!isModule) await writeFile(join(folder, 'package.json'), '{ "type": "module" }\n')
}

async function run(entry: string, specs: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(entry).href)) as Readonly<Record<string, unknown>>
  } catch (error) {
    // Refusals of the language come from the project's own copy of it, so that they are known by name only.
    if (error instanceof Error && error.name === 'HeddleError') throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw usageError('specs.run', `${specs}/index.ts cannot be imported: ${reason.split('\n')[0]}`, {
      hint: 'it is run for its graphs and plans: it may import heddle and the modules below its folder',
    })
  }
}

function checked({ graphs = {}, plans = [] }: Readonly<Record<string, unknown>>, specs: string): Declarations {
  if (isGraphs(graphs) && isPlans(plans)) return { graphs, plans }
  throw usageError('specs.run', `${specs}/index.ts exports graphs or plans that are none`, {
    hint: 'export const graphs = { [layer.name]: layer }; export const plans = [myPlan]',
  })
}

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> => typeof value === 'object' && value !== null

const isGraphs = (value: unknown): value is Declarations['graphs'] =>
  isObject(value) && Object.values(value).every((decl) => isObject(decl) && isObject(decl.graph) && Array.isArray(decl.nodes))

const isPlans = (value: unknown): value is Declarations['plans'] =>
  Array.isArray(value) && value.every((decl) => isObject(decl) && typeof decl.graph === 'string' && Array.isArray(decl.groups))
