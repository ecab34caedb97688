/**
 * Search of a program: of each of its graphs, at the sizes that the program has there. A plan is for a graph, so one is written per graph, all under
 * one name; the program runs under it.
 */
import { usageError } from '../errors.js'
import type { Program } from '../ir/program.js'
import { evaluateExtent } from '../ir/shape.js'
import { knownHint } from '../nearest.js'
import type { CliContext } from './context.js'
import type { SearchVerbOptions } from './search_options.js'

type Dims = Readonly<Record<string, number>>

/** A graph of a program, with its sizes wherever the program applies it. */
export interface GraphInProgram {
  readonly graph: string
  readonly shapes: readonly Dims[]
}

/**
 * The graphs of a program in which there is something to fuse, the largest first.
 * @param given sizes that differ from the usual ones, for each shape @throws usage `search.dims` for an unknown dimension
 */
export function graphsIn({ name, nodes, dims }: Program, given: readonly Dims[]): readonly GraphInProgram[] {
  for (const dim of given.flatMap((shape) => Object.keys(shape)))
    if (!Object.hasOwn(dims, dim))
      throw usageError('search.dims', `program ${name} has no dimension ${dim}`, { hint: knownHint(dim, Object.keys(dims)) })
  const sizes = (given.length === 0 ? [{}] : given).map((shape) => ({ ...dims, ...shape }))
  const found = new Map<string, { count: number; readonly shapes: Map<string, Dims> }>()
  for (const node of nodes) {
    if (node.kind !== 'application') continue
    const count = node.graph.nodes.filter(({ kind }) => kind !== 'view').length
    if (count < 2) continue
    const { shapes } = found.get(node.graph.name) ?? { shapes: new Map<string, Dims>() }
    for (const size of sizes) {
      const own = Object.entries(node.dims).map(([dim, extent]) => [dim, evaluateExtent(extent, size)] as const)
      shapes.set(JSON.stringify(own), Object.fromEntries(own))
    }
    found.set(node.graph.name, { count, shapes })
  }
  const graphs = [...found].map(([graph, { count, shapes }]) => ({ graph, count, shapes: [...shapes.values()] }))
  return graphs.sort((a, b) => b.count - a.count).map(({ graph, shapes }) => ({ graph, shapes }))
}

/**
 * Searches the graphs of a program one after the other, each in its share of the time that is left.
 * @param search searches one graph
 * @throws usage `search.program` for options that are for one graph, `search.dims`; as `search`
 */
export async function searchGraphs<Result>(
  program: Program,
  options: SearchVerbOptions,
  { log, signal }: Pick<CliContext, 'log' | 'signal'>,
  search: (graph: string, options: SearchVerbOptions) => Promise<Result>,
): Promise<readonly Result[]> {
  const single = (['out', 'packed'] as const).find((option) => options[option] !== undefined)
  if (single !== undefined)
    throw usageError('search.program', `${program.name} is a program: --${single} is for one graph`, {
      hint: `search its graphs one by one: ${graphsIn(program, [])
        .map(({ graph }) => graph)
        .join(', ')}`,
    })
  const graphs = graphsIn(program, options.shape ?? [])
  const end = performance.now() + options.minutes * 60_000
  const results: Result[] = []
  for (const [at, { graph, shapes }] of graphs.entries()) {
    signal.throwIfAborted()
    log(`graph ${at + 1} of ${graphs.length}: ${graph}\n`)
    const minutes = Math.max(0, end - performance.now()) / 60_000 / (graphs.length - at)
    results.push(await search(graph, { ...options, shape: shapes, minutes, of: program.name }))
  }
  return results
}
