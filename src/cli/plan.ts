/**
 * `heddle plan`: what a fusion plan makes of a graph, and what that costs by the model of src/fuse/search/cost.ts. Nothing is run: the
 * numbers are predictions for any shape and device the model knows, to be held against `heddle bench`.
 */
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { benchConfig } from '../bench/synthetic.js'
import { usageError } from '../errors.js'
import { costDevice, costDevices, type Pricing, priceDims } from '../fuse/search/cost.js'
import { diffReports, explainPlan, type PlanDiff, type PlanReport } from '../fuse/search/explain.js'
import { resolvePlans } from '../fuse/search/resolve.js'
import type { PlanDecl } from '../lang/plan.js'
import type { BertConfig } from '../models/files/config.js'
import { shapesOf } from './bench.js'
import { type CliContext, json } from './context.js'
import { dtypes } from './pipeline.js'
import { describePlans, diffText, type PlanSetting, showText } from './plan_text.js'

export interface PlanOptions extends PlanSetting {
  /** Name of the graph. */
  readonly graph: string
  readonly dtype: (typeof dtypes)[number]
  readonly device: (typeof costDevices)[number]
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
}

/** Plans by name, the reference first. */
const namesOf = (plans: readonly PlanDecl[]): readonly string[] => [...new Set(['unfused', ...plans.map(({ name }) => name)])]

/** Plans with groups for one graph. Where a plan says nothing of a graph, the graph stays as it is. */
function planFor(name: string, graph: string, known: readonly string[], resolved: readonly PlanDecl[]): PlanDecl {
  if (!known.includes(name)) throw usageError('plan.unknown', `unknown plan ${name}`, { hint: `known: ${known.join(', ')}` })
  return resolved.find((plan) => plan.name === name && plan.graph === graph) ?? { name, graph, groups: [] }
}

async function readCompiled(root: string, specs = 'specs') {
  const { readSpecsOrThrow } = await import('../frontend/index.js')
  const { kernels, standard, layouts } = readSpecsOrThrow({ root, specs: [specs] })
  return {
    ops: new Map([...kernels, ...standard].map((kernel) => [kernel.name, kernel])),
    layouts: new Map(layouts.map((layout) => [layout.name, layout])),
  }
}

async function readPlans(root: string, specs = 'specs') {
  const { readDeclarations } = await import('../frontend/index.js')
  return readDeclarations(root, specs)
}

/** Dimensions of the shipped encoder graphs: full sequences, so that packed rows are as many as padded ones; and sizes of a BERT. */
const ofShape = ({ batch, seq }: NonNullable<PlanOptions['shape']>): Pricing['dims'] => ({ b: batch, s: seq, t: batch * seq })

function ofConfig(config: BertConfig): Pricing['dims'] {
  const { heads: h, headDim: d, inner: i, vocab: v, tokenTypes: u, positions: p, labels } = config
  return { h, d, i, v, u, p, c: Math.max(labels.length, 1) }
}

/** What is asked for instead of the sizes that the graph is usually run with. */
async function givenDims({ shape, config, dims }: PlanOptions, root: string): Promise<Pricing['dims']> {
  const sizes = config === undefined ? {} : ofConfig(await benchConfig(config, root))
  return { ...(shape === undefined ? {} : ofShape(shape)), ...sizes, ...dims }
}

/** Reports of the named plans, in order. */
async function explain(names: readonly string[], options: PlanOptions, { root }: CliContext): Promise<readonly PlanReport[]> {
  const { graphs, plans } = await readPlans(root, options.specs)
  const found = Object.hasOwn(graphs, options.graph) ? graphs[options.graph] : undefined
  if (found === undefined) {
    throw usageError('plan.graph', `there is no graph ${options.graph}`, { hint: `known: ${Object.keys(graphs).join(', ')}` })
  }
  const known = namesOf(plans)
  for (const name of names) planFor(name, options.graph, known, [])
  const given = await givenDims(options, root)
  const { ops, layouts } = await readCompiled(root, options.specs)
  const ofGraph = plans.filter(({ graph }) => graph === options.graph)
  const asked = ofGraph.filter(({ name }) => names.includes(name))
  // A search needs the written plans beside it; written plans need no search.
  const resolved = asked.some(({ auto }) => auto !== undefined) ? resolvePlans(ofGraph, graphs, ops, layouts) : asked
  return names.map((name) => {
    const plan = planFor(name, options.graph, known, resolved)
    const dims = priceDims(found.graph, plan.packed, given)
    return explainPlan(found.graph, plan, ops, { device: costDevice(options.device), dims, dtype: options.dtype }, layouts)
  })
}

/** @throws usage `plan.unknown`, `plan.graph`, `bench.config`, and what the front end throws */
export async function showPlan(name: string, options: PlanOptions, context: CliContext): Promise<PlanReport> {
  const [report] = await explain([name], options, context)
  if (report === undefined) throw new Error('internal: a plan without a report')
  return report
}

/** @throws as `showPlan` */
export async function diffPlans(first: string, second: string, options: PlanOptions, context: CliContext): Promise<PlanDiff> {
  const [a, b] = await explain([first, second], options, context)
  if (a === undefined || b === undefined) throw new Error('internal: a plan without a report')
  return diffReports(a, b)
}

/** `b=8,e=1024` */
const dimensions = (text: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    text.split(',').map((part) => {
      const [, name, extent] = /^([A-Za-z]\w*)=([1-9]\d*)$/.exec(part) ?? []
      if (name === undefined) throw new InvalidArgumentError('Expected dimensions, such as b=8,e=1024.')
      return [name, Number(extent)]
    }),
  )

const oneShape = (text: string): NonNullable<PlanOptions['shape']> => {
  const [shape, ...more] = shapesOf(text)
  if (shape === undefined || more.length > 0) throw new InvalidArgumentError('Expected one shape, such as 32x128.')
  return shape
}

const options = () => ({
  graph: new Option('--graph <name>', 'graph the plan is for').default('encoder_layer_gelu'),
  shape: new Option('--shape <shape>', 'batch x seq, full lengths; default: what the graph is usually run with').argParser(
    oneShape,
  ),
  dtype: new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f16' as const),
  device: new Option('--device <device>', 'device of the cost model').choices(costDevices).default('h200' as const),
  config: new Option('--config <name>', 'bert-base, bert-large or a model folder; default: what the graph is usually run with'),
  dims: new Option('--dims <list>', 'dimensions of any graph by name, such as b=8,e=1024').argParser(dimensions),
  specs: new Option('--specs <dir>', 'folder of the spec modules').default('specs'),
  json: new Option('--json', 'print the report as JSON'),
})

const showCommand = (context: () => CliContext) => {
  const { graph, shape, dtype, device, config, dims, specs, json: asJson } = options()
  return new Command('show')
    .description('steps of a plan, what they cost, and why the rest is not fused')
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
  const { graph, shape, dtype, device, config, dims, specs, json: asJson } = options()
  return new Command('diff')
    .description('what two plans group differently, and what that costs')
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

const listCommand = (context: () => CliContext) =>
  new Command('list')
    .description('names of the plans')
    .option('--json', 'print the plans as JSON')
    .addOption(options().specs)
    .action(async (given) => {
      const { plans } = await readPlans(context().root, given.specs)
      const about = describePlans(namesOf(plans), plans)
      const width = Math.max(...about.map(({ name }) => name.length)) + 2
      context().out(given.json ? json(about) : `${about.map(({ name, text }) => `${name.padEnd(width)}${text}`).join('\n')}\n`)
    })

export const planCommand = (context: () => CliContext) =>
  new Command('plan')
    .description('show what fusion plans make of a graph')
    .addCommand(showCommand(context))
    .addCommand(diffCommand(context))
    .addCommand(listCommand(context))
