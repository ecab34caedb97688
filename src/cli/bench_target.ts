/** `heddle bench NAME`: times any kernel, graph or program of the project, or a shipped one, under its plans, compared with its floor. */
import { resolve } from 'node:path'
import { type Command, Option } from '@commander-js/extra-typings'
import { costOf } from '../bench/facts/cost.js'
import { deviceCeilings } from '../bench/facts/facts.js'
import type { Ceilings } from '../bench/floor.js'
import {
  type Baseline,
  baselineFile,
  baselineOf,
  type Comparison,
  compare,
  deviceName,
  readBaseline,
} from '../bench/target/baseline.js'
import { completed, measure, type TargetTimes } from '../bench/target/measure.js'
import { findEntry, graphSubject, kernelSubject, programSubject, type Subject } from '../bench/target/subject.js'
import { comparisonText, describeTarget, sizeText, targetTable } from '../bench/target/text.js'
import { type CostDevice, costDevice } from '../cost/device.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { knownHint } from '../nearest.js'
import type { NativeDeviceInfo } from '../runtime/native.js'
import { openKernels } from '../runtime/open.js'
import { expectNotSlower, expectSamples, ratioOf, usualRatio } from './bench_options.js'
import { type CliContext, json } from './context.js'
import { bare, explainer } from './explained.js'
import { readResult } from './job_result.js'
import { expectOneMachine, machineLines, machinesOption, machinesTable, onEach } from './machines.js'
import { dimensions, jsonObject, positive } from './options.js'
import { compiledDeviceOption, type DeviceName, dtypes, openOptions, readOption } from './pipeline.js'
import { type SearchPath, searchPath } from './search_path.js'

type Dims = Readonly<Record<string, number>>

export interface BenchTargetOptions {
  /** Dimensions that differ from the default sizes of the graph; each shape is timed. */
  readonly shape?: readonly Dims[] | undefined
  readonly plans?: readonly string[] | undefined
  /** Fields that differ from the configuration that a program declares. */
  readonly config?: Readonly<Record<string, unknown>> | undefined
  readonly dtype: (typeof dtypes)[number]
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  readonly repeats: number
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  readonly save?: string | undefined
  readonly baseline?: string | undefined
  /** Smallest ratio of medians that counts as a difference. */
  readonly ratio?: number | undefined
}

export interface BenchTargetResult {
  readonly subject: string
  readonly kind: Subject['kind']
  readonly dtype: BenchTargetOptions['dtype']
  readonly device: NativeDeviceInfo
  readonly ceilings: Ceilings | undefined
  /** Times of the forms at each shape, in the order of the options. */
  readonly sizes: readonly (readonly TargetTimes[])[]
  /** Undefined without a baseline. */
  readonly comparisons: readonly Comparison[] | undefined
}

/**
 * @throws usage `bench.unknown`, `bench.shape`, `bench.baseline`, `plan.unknown`, `graph.dim`; environment for missing tools or devices;
 * finding `bench.slower` when a form takes longer than the baseline allows
 */
export async function runBenchTarget(name: string, options: BenchTargetOptions, context: CliContext): Promise<BenchTargetResult> {
  const { root, signal, log } = context
  const { dtype, repeats } = options
  expectSamples(options)
  const save = options.save === undefined ? undefined : await baselineFile(resolve(root, options.save))
  const opened = await openKernels(options.device, { ...openOptions(context, { on: options.on, who: 'bench' }), compiled: true })
  const { device, manifest } = opened
  try {
    const path = await searchPath(root, options.specs)
    const subject = await findSubject(name, manifest, options, path)
    const layouts = await path.layouts()
    const info = device.info()
    const about = { subject: subject.name, device: deviceName(info), dtype }
    const before = options.baseline === undefined ? undefined : await readBaseline(resolve(root, options.baseline), about)
    log(`${info.name} (${device.kind}), ${subject.kind} ${subject.name}, ${dtype}\n`)
    const onStage = (stage: string): void => log(`${stage}\n`)
    const ceilings = await deviceCeilings(device, { onStage })
    const bench = { ...opened, layouts, ceilings, dtype, repeats, signal, onStage }
    const cost = costOf(info, ceilings, dtype)
    const sizes: (readonly TargetTimes[])[] = []
    const prices = await pricesOf(path, subject, { cost, dtype, isCpu: device.kind === 'simt' })
    // Plans without a price are refused before anything is measured.
    const shapes = (options.shape ?? [{}]).map((shape) => {
      const dims = completed(subject, shape)
      return { shape, priced: new Map(subject.forms.map(({ plan }) => [plan, prices(plan, dims)])) }
    })
    for (const { shape, priced: pricesOfPlans } of shapes) {
      const moved = [...pricesOfPlans.values()].flatMap((each) => each.moved ?? [])
      const times = await measure(bench, subject, shape, moved)
      const priced = times.map((each): TargetTimes => {
        const { further = 0, moved: _, ...predictions } = pricesOfPlans.get(each.plan) ?? {}
        return { ...each, ...predictions, launches: each.launches + further }
      })
      for (const each of priced) log(`${sizeText(each.dims)} ${describeTarget(each)}\n`)
      sizes.push(priced)
    }
    if (options.save !== undefined) {
      await save?.(baselineOf(subject.name, info, dtype, sizes.flat()))
      log(`saved: ${resolve(root, options.save)}\n`)
    }
    const comparisons = comparisonsOf(before, sizes.flat(), options)
    return { subject: subject.name, kind: subject.kind, dtype, device: info, ceilings, sizes, comparisons }
  } finally {
    device.close()
  }
}

type Compared = Pick<BenchTargetOptions, 'baseline' | 'ratio'>

/** @throws usage `bench.baseline` if the baseline has nothing that was timed */
function comparisonsOf(before: Baseline | undefined, times: readonly TargetTimes[], { baseline, ratio = usualRatio }: Compared) {
  if (before === undefined) return undefined
  const comparisons = compare(before, times, ratio)
  if (comparisons.length > 0) return comparisons
  throw usageError('bench.baseline', `${baseline} has none of the plans and shapes that were timed`, {
    hint: `it has ${before.results.map(({ plan, dims }) => `${plan} ${sizeText(dims)}`).join('; ')}`,
  })
}

/** The result of a packed bench, compared and saved as one that runs here. @throws usage `result.*`, `bench.baseline`, `bench.save` */
export async function readBenchTarget(
  file: string,
  options: Compared & Pick<BenchTargetOptions, 'save'>,
  { root, log }: CliContext,
): Promise<BenchTargetResult> {
  const { result: read } = await readResult(resolve(root, file), 'bench')
  const result = read as Omit<BenchTargetResult, 'comparisons'>
  const { subject, device, dtype, sizes } = result
  if (options.save !== undefined) {
    await (await baselineFile(resolve(root, options.save)))(baselineOf(subject, device, dtype, sizes.flat()))
    log(`saved: ${resolve(root, options.save)}\n`)
  }
  const about = { subject, device: deviceName(device), dtype }
  const before = options.baseline === undefined ? undefined : await readBaseline(resolve(root, options.baseline), about)
  return { ...result, comparisons: comparisonsOf(before, sizes.flat(), options) }
}

/** Times a subject on several machines, and prints a table with a column for each. @throws usage `remote.several`; errors of `runBenchTarget` */
async function benchMachines(
  name: string,
  options: Omit<BenchTargetOptions, 'on'> & { readonly on: readonly string[]; readonly json?: true | undefined },
  context: CliContext,
): Promise<void> {
  const { on: all, save, baseline } = options
  expectOneMachine(all, { save, baseline })
  const { machines, exitCode } = await onEach(all, context, (on) => runBenchTarget(name, { ...options, on }, context))
  const times = machines.map(({ on, result }) => ({ on, result: result?.sizes.flat() ?? [] }))
  context.out(options.json === true ? json({ machines }) : `${machinesTable(times)}${machineLines(machines)}`)
  if (exitCode !== 0) process.exitCode = exitCode
}

/** Subject for a name and plans. @throws usage `bench.unknown`, which lists the known names */
export async function findSubject(
  name: string,
  manifest: Manifest,
  { plans, dtype, config }: Pick<BenchTargetOptions, 'plans' | 'dtype' | 'config'>,
  path: SearchPath,
): Promise<Subject> {
  const { graphs, programs, conversions } = path
  const decl = Object.hasOwn(graphs, name) ? graphs[name] : undefined
  if (decl !== undefined) {
    // If the project has a graph of that name, a shipped plan is for another graph.
    const declared = path.plans.flatMap((plan) => (plan.graph === name ? [plan.name] : []))
    const known = Object.fromEntries(Object.entries(manifest.plans ?? {}).filter(([plan]) => declared.includes(plan)))
    const absent = plans?.find((plan) => declared.includes(plan) && known[plan]?.[name] === undefined)
    if (absent !== undefined)
      throw usageError('plan.unknown', `plan ${absent} of ${name} is declared, and not generated`, { hint: 'run heddle gen' })
    return graphSubject(decl.graph, { ...manifest, plans: known }, plans)
  }
  const program = programs.find((each) => each.name === name)
  if (program !== undefined) {
    return programSubject(program.of(config), manifest, plans, conversions)
  }
  if (config !== undefined) throw usageError('bench.config', `there is no program ${name}: only programs have a configuration`)
  const entry = findEntry(manifest, name, dtype)
  if (entry === undefined) {
    const instances = manifest.kernels.filter(({ op }) => op === name).map(({ key }) => key)
    const kernels = [...new Set(manifest.kernels.map(({ op }) => op))]
    const known =
      instances.length > 0
        ? `its instances: ${instances.join(', ')}`
        : knownHint(name, [...programs.map((each) => each.name), ...Object.keys(graphs), ...kernels], path.ours.graphs)
    const missing = instances.length === 0 && (await path.hasOp(name))
    throw usageError('bench.unknown', `there is no graph or program ${name}, and no kernel ${name} in ${dtype}`, {
      hint: missing ? `the specs have an op ${name} that is not generated: run \`heddle gen\`` : known,
    })
  }
  if (plans !== undefined) throw usageError('bench.plans', `${name} is a kernel: only graphs and programs have plans`)
  return kernelSubject(entry)
}

/** Predicted milliseconds on this device and on a GPU; undefined if the cost model does not cover the subject or the device. */
type Prices = (
  plan: string,
  dims: Dims,
) => Pick<TargetTimes, 'predicted' | 'elsewhere'> & {
  /** Launches in addition to one for each step. */
  readonly further?: number
  /** Bytes that the plan moves. */
  readonly moved?: number
}

/** The GPU whose predicted times are shown next to times of the CPU device. */
export const usualGpu = 'h200'

/** @throws usage `plan.*` for a plan that cannot be applied, `frontend.*` */
async function pricesOf(
  path: SearchPath,
  subject: Subject,
  {
    cost,
    dtype,
    isCpu,
  }: { readonly cost: CostDevice | undefined; readonly dtype: BenchTargetOptions['dtype']; readonly isCpu: boolean },
): Promise<Prices> {
  const [form] = subject.forms
  // A kernel is a graph of one node, whose form is its instance.
  const ofKernel = subject.kind === 'kernel' && form !== undefined && 'graph' in form ? form.graph : undefined
  const graph = subject.kind === 'graph' ? path.graphs[subject.name]?.graph : ofKernel
  const read = graph === undefined || (cost === undefined && !isCpu) ? undefined : await path.read(graph)
  if (graph === undefined || read === undefined || (ofKernel !== undefined && !read.ops.has(ofKernel.name))) return () => ({})
  const explain = explainer(
    path,
    graph,
    read,
    subject.forms.map(({ plan }) => plan),
  )
  return (plan, dims) => {
    const isDeclared =
      plan === bare || ofKernel !== undefined || path.plans.some((each) => each.name === plan && each.graph === subject.name)
    const on = (device: CostDevice | undefined) =>
      device === undefined || !isDeclared
        ? undefined
        : explain(plan, { device, dims, dtype, isCold: ofKernel !== undefined }).totals
    const [own, other] = [on(cost), isCpu ? on(costDevice(usualGpu)) : undefined]
    // The kernels of split ops launch several times within one step.
    const priced = own ?? other
    return {
      predicted: own && own.microseconds / 1000,
      ...(other === undefined ? {} : { elsewhere: { device: usualGpu, milliseconds: other.microseconds / 1000 } }),
      further: priced === undefined ? 0 : priced.launches - priced.kernels - priced.matmuls,
      ...(priced === undefined ? {} : { moved: priced.bytes }),
    }
  }
}

const shapes = (text: string, before: readonly Dims[] = []): readonly Dims[] => [...before, dimensions(text)]

/** Adds the options and the action for a named kernel, graph or program to `heddle bench`. */
export const addTarget = (command: Command, context: () => CliContext) =>
  command
    .argument('[name]', 'a kernel, graph or program of the project, or a shipped one')
    .addOption(
      new Option(
        '--shape <dims>',
        'dimensions by name, such as m=512,n=768; repeat for another shape; default: usual sizes',
      ).argParser(shapes),
    )
    .option('--config <json>', "changes to a program's default configuration, such as '{ \"layers\": 2 }'", jsonObject)
    .option('--plans <names>', 'plans of a graph or program, separated by commas; default: all that cover it', (text) =>
      text.split(','),
    )
    .addOption(new Option('--dtype <dtype>', 'storage type').choices(dtypes).default('f32' as const))
    .addOption(compiledDeviceOption())
    .addOption(machinesOption())
    .option('--repeats <count>', 'timed replays of each plan and shape', positive, 30)
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .addOption(readOption())
    .option('--save <file>', 'save the times as a baseline for later runs')
    .option('--baseline <file>', 'compare with saved times; exit 1 if something became slower')
    .option('--ratio <x>', 'smallest ratio of medians that counts as a difference', ratioOf, usualRatio)
    .option('--json', 'print the results as JSON')
    .action(async (name, options) => {
      if (name === undefined && options.read === undefined) {
        throw usageError('bench.name', 'nothing to time', {
          hint: 'give a kernel or a graph, or one of: encoder, decoding, llama',
        })
      }
      const [on, ...others] = options.on ?? []
      if (name !== undefined && on !== undefined && others.length > 0) {
        await benchMachines(name, { ...options, on: [on, ...others] }, context())
        return
      }
      const result = await (options.read === undefined
        ? runBenchTarget(name ?? '', { ...options, on }, context())
        : readBenchTarget(options.read, options, context()))
      const { comparisons } = result
      context().out(options.json ? json(result) : `${targetTable(result.sizes, result)}${comparisonText(comparisons ?? [])}`)
      expectNotSlower(comparisons, options)
    })
