/** Writes found plans as modules of the project's specs. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import type { FoundPlan } from '../bench/search/run.js'
import { usageError } from '../errors.js'
import { namedFile } from '../output.js'
import { planSource } from '../search/plan_source.js'
import { shapeName } from '../search/problem.js'
import { writing } from '../writing.js'
import type { CliContext } from './context.js'
import type { SearchVerbOptions, SearchVerbResult } from './search_options.js'

const mark = 'Found by `heddle search`'

/** Writes the plans, where the files do not hold them already. @throws usage `search.out` for a file of somebody else */
export async function writePlans(
  found: Omit<SearchVerbResult, 'files'>,
  options: Pick<SearchVerbOptions, 'specs' | 'out'>,
  { root }: Pick<CliContext, 'root'>,
): Promise<readonly string[]> {
  const specs = resolve(root, options.specs ?? 'specs')
  const files: string[] = []
  for (const [at, each] of found.plans.entries()) {
    const usual = join(specs, 'plans', `${each.plan.name.replaceAll('-', '_')}.ts`)
    const file = at === 0 && options.out !== undefined ? resolve(root, options.out) : usual
    const before = existsSync(file) ? readFileSync(file, 'utf8') : undefined
    if (before !== undefined && !before.includes(mark)) {
      throw usageError('search.out', `${relative(root, file)} is not a plan that a search wrote`, {
        hint: 'name another with --plan or --out',
      })
    }
    const text = sourceOf(found, each, specs, file)
    if (text !== before) {
      await writing(file, () => mkdir(dirname(file), { recursive: true }))
      await (await namedFile(file))(text)
    }
    files.push(relative(root, file))
  }
  return files
}

function sourceOf(found: Omit<SearchVerbResult, 'files'>, each: FoundPlan, specs: string, file: string): string {
  const { device, dtype, result, shapes } = found
  const { plan, reasons, only } = each
  const exported = plan.name.replace(/[-.]+(\w)/g, (_, letter: string) => letter.toUpperCase())
  const names = shapes.map(shapeName)
  const best = only === undefined ? [] : [`The best at ${only.map((shape) => names[shape]).join(' and ')}.`]
  return planSource({
    ...{ plan, exported, reasons, shapes: names, graph: declarationOf(found.graph, specs, file) },
    head: [
      `${mark} on ${device.name}, ${dtype}, with ${result.measured} of ${result.launches} launches measured.`,
      ...best,
      'An ordinary plan: edit it freely.',
    ],
  })
}

/** The module of the project that exports a graph under a name; undefined for a shipped graph, and for one in a list. */
function declarationOf(graph: string, specs: string, file: string): { readonly name: string; readonly from: string } | undefined {
  for (const entry of readdirSync(specs, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith('.ts')) continue
    const path = join(entry.parentPath, entry.name)
    const [, name] = new RegExp(`export const (\\w+) = graph\\(\\s*['"]${graph}['"]`).exec(readFileSync(path, 'utf8')) ?? []
    if (name === undefined) continue
    const from = relative(dirname(file), path).replace(/\.ts$/, '.js')
    return { name, from: from.startsWith('.') ? from : `./${from}` }
  }
  return undefined
}
