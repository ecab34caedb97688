/**
 * `heddle explore`: a page that shows a compiled kernel or graph and measured runs, served on loopback or written to a file. It shows
 * results of `plan show`, `inspect`, `inspect --passes` and `bench --json`, and computes nothing itself.
 */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { Command, InvalidArgumentError } from '@commander-js/extra-typings'
import { findEntry } from '../bench/target/subject.js'
import { HeddleError, usageError } from '../errors.js'
import type { ExplorerData, PlanView } from '../explorer/model.js'
import { explorerSchema } from '../explorer/model.js'
import { pageHtml } from '../explorer/page.js'
import { drawPlan } from '../explorer/plan_view.js'
import { type AnyRun, readRun } from '../explorer/runs/read.js'
import { benchView, measuredKernels, predictedTimeline, runTimelines } from '../explorer/runs/view.js'
import { servePage } from '../explorer/server.js'
import { knownHint } from '../nearest.js'
import { namedFile } from '../output.js'
import type { PlanReport } from '../search/explain.js'
import { searchManifests } from '../toolchain/index.js'
import { usualRatio } from './bench_options.js'
import { type CliContext, json } from './context.js'
import { kernelViews } from './explore_kernels.js'
import { explainPlans, type PlanOptions, planOptions } from './plan.js'
import { heading } from './plan_text.js'
import { searchPath } from './search_path.js'

export interface ExploreOptions extends Omit<PlanOptions, 'graph'> {
  /** A plan of the graph. Without it and `compare`: `unfused` compared with the first written plan of the graph. */
  readonly plan?: string | undefined
  /** A second plan, compared with the first. */
  readonly compare?: string | undefined
  /** Files of `heddle bench`: one to show, or two to compare. */
  readonly bench?: readonly string[] | undefined
  /** Runs that have just ended, in addition to those of files. */
  readonly measured?: readonly { readonly file: string; readonly any: AnyRun }[] | undefined
  /** False leaves nvcc out, also for a single kernel. */
  readonly compile?: boolean | undefined
}

const mostRuns = 2

async function readRuns(files: readonly string[], root: string): Promise<{ readonly file: string; readonly any: AnyRun }[]> {
  if (files.length > mostRuns) {
    throw usageError('explore.bench', `expected one or two runs, got ${files.length}`)
  }
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(resolve(root, file), 'utf8').catch((cause: unknown) => {
        throw usageError('explore.bench', `cannot read ${file}`, {
          hint: 'give a file that `heddle bench ... --json` printed',
          cause,
        })
      })
      return { file, any: readRun(text, file) }
    }),
  )
}

/** Resolves a name to a graph with its plans, or a kernel. @throws usage `explore.subject` for plans of anything but a graph */
async function subjectOf(name: string | undefined, options: ExploreOptions, root: string) {
  const { plan, compare, specs } = options
  if (name === undefined && plan === undefined && compare === undefined && options.bench !== undefined) return undefined
  const { graphs, plans, ours } = await searchPath(root, specs)
  const first = plans.find((each) => each.name === plan) ?? plans[0]
  const graph = name ?? first?.graph
  if (graph !== undefined && Object.hasOwn(graphs, graph)) {
    const written = plans.find((each) => each.graph === graph && each.auto === undefined)
    const usual = ['unfused', ...(written === undefined ? [] : [written.name])]
    const asked = [plan, compare].flatMap((each) => (each === undefined ? [] : [each]))
    const shown = [...new Set(asked.length > 0 ? asked : usual)]
    const others = plans.filter((each) => each.graph === graph && each.auto === undefined && !shown.includes(each.name))
    return { kind: 'graph', graph, plans: shown, others: others.map((each) => each.name) } as const
  }
  if (name === undefined) {
    throw usageError('explore.subject', 'nothing to show: there is no plan', {
      hint: 'give a kernel, a graph, or --bench with a file',
    })
  }
  if (plan !== undefined || compare !== undefined) {
    throw usageError('explore.subject', `there is no graph ${name}, and only graphs have plans`, {
      hint: knownHint(name, Object.keys(graphs), ours.graphs),
    })
  }
  return { kind: 'kernel', name } as const
}

/** Reports of further plans, which the page offers. A plan without a price is left out. */
async function otherReports(names: readonly string[], options: PlanOptions, context: CliContext): Promise<readonly PlanReport[]> {
  const found: PlanReport[] = []
  for (const name of names) {
    const reports = await explainPlans([name], options, context).catch((error: unknown) => {
      if (error instanceof HeddleError) return []
      throw error
    })
    found.push(...reports)
  }
  return found
}

/**
 * Instance keys of the kernels that plans launch, in the requested storage type, the slowest first. Kernels that were not generated are
 * omitted.
 */
async function keysOf(reports: readonly PlanReport[], dtype: ExploreOptions['dtype'], root: string): Promise<string[]> {
  const { manifest } = await searchManifests(root)
  const steps = reports.flatMap((report) => report.steps).filter(({ kind }) => kind !== 'library matmul')
  const slowest = steps.toSorted((a, b) => b.microseconds - a.microseconds)
  return [...new Set(slowest.map(({ kernel }) => kernel))].flatMap((name) => findEntry(manifest, name, dtype)?.key ?? [])
}

/** Instance key for a name: in the requested storage type, else in the op's first. An unknown name is returned unchanged. */
async function keyOf(name: string, dtype: ExploreOptions['dtype'], root: string): Promise<string> {
  const { manifest } = await searchManifests(root)
  return (findEntry(manifest, name, dtype) ?? findEntry(manifest, name, undefined))?.key ?? name
}

/** Command line for these options. */
function commandOf(
  name: string | undefined,
  { plan, compare, bench = [], dtype, device, config, shape, dims = {} }: Partial<ExploreOptions>,
): string {
  const given: readonly (readonly [string, string | undefined])[] = [
    ['--plan', plan],
    ['--compare', compare],
    ['--dtype', dtype],
    ['--device', device],
    ['--config', config],
    ['--shape', shape?.join('x')],
    ...Object.entries(dims).map(([dim, extent]) => ['--dim', `${dim}=${extent}`] as const),
    ...bench.map((file) => ['--bench', file] as const),
  ]
  const words = given.flatMap(([option, value]) => (value === undefined ? [] : [option, value]))
  return ['heddle explore', ...(name === undefined ? [] : [name]), ...words].join(' ')
}

/**
 * Data of a page for a kernel or a graph, and for measured runs. The page of a graph contains the kernels of its plans.
 * @throws usage `explore.*`, `plan.*`, `inspect.*`, and errors of the front end
 */
export async function explore(name: string | undefined, options: ExploreOptions, context: CliContext): Promise<ExplorerData> {
  const { root, log } = context
  const runs = [...(await readRuns(options.bench ?? [], root)), ...(options.measured ?? [])]
  const subject = await subjectOf(name, options, root)
  let reports: readonly PlanReport[] = []
  let others: readonly PlanReport[] = []
  let keys: readonly string[] = []
  if (subject?.kind === 'graph') {
    log(`predicting costs of ${subject.plans.join(' and ')} of ${subject.graph}\n`)
    reports = await explainPlans(subject.plans, { ...options, graph: subject.graph }, context)
    others = await otherReports(subject.others, { ...options, graph: subject.graph }, context)
    keys = await keysOf(reports, options.dtype, root)
  } else if (subject?.kind === 'kernel') keys = [await keyOf(subject.name, options.dtype, root)]
  if (keys.length > 0) log(`reading ${keys.length} ${keys.length === 1 ? 'kernel' : 'kernels'}\n`)
  // nvcc takes seconds per source: it is run for a single kernel only, not for all kernels of a plan.
  const kernels =
    keys.length === 0
      ? []
      : await kernelViews(keys, options.specs, context, options.compile !== false && subject?.kind === 'kernel')
  const bench = benchView(runs, reports, usualRatio, subject?.kind === 'graph' ? options : undefined)
  const [first] = reports
  const plan: PlanView | undefined =
    first === undefined
      ? undefined
      : {
          graph: first.graph,
          setting: heading(first, options),
          plans: [...reports, ...others].map((report) => drawPlan(report, measuredKernels(bench?.runs ?? [], report.plan))),
          ...(others.length === 0 ? {} : { shown: reports.map((report) => report.plan) }),
        }
  const title = subject === undefined ? bench?.runs[0]?.title : subject.kind === 'graph' ? subject.graph : kernels[0]?.key
  return explorerSchema.parse({
    version: 1,
    title: `heddle explore: ${title ?? ''}`,
    // A kernel's name includes its storage type, and kernels have no predicted time.
    command: subject?.kind === 'kernel' ? commandOf(keys[0], { bench: options.bench }) : commandOf(name, options),
    opens: subject === undefined ? 'bench' : subject.kind === 'graph' ? 'plan' : 'kernel',
    ...(plan === undefined ? {} : { plan }),
    kernels,
    ...(bench === undefined ? {} : { bench }),
    timelines: [...runTimelines(runs), ...reports.map(predictedTimeline)],
  } satisfies ExplorerData)
}

/** Parses a port, or 0 for a free one. */
export function portOf(text: string): number {
  const port = Number(text)
  if (!/^\d+$/.test(text) || port > 65_535) throw new InvalidArgumentError('Expected a port, or 0 for a free one.')
  return port
}

export const exploreCommand = (context: () => CliContext) => {
  const { shape, dtype, device, config, dims, specs } = planOptions()
  return new Command('explore')
    .description('show a graph under its plans, a kernel at every stage, or measured runs on a page')
    .argument('[name]', 'a graph, a kernel such as layer_norm__f16, or an op; default: the graph of the first plan')
    .option('--plan <name>', 'a plan of the graph; default: unfused beside its first written plan')
    .option('--compare <name>', 'a second plan beside the first')
    .option(
      '--bench <file>',
      'a file from `heddle bench` with --json or --save; repeat to compare a later run',
      (file, before: string[] = []) => [...before, file],
    )
    .option('--out <file>', 'write the page to a self-contained file instead of serving it')
    .option('--port <port>', 'port on loopback; 0 takes a free one', portOf, 7355)
    .addOption(shape)
    .addOption(dtype)
    .addOption(device)
    .addOption(config)
    .addOption(dims)
    .addOption(specs)
    .option('--json', 'print the data of the page as JSON')
    .action(async (name, { out, port, json: asJson, ...options }) => {
      const { root, signal, log, out: print } = context()
      const write = out === undefined ? undefined : await namedFile(resolve(root, out), 'explore.out')
      const data = await explore(name, options, context())
      if (asJson === true) print(json(data))
      if (out !== undefined) {
        await write?.(pageHtml(data))
        log(`page: ${resolve(root, out)}\n`)
      }
      if (asJson === true || out !== undefined) return
      const { url, closed } = await servePage(data, port, signal)
      log(`serving ${url}; stop with Ctrl-C\n`)
      await closed
    })
}
