/**
 * `heddle search GRAPH`: finds a fusion plan by measuring groups of the graph's nodes on a device, and writes it as TypeScript. What was measured is
 * stored beside the specs, so that a search goes on where it was cut, and a repeated one takes seconds.
 */
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { costOf } from '../bench/facts/cost.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import type { SearchStage } from '../bench/search/clock.js'
import { runSearch } from '../bench/search/run.js'
import type { Phase } from '../bench/search/run_types.js'
import { deviceName } from '../bench/target/baseline.js'
import { costDevice } from '../cost/device.js'
import { priceDims } from '../cost/step.js'
import { environmentError, usageError } from '../errors.js'
import { readText } from '../files.js'
import type { PlannedKernel } from '../fuse/planned_kernel.js'
import type { Graph } from '../ir/graph.js'
import type { PlanDecl } from '../lang/plan.js'
import { knownHint } from '../nearest.js'
import { namedFile } from '../output.js'
import { compiledDevice } from '../runtime/device_name.js'
import { openNamed } from '../runtime/open.js'
import { problemOf } from '../search/problem.js'
import { emptyRecord, formatRecord, parseRecord, type SearchRecord } from '../search/record.js'
import { type CliContext, json } from './context.js'
import { bare } from './explained.js'
import { dimensions, minutesOf, namesByName, positive } from './options.js'
import { compiledDeviceOption, dtypes, onOption, openOptions } from './pipeline.js'
import { expectDims } from './plan_dims.js'
import type { SearchVerbOptions, SearchVerbResult } from './search_options.js'
import { type Read, type SearchPath, searchPath } from './search_path.js'
import { searchGraphs } from './search_program.js'
import { searchProgress } from './search_progress.js'
import { dataOf, resultText } from './search_text.js'
import { expectPlanFile, writePlans } from './search_write.js'
import { readTuning } from './tuning_file.js'

type Dims = Readonly<Record<string, number>>

/** Shares of the time after which no further group, and no further whole plan, is measured; the rest compares and checks what was found. */
const shares: Readonly<Record<Phase, number>> = { groups: 0.5, plans: 0.85 }

/**
 * @throws usage `search.*`, `graph.dim`, `plan.unknown`, `output.*` and errors of the front end; environment for a missing device or compiler; the
 * signal's reason, with everything saved that was measured
 */
export async function search(name: string, options: SearchVerbOptions, context: CliContext): Promise<SearchVerbResult> {
  const { root, signal, log } = context
  const path = await searchPath(root, options.specs)
  const graph = graphOf(path, name)
  const read = await path.read(graph)
  if (read === undefined)
    throw environmentError('portable.frontend', 'the portable bundle cannot search plans', { hint: 'use the npm package' })
  const shapes = (options.shape ?? [{}]).map((dims) => priceDims(graph, options.packed, dims))
  for (const dims of shapes) expectDims(graph, dims)
  const incumbent = incumbentOf(path, name, options)
  const beside = (options.beside ?? []).map((plan) => planNamed(path, name, plan))
  expectPlanFile(root, name, options)
  const file = resolve(root, options.record ?? join(options.specs ?? 'specs', 'search.json'))
  const [record, write] = [await readRecord(file), await namedFile(file)]
  if (options.device !== undefined) compiledDevice(options.device)
  const device = await openNamed(options.device, { ...openOptions(context, { on: options.on, who: 'search' }), compiled: true })
  const start = performance.now()
  try {
    const info = device.info()
    const cost = costOf(info, await deviceCeilings(device, { onStage: (what) => log(`${what}\n`) }), options.dtype)
    const priced = cost ?? costDevice(info.kind === 'cuda' ? 'h200' : 'simt')
    const { dtype, packed } = options
    const given = { ...read, dtype, packed, shapes, device: priced, signal }
    log(`${info.name} (${info.kind}), ${name}, ${options.dtype}${info.kind === 'simt' ? forTrying : ''}\n`)
    const problem = path.locating(() => problemOf(graph, { ...given, onSpace: searchProgress(context).onSpace }))
    const limit = options.minutes * 60_000
    const progress = searchProgress(context, { start, limit: limit * shares.groups, shapes: problem.problem.shapes })
    const outcome = await runSearch({
      stage: await stageOf(device, read, path, options, context, graph),
      ...{ graph, problem, record, incumbent, beside, shapes, name: options.plan, packed: options.packed },
      plans: plansOf(path, name),
      about: { dtype: options.dtype, device: deviceName(info), driver: info.driverVersion },
      known: await kernelsOf(path, options.plan, name, read),
      isOver: (phase) => signal.aborted || performance.now() - start > limit * shares[phase],
      save: async (now) => {
        const text = formatRecord(now)
        if (text !== formatRecord(record)) await write(text)
      },
      ...progress,
    })
    const about = { graph: name, device: info, dtype: options.dtype, shapes, incumbent: incumbent.name, ...outcome }
    const files = outcome.stays ? [] : await writePlans(about, options, context)
    return { ...about, files }
  } finally {
    device.close()
  }
}

const forTrying = ': times of the CPU device are for trying only, and rank no plans of a GPU'

/** @throws usage `search.graph` */
function graphOf({ graphs, programs, ours }: SearchPath, name: string): Graph {
  const found = Object.hasOwn(graphs, name) ? graphs[name]?.graph : undefined
  if (found !== undefined) return found
  const known = [...Object.keys(graphs), ...programs.map((program) => program.name)]
  throw usageError('search.graph', `there is no graph ${name}`, { hint: knownHint(name, known, ours.graphs) })
}

/**
 * Searches each graph of a program, one after the other.
 * @returns undefined if there is no program of the name, or a graph has it @throws usage `search.program`, `search.dims`; as `search`
 */
export async function searchProgram(
  name: string,
  options: SearchVerbOptions,
  context: CliContext,
): Promise<readonly SearchVerbResult[] | undefined> {
  const { graphs, programs } = await searchPath(context.root, options.specs)
  const program = Object.hasOwn(graphs, name) ? undefined : programs.find((each) => each.name === name)
  return program && searchGraphs(program.of(), options, context, (graph, own) => search(graph, own, context))
}

/** The project's plan of the name that is written, else the named one. @throws usage `plan.unknown` */
const incumbentOf = (path: SearchPath, graph: string, { plan, from }: SearchVerbOptions): PlanDecl =>
  plansOf(path, graph).find(({ name }) => name === plan) ?? planNamed(path, graph, from)

const plansOf = ({ plans }: SearchPath, graph: string): readonly PlanDecl[] =>
  plans.filter((each) => each.graph === graph && each.auto === undefined)

/** @throws usage `plan.unknown` */
function planNamed(path: SearchPath, graph: string, plan: string): PlanDecl {
  const own = plansOf(path, graph)
  const found = own.find(({ name }) => name === plan)
  if (found !== undefined) return found
  if (plan === bare) return { name: bare, graph, groups: [] }
  throw usageError('plan.unknown', `unknown plan ${plan} of ${graph}`, {
    hint: knownHint(plan, [bare, ...own.map(({ name }) => name)], []),
  })
}

async function readRecord(file: string): Promise<SearchRecord> {
  if (!existsSync(file)) return emptyRecord
  return parseRecord(await readText(file, { code: 'search.record', hint: 'name another with --record' }), file)
}

async function stageOf(
  device: SearchStage['device'],
  { ops, layouts }: Read,
  path: SearchPath,
  { dtype, repeats, specs }: SearchVerbOptions,
  context: CliContext,
  graph: Graph,
): Promise<SearchStage> {
  const { root, signal } = context
  const used = new Set(graph.nodes.flatMap((node) => (node.kind === 'op' ? [node.op] : [])))
  if (![...used].every((op) => ops.has(op))) throw new Error(`internal: ops of ${graph.name} were not read`)
  const tuning = await readTuning({ root, specs, file: undefined })
  return { root, device, ops, byName: layouts, layouts: await path.layouts(), tuning, dtype, repeats, signal }
}

/** Kernels that the project's other plans derive, whose names a found plan may use for the same kernel only. */
async function kernelsOf(
  { plans, ours, graphs, locating }: SearchPath,
  name: string,
  graph: string,
  { ops, layouts }: Read,
): Promise<ReadonlyMap<string, PlannedKernel>> {
  const { applyPlan } = await import('../fuse/apply.js')
  const own = new Set(ours.plans.map((plan) => `${plan.name} ${plan.graph}`))
  const others = plans.filter((plan) => own.has(`${plan.name} ${plan.graph}`) && !(plan.name === name && plan.graph === graph))
  const kernels = new Map<string, PlannedKernel>()
  for (const plan of others) {
    const of = graphs[plan.graph]?.graph
    const isRead = of?.nodes.every((node) => node.kind !== 'op' || ops.has(node.op)) ?? false
    if (of === undefined || !isRead || plan.auto !== undefined) continue
    const planned = locating(() => applyPlan(of, plan, ops, layouts))
    for (const [kernel, derived] of [...planned.kernels, ...planned.templates]) kernels.set(kernel, derived)
  }
  return kernels
}

const shapesOf = (text: string, before: readonly Dims[] = []): readonly Dims[] => [...before, dimensions(text)]

export const searchCommand = (context: () => CliContext) =>
  new Command('search')
    .description('find a fusion plan by measuring groups of nodes, and write it as TypeScript')
    .argument('<name>', 'a graph or program of the project, or a shipped one; of a program, a plan of each of its graphs')
    .addOption(
      new Option(
        '--shape <dims>',
        'dimensions by name, such as m=512,n=768; repeat for a plan that is good at several shapes; default: usual sizes',
      ).argParser(shapesOf),
    )
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const))
    .addOption(compiledDeviceOption())
    .addOption(onOption())
    .addOption(
      new Option(
        '--minutes <count>',
        'time limit of measuring; half of it measures groups, and a later search goes on; kernels of the found plan are checked after it',
      )
        .argParser(minutesOf)
        .default(8),
    )
    .option('--from <plan>', 'the plan to beat, if there is none of the name of --plan', bare)
    .addOption(
      new Option('--beside <plans>', 'plans to time beside the found one, such as one by hand, separated by commas').argParser(
        (text) => text.split(','),
      ),
    )
    .option('--plan <name>', 'name of the plan', 'found')
    .addOption(
      new Option(
        '--packed <names>',
        'removes padding: dimensions by role, such as batch=b,seq=s,tokens=t,lengths=lengths',
      ).argParser(packedOf),
    )
    .option('--repeats <count>', 'timed replays of each group and plan', positive, 20)
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--out <file>', 'file of the plan; default: plans/NAME.ts in the specs')
    .option('--record <file>', 'file of measured groups; default: search.json beside the specs')
    .option('--json', 'print the result as JSON')
    .action(async (name, options) => {
      const all = await searchProgram(name, options, context())
      if (all === undefined) {
        const result = await search(name, options, context())
        context().out(options.json ? json(dataOf(result)) : resultText(result))
      } else
        context().out(options.json ? json(all.map(dataOf)) : all.map((each) => `${each.graph}\n${resultText(each)}`).join('\n'))
    })

/** @throws usage of the command line for a missing part */
const packedOf = (text: string): NonNullable<PlanDecl['packed']> => {
  const { batch, seq, tokens, lengths } = namesByName(text, ['batch', 'seq', 'tokens'], ['lengths'])
  return { batch: batch ?? '', seq: seq ?? '', tokens: tokens ?? '', ...(lengths === undefined ? {} : { lengths }) }
}
