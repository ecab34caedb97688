/**
 * `heddle inspect KERNEL`: shows one kernel at every stage: the body as written, its IR, the schedules, the CUDA source and
 * its resources from ptxas.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Command, Option } from '@commander-js/extra-typings'
import { findEntry } from '../bench/target/subject.js'
import type { KernelEntry, Manifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import type { SearchOptions } from '../frontend/searched.js'
import type { DType } from '../ir/dtype.js'
import { allTypes, instanceKey } from '../ir/instance.js'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import { printKernel } from '../ir/print.js'
import { printTemplate } from '../ir/print_template.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import { knownHint } from '../nearest.js'
import { installation, resourcesOf, searchManifests, type TextResources } from '../toolchain/index.js'
import { packageRoot } from '../toolchain/paths.js'
import { readKernels } from '../verify/check/specs.js'
import { type CliContext, json } from './context.js'
import { specPath, statementAt } from './declared_text.js'
import { inspectPasses, type PassText } from './inspect_passes.js'
import { type Prices, priceLines, pricesOn } from './inspect_prices.js'
import { dtypes } from './opening.js'
import { dimensions } from './options.js'
import { compileProgress } from './progress.js'

export interface Inspection {
  readonly key: string
  readonly source: SourceSpan
  /** The declaration as written. */
  readonly body: string
  /** First line of the declaration. */
  readonly bodyLine: number
  readonly ir: string
  readonly schedules: KernelEntry['variants']
  /** Performance warnings of the schedule. */
  readonly notes: readonly string[]
  /** Form of each operation that has a fast one. */
  readonly forms: readonly string[]
  /** Predicted times of its launches on an H200, for given sizes, or the typical ones of a plan's kernel; undefined without sizes. */
  readonly prices?: Prices
  readonly cuda: { readonly file: string; readonly text: string }
  /** One entry per kernel and architecture; empty if unknown. */
  readonly resources: TextResources['kernels']
  readonly resourcesFrom: Omit<TextResources, 'kernels'>
}

/**
 * Finds an instance by its key, or by op and storage type.
 * @throws usage `inspect.kernel`, which lists known kernels
 */
function entryOf(
  { kernels }: Pick<Manifest, 'kernels'>,
  name: string,
  dtype: DType | undefined,
  isOwn: (entry: KernelEntry) => boolean,
): KernelEntry {
  const found = findEntry({ kernels }, name, dtype)
  if (found !== undefined) return found
  const instances = kernels.filter(({ op }) => op === name).map(({ key }) => key)
  if (instances.length > 0) {
    const hint = `its instances: ${instances.join(', ')}`
    throw usageError('inspect.kernel', `there is no kernel ${name} in ${dtype}`, { hint })
  }
  const namesOf = (some: readonly KernelEntry[]): string[] => some.flatMap(({ op, key }) => [op, key])
  throw usageError('inspect.kernel', `there is no kernel ${name}`, {
    hint: knownHint(name, namesOf(kernels), namesOf(kernels.filter(isOwn))),
  })
}

export interface Inspected {
  readonly inspection: Inspection
  readonly kernel: Kernel | TemplateKernel
}

/** @throws usage `inspect.kernel`, `inspect.stale`, and errors of the front end */
export async function inspect(
  name: string,
  { specs, ...how }: { readonly specs?: string } & Pick<InspectHow, 'dtype' | 'shape'>,
  context: CliContext,
): Promise<Inspection> {
  const [found] = await inspectAll([name], specs, context, how)
  if (found === undefined) throw new Error('internal: a kernel without an inspection')
  return found.inspection
}

export interface InspectHow {
  /** True to run nvcc for unrecorded resources. */
  readonly compile?: boolean
  /** Storage type of ops that are named without one. */
  readonly dtype?: DType | undefined
  /** Dimensions for which launches are priced, besides or instead of typical ones. */
  readonly shape?: Readonly<Record<string, number>> | undefined
}

/**
 * Inspects several kernels with one reading of the specs.
 * @throws as `inspect`
 */
export async function inspectAll(
  names: readonly string[],
  specs: string | undefined,
  context: CliContext,
  { compile = false, dtype, shape }: InspectHow = {},
): Promise<readonly Inspected[]> {
  const { root, signal } = context
  const { manifest, folderOf } = await searchManifests(root)
  const { generated } = installation(root)
  const isShipped = ({ key }: KernelEntry): boolean => folderOf(key) !== generated[0]
  const isOwn = (entry: KernelEntry): boolean => generated.length > 1 && !isShipped(entry)
  const entries = names.map((name) => entryOf(manifest, name, dtype, isOwn))
  const kernels = await kernelsOf(entries, isShipped, manifest, context, specs)
  const placed = entries.map((entry) => ({ entry, folder: folderOf(entry.key) }))
  const found = await resourcesOf(placed, { root, compile, signal, onProgress: compileProgress(context) })
  return Promise.all(
    entries.map(async (entry, at): Promise<Inspected> => {
      const kernel = kernels.get(entry.op)
      if (kernel === undefined) {
        throw usageError('inspect.stale', `no spec declares ${entry.op} any more`, { hint: 'run `heddle gen`' })
      }
      const file = join(folderOf(entry.key), entry.file)
      const known = found[at]
      if (known === undefined) throw new Error('internal: a kernel whose resources were not looked for')
      const { kernels: resources, ...resourcesFrom } = known
      const path = specPath(isShipped(entry) ? packageRoot() : root, kernel.source.file)
      const declaration = await statementAt(root, path, kernel.source)
      const inspection = {
        key: entry.key,
        source: kernel.source,
        body: declaration.text,
        bodyLine: declaration.line,
        ir: isTemplate(kernel) ? printTemplate(kernel) : printKernel(kernel),
        schedules: entry.variants,
        ...(isTemplate(kernel) ? { notes: [] } : await pricesOn(kernel, entry.key, shape)),
        forms: await formsOf(kernel, entry.key),
        cuda: { file, text: await readFile(file, 'utf8') },
        resources,
        resourcesFrom,
      }
      return { inspection, kernel }
    }),
  )
}

/** Forms of the operations of an instance, by its key. */
async function formsOf(kernel: Kernel | TemplateKernel, key: string): Promise<readonly string[]> {
  const { formLines } = await import('../schedule/normalise/form_lines.js')
  const types = allTypes(kernel).find((each) => key.startsWith(instanceKey(kernel.name, each)))
  return types === undefined ? [] : formLines(kernel, types)
}

/** A small set of planned graphs that contain all these ops, so that deriving a kernel does not need the plans of all graphs. */
function graphsWith(ops: readonly string[], { plans = {} }: Pick<Manifest, 'plans'>): ReadonlySet<string> {
  const used = new Map<string, Set<string>>()
  for (const [graph, { nodes }] of Object.values(plans).flatMap((graphs) => Object.entries(graphs))) {
    const names = used.get(graph) ?? new Set()
    for (const node of nodes) if (node.kind === 'op') names.add(node.op)
    used.set(graph, names)
  }
  const [left, found] = [new Set(ops), new Set<string>()]
  while (left.size > 0) {
    const shared = [...used].map(([graph, names]) => ({ graph, count: [...left].filter((op) => names.has(op)).length }))
    const [best] = shared.sort((a, b) => b.count - a.count)
    if (best === undefined || best.count === 0) break
    found.add(best.graph)
    for (const op of used.get(best.graph) ?? []) left.delete(op)
  }
  return found
}

/** Kernels by op name: shipped ops without reading plans, ops of the project, and kernels that plans derive for it. */
async function kernelsOf(
  entries: readonly KernelEntry[],
  isShipped: (entry: KernelEntry) => boolean,
  manifest: Manifest,
  { root }: Pick<CliContext, 'root'>,
  specs: string | undefined,
): Promise<ReadonlyMap<string, Kernel | TemplateKernel>> {
  const found = new Map<string, Kernel | TemplateKernel>()
  const add = (kernels: readonly (Kernel | TemplateKernel)[], ops: readonly string[]): void => {
    for (const kernel of kernels) if (ops.includes(kernel.name)) found.set(kernel.name, kernel)
  }
  const derive = async (ops: readonly string[], search: SearchOptions): Promise<void> => {
    if (ops.length === 0) return
    const { kernels, templates } = await readKernels(root, specs, search)
    add([...kernels, ...templates], ops)
  }
  const opsOf = (some: readonly KernelEntry[]): string[] => [...new Set(some.map(({ op }) => op))]
  const shipped = opsOf(entries.filter(isShipped))
  if (shipped.length > 0) {
    const { readSearched } = await import('../frontend/searched.js')
    const { standard } = await readSearched(root, specs, { shipped: true, ops: shipped, graphs: false })
    add(standard, shipped)
  }
  const derived = shipped.filter((op) => !found.has(op))
  await derive(derived, { shipped: true, graphs: graphsWith(derived, manifest) })
  await derive(opsOf(entries.filter((entry) => !isShipped(entry))), {})
  return found
}

function printInspection(found: Inspection): string {
  const section = (title: string, text: string) => `== ${title}\n${text.trimEnd()}\n`
  const schedules = found.schedules.map(({ kernel, schedule, when }) => `${kernel}: ${schedule} (${when})`)
  const resources = found.resources.map(
    (kernel) =>
      `${kernel.kernel} ${kernel.arch}: ${kernel.threads === undefined ? '' : `${kernel.threads} threads, `}` +
      `${kernel.registers} registers, ${kernel.sharedBytes} bytes shared, ` +
      `${kernel.stackBytes} stack, ${kernel.spillStoreBytes + kernel.spillLoadBytes} spilled`,
  )
  return [
    section(`body (${found.source.file}:${found.source.line})`, found.body),
    section('ir', found.ir),
    section('schedule', schedules.join('\n')),
    ...(found.prices === undefined ? [] : [section(...priceLines(found.prices))]),
    ...(found.notes.length === 0 ? [] : [section('notes', found.notes.join('\n'))]),
    ...(found.forms.length === 0 ? [] : [section('forms', found.forms.join('\n'))]),
    section(`cuda (${found.cuda.file})`, found.cuda.text),
    section('ptxas', resources.join('\n') || `unknown: ${found.resourcesFrom.detail}`),
  ].join('\n')
}

export const inspectCommand = (context: () => CliContext) =>
  new Command('inspect')
    .description('show one kernel at every stage')
    .argument('<name>', 'an instance such as layer_norm__f16, or an op such as layer_norm; with --passes also a plan')
    .option('--passes', 'show the result of each compiler pass')
    .addOption(
      new Option('--dtype <dtype>', 'storage type of an op; default: the first of f32, f16 and bf16 that it has').choices(dtypes),
    )
    .option('--shape <dims>', 'dimensions for predicted times, such as m=512,n=768; default: typical ones of a plan', dimensions)
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--json', 'print the stages as JSON')
    .action(async (name, options) => {
      if (options.passes === true) {
        const passes = await inspectPasses(name, options, context())
        const section = ({ pass, text }: PassText): string => `== ${pass}\n${text.trimEnd()}\n`
        context().out(options.json ? json(passes) : passes.map(section).join('\n'))
        return
      }
      const found = await inspect(name, options, context())
      context().out(options.json ? json(found) : printInspection(found))
    })
