/**
 * `heddle plan`: shows a graph under a fusion plan, with costs by the model of src/cost/step.ts. Nothing is run: the numbers are
 * predictions for any shape and device that the model knows, to be compared with `heddle bench`.
 */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { costOf } from '../bench/facts/cost.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import { type CostDevice, costDevice, costDevices } from '../cost/device.js'
import { priceDims } from '../cost/step.js'
import { environmentError, usageError } from '../errors.js'
import type { PlanDecl } from '../lang/plan.js'
import { knownHint } from '../nearest.js'
import { openDevice } from '../runtime/device.js'
import { defaultDevice, prepareNative } from '../runtime/open.js'
import { diffReports, type PlanDiff, type PlanReport } from '../search/explain.js'
import { type CliContext, json } from './context.js'
import { bare, explainer } from './explained.js'
import { dtypes, openOptions } from './opening.js'
import { dimensions } from './options.js'
import { expectDims, givenDims } from './plan_dims.js'
import { describePlans, diffText, listText, type PlanLine, type PlanSetting, showText } from './plan_text.js'
import { searchPath } from './search_path.js'

export interface PlanOptions extends PlanSetting {
  /** Name of the graph; default: the graph of the plan. */
  readonly graph?: string | undefined
  readonly dtype: (typeof dtypes)[number]
  /** A device of the cost model, or this machine's device by its measured limits. */
  readonly device: (typeof costDevices)[number] | typeof here
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
}

const here = 'here'

/** @throws usage `cost.device` if this machine's device has unknown limits; environment for a missing device */
async function pricedDevice({ device: name, dtype }: PlanOptions, context: CliContext): Promise<CostDevice> {
  if (name !== here) return costDevice(name)
  await prepareNative(undefined, openOptions(context))
  const device = openDevice(defaultDevice())
  try {
    const ceilings = await deviceCeilings(device, { onStage: (what) => context.log(`${what}\n`) })
    const found = costOf(device.info(), ceilings, dtype)
    if (found !== undefined) return found
    throw usageError('cost.device', `the ${dtype} throughput of ${device.info().name} is unknown`, {
      hint: `name a device of the model: ${costDevices.join(', ')}`,
    })
  } finally {
    device.close()
  }
}

/** Names of plans, the reference first. */
const namesOf = (plans: readonly PlanDecl[]): readonly string[] => [...new Set([bare, ...plans.map(({ name }) => name)])]

/** @throws usage `plan.unknown` for an unknown name */
function expectKnown(names: readonly string[], plans: readonly PlanDecl[], ours: readonly PlanDecl[]): void {
  const known = namesOf(plans)
  const unknown = names.find((name) => !known.includes(name))
  if (unknown === undefined) return
  const own = ours.map(({ name }) => name)
  throw usageError('plan.unknown', `unknown plan ${unknown}`, { hint: knownHint(unknown, known, own) })
}

/** The given graph, else the graph of the first of the plans, else the only graph. @throws usage `plan.graph` */
function graphName(
  { graph }: PlanOptions,
  names: readonly string[],
  plans: readonly PlanDecl[],
  known: readonly string[],
  own: readonly string[],
): string {
  const usual = plans.find(({ name }) => names.includes(name)) ?? plans[0]
  const chosen = graph ?? usual?.graph ?? (known.length === 1 ? known[0] : undefined)
  const hint = known.length === 0 ? 'there are no graphs: specs export them' : knownHint(chosen ?? '', known, own)
  if (chosen === undefined) throw usageError('plan.graph', 'no plan determines the graph: give --graph', { hint })
  if (!known.includes(chosen)) throw usageError('plan.graph', `there is no graph ${chosen}`, { hint })
  return chosen
}

/** Reports of the named plans, in order. @throws as `showPlan` */
export async function explainPlans(
  names: readonly string[],
  options: PlanOptions,
  context: CliContext,
): Promise<readonly PlanReport[]> {
  const { root } = context
  const path = await searchPath(root, options.specs)
  const { graphs, plans, ours } = path
  expectKnown(names, plans, ours.plans)
  const asked = graphName(options, names, plans, Object.keys(graphs), ours.graphs)
  const graph = graphs[asked]?.graph
  if (graph === undefined) throw new Error(`internal: no graph ${asked}`)
  const read = await path.read(graph)
  if (read === undefined)
    throw environmentError('portable.frontend', 'the portable bundle cannot predict costs of plans', {
      hint: 'use the npm package',
    })
  const wanted = plans.filter((plan) => plan.graph === asked && names.includes(plan.name))
  const given = await givenDims(
    options,
    graph,
    wanted.flatMap(({ packed }) => packed?.tokens ?? []),
    root,
  )
  expectDims(graph, priceDims(graph, undefined, given))
  const device = await pricedDevice(options, context)
  const explain = explainer(path, graph, read, names)
  return names.map((name) => explain(name, { device, dims: given, dtype: options.dtype }))
}

/** @throws usage `plan.unknown`, `plan.graph`, `bench.config`, and errors of the front end */
export async function showPlan(name: string, options: PlanOptions, context: CliContext): Promise<PlanReport> {
  const [report] = await explainPlans([name], options, context)
  if (report === undefined) throw new Error('internal: a plan without a report')
  return report
}

/** @throws as `showPlan` */
export async function diffPlans(first: string, second: string, options: PlanOptions, context: CliContext): Promise<PlanDiff> {
  const [a, b] = await explainPlans([first, second], options, context)
  if (a === undefined || b === undefined) throw new Error('internal: a plan without a report')
  return diffReports(a, b)
}

const parseShape = (text: string): readonly number[] => {
  if (!/^[1-9]\d*(x[1-9]\d*)*$/.test(text)) throw new InvalidArgumentError('Expected one shape, such as 32x128.')
  return text.split('x').map(Number)
}

export const planOptions = () => ({
  graph: new Option('--graph <name>', 'a graph; default: the first graph of the plan'),
  shape: new Option(
    '--shape <shape>',
    'extents of the first dimensions, such as 32x128; default: usual sizes of the graph',
  ).argParser(parseShape),
  dtype: new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const),
  device: new Option(
    '--device <device>',
    'device of the cost model, or `here`: the device of this machine, by its measured limits',
  )
    .choices([...costDevices, here] as const)
    .default('h200' as const),
  config: new Option(
    '--config <name>',
    "bert-base, bert-large or a model folder, for a BERT's graphs; default: usual sizes of the graph",
  ),
  dims: new Option('--dim, --dims <list>', 'dimensions by name, such as m=512,n=768; may be repeated').argParser(dimensions),
  specs: new Option('--specs <dir>', 'folder of the spec modules').default('specs'),
  json: new Option('--json', 'print the report as JSON'),
})

const showCommand = (context: () => CliContext) => {
  const { graph, shape, dtype, device, config, dims, specs, json: asJson } = planOptions()
  return new Command('show')
    .description('show steps of a plan with their costs, and why the rest is not fused')
    .argument('<plan>', 'a plan, see `heddle plan list`')
    .addOption(graph)
    .addOption(shape)
    .addOption(dtype)
    .addOption(device)
    .addOption(config)
    .addOption(dims)
    .addOption(specs)
    .addOption(asJson)
    .action(async (name, given) => {
      const report = await showPlan(name, given, context())
      context().out(given.json ? json(report) : showText(report, given))
    })
}

const diffCommand = (context: () => CliContext) => {
  const { graph, shape, dtype, device, config, dims, specs, json: asJson } = planOptions()
  return new Command('diff')
    .description('compare the groups of two plans and their costs')
    .argument('<a>', 'a plan, see `heddle plan list`')
    .argument('<b>', 'another plan')
    .addOption(graph)
    .addOption(shape)
    .addOption(dtype)
    .addOption(device)
    .addOption(config)
    .addOption(dims)
    .addOption(specs)
    .addOption(asJson)
    .action(async (a, b, given) => {
      const diff = await diffPlans(a, b, given, context())
      context().out(given.json ? json(diff) : diffText(diff, given))
    })
}

/** Summary of each plan: the project's first, then the reference, then shipped ones. @throws usage `specs.*`, `frontend.*` */
export async function listPlans(
  { specs }: { readonly specs?: string | undefined },
  { root }: CliContext,
): Promise<readonly PlanLine[]> {
  const { plans, ours } = await searchPath(root, specs)
  return describePlans(plans, ours.plans)
}

const listCommand = (context: () => CliContext) =>
  new Command('list')
    .description('list the plans')
    .option('--json', 'print the plans as JSON')
    .addOption(planOptions().specs)
    .action(async (given) => {
      const about = await listPlans(given, context())
      context().out(given.json ? json(about) : listText(about))
    })

export const planCommand = (context: () => CliContext) =>
  new Command('plan')
    .description('show graphs under fusion plans')
    .addCommand(showCommand(context))
    .addCommand(diffCommand(context))
    .addCommand(listCommand(context))
