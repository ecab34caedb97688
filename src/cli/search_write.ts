/** Writes found plans as modules of the project's specs. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import type { FoundPlan } from '../bench/search/run.js'
import { usageError } from '../errors.js'
import type { ExportedGraph } from '../frontend/read/exported_graph.js'
import { namedFile } from '../output.js'
import { nameIn } from '../path_names.js'
import { planSource } from '../search/plan_source.js'
import { shapeName } from '../search/problem.js'
import { writing } from '../writing.js'
import type { CliContext } from './context.js'
import type { SearchVerbOptions, SearchVerbResult } from './search_options.js'

/** Last line of a found plan: the digest of the lines before it. */
const signature = /\n\/\/ Written by heddle search, unchanged while the digest is (\S+)\n$/
const digestOf = (text: string): string => createHash('sha256').update(text).digest('base64url').slice(0, 22)
const signed = (text: string): string => `${text}\n// Written by heddle search, unchanged while the digest is ${digestOf(text)}\n`

/** True if the text is a search's, and nobody has edited it. */
function isUnedited(text: string): boolean {
  const [end, digest] = signature.exec(text) ?? []
  return end !== undefined && digestOf(text.slice(0, -end.length)) === digest
}

type Where = Pick<SearchVerbOptions, 'specs' | 'out' | 'of'>

/** Name of a plan, that of its graph after it if the plan is one of a program's. */
const ownName = (plan: string, graph: string, { of }: Where): string => (of === undefined ? plan : `${plan}-${graph}`)

const specsOf = (root: string, { specs }: Where): string => resolve(root, specs ?? 'specs')

/** The file of a plan; `--out` names that of the first. */
function fileOf(root: string, where: Where, name: string, at: number): string {
  if (at === 0 && where.out !== undefined) return resolve(root, where.out)
  return join(specsOf(root, where), 'plans', `${name.replaceAll('-', '_')}.ts`)
}

/** @throws usage `search.out` for a file that a search did not write, or that was edited since */
function expectReplaceable(root: string, file: string): void {
  if (!existsSync(file) || isUnedited(readFileSync(file, 'utf8'))) return
  const hint = 'name another with --plan or --out'
  throw usageError('search.out', `${nameIn(root, file)} was edited, or is not a plan that a search wrote`, { hint })
}

/** Checks, before anything is measured, that the plan can be written. @throws as `expectReplaceable` */
export const expectPlanFile = (root: string, graph: string, options: Where & Pick<SearchVerbOptions, 'plan'>): void =>
  expectReplaceable(root, fileOf(root, options, ownName(options.plan, graph, options), 0))

/** Writes the plans, where the files do not hold them already. @throws as `expectReplaceable` */
export async function writePlans(
  found: Omit<SearchVerbResult, 'files'>,
  options: Where,
  { root }: Pick<CliContext, 'root'>,
): Promise<readonly string[]> {
  const specs = specsOf(root, options)
  const { exportedGraph } = await import('../frontend/read/exported_graph.js')
  const declared = exportedGraph(specs, found.graph)
  const files = found.plans.map((each, at) => ({
    each,
    file: fileOf(root, options, ownName(each.plan.name, found.graph, options), at),
  }))
  for (const { file } of files) expectReplaceable(root, file)
  for (const { each, file } of files) {
    const text = signed(sourceOf(found, each, declared, file, ownName(each.plan.name, found.graph, options)))
    await writing(file, () => mkdir(dirname(file), { recursive: true }))
    await (await namedFile(file))(text)
  }
  return files.map(({ file }) => nameIn(root, file))
}

/** Specifier that imports a module from a file. */
function specifierOf(module: string, file: string): string {
  const path = nameIn(dirname(file), module).replace(/\.ts$/, '.js')
  return path.startsWith('.') ? path : `./${path}`
}

function sourceOf(
  found: Omit<SearchVerbResult, 'files'>,
  each: FoundPlan,
  declared: ExportedGraph | undefined,
  file: string,
  name: string,
): string {
  const { device, dtype, result, shapes } = found
  const { plan, reasons, only, most } = each
  const exported = name.replace(/[-._]+(\w)/g, (_, letter: string) => letter.toUpperCase())
  const names = shapes.map(shapeName)
  const best = [
    ...(only === undefined ? [] : [`The best at ${only.map((shape) => names[shape]).join(' and ')}.`]),
    ...(most === undefined
      ? []
      : [`It runs in place of ${found.plans[0]?.plan.name} at ${most === 1 ? 'one row' : `at most ${most} rows`}.`]),
  ]
  const graph = declared && { name: declared.name, from: specifierOf(declared.file, file) }
  return planSource({
    ...{ plan, exported, reasons, shapes: names, graph },
    head: [
      `Found by \`heddle search\` on ${device.name}, ${dtype}, with ${result.measured} of ${result.launches} launches measured.`,
      ...best,
      'An ordinary plan: edit it freely.',
    ],
  })
}
