/**
 * Kernels of a project's bundle: its own, and the shipped ones that it uses. The archive has the layout of a project, with its own source first
 * and the shipped one after it, except that one library holds both. A bundle without own kernels packs the full build.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Manifest } from '../emit/manifest/manifest.js'
import { registryText } from '../emit/manifest/registry.js'
import { environmentError } from '../errors.js'
import { nodesAtAnyRows } from '../ir/graph_rows.js'
import { contentDigest, recordOwn } from '../own_text.js'
import type { PlacedKernel } from './demand.js'
import { sha256 } from './hash.js'
import { installation } from './installation.js'
import { buildKernels } from './kernels.js'
import { readManifestOf, searchManifests } from './manifests.js'
import { expectTrusted } from './own_source.js'
import type { Target } from './paths.js'

/** Shipped ops and kernels that a project uses. */
export interface Used {
  /** Names of ops, with all of their instances. */
  readonly ops: Iterable<string>
  /** Keys of instances. */
  readonly keys: Iterable<string>
}

export interface BundledKernels {
  readonly placed: readonly PlacedKernel[]
  /** Manifest of the shipped source, reduced to the packed kernels and to the graphs of plans that need no others. */
  readonly shipped: Manifest
}

/**
 * Kernels to pack for a project; undefined if it has none of its own.
 * @throws usage `manifest.*`; environment `library.kernel` for an unknown key
 */
export async function bundledKernels(root: string, used: Used): Promise<BundledKernels | undefined> {
  const { generated } = installation(root)
  const [own, shipped] = generated
  const searched = await searchManifests(root)
  if (own === undefined || shipped === undefined || !searched.manifest.kernels.some(({ key }) => searched.folderOf(key) === own))
    return undefined
  const { plans = {} } = await readManifestOf(own)
  const planned = Object.values(plans).flatMap((graphs) => Object.values(graphs).flatMap(nodesAtAnyRows))
  const ops = new Set([...used.ops, ...planned.flatMap((node) => (node.kind === 'op' ? [node.op] : []))])
  const keys = new Set(used.keys)
  const known = new Set(searched.manifest.kernels.map(({ key }) => key))
  const other = [...keys].find((key) => !known.has(key))
  if (other !== undefined) throw environmentError('library.kernel', `there is no kernel ${other}`, { hint: 'run heddle gen' })
  const placed = searched.manifest.kernels
    .map((entry) => ({ entry, folder: searched.folderOf(entry.key) }))
    .filter(({ entry, folder }) => folder === own || ops.has(entry.op) || keys.has(entry.key))
  const fallback = await readManifestOf(shipped)
  const packed = new Set(placed.filter(({ folder }) => folder === shipped).map(({ entry }) => entry.key))
  const kernels = fallback.kernels.filter(({ key }) => packed.has(key))
  return {
    placed,
    shipped: { ...fallback, kernels, plans: plansWith(fallback.plans ?? {}, new Set(placed.map(({ entry }) => entry.op))) },
  }
}

type Plans = NonNullable<Manifest['plans']>

/** Graphs of plans that need no other ops. */
function plansWith(plans: Plans, ops: ReadonlySet<string>): Plans {
  const left = Object.entries(plans).map(([plan, graphs]) => {
    const runs = Object.entries(graphs).filter(([, graph]) =>
      nodesAtAnyRows(graph).every((node) => node.kind !== 'op' || ops.has(node.op)),
    )
    return [plan, Object.fromEntries(runs)] as const
  })
  return Object.fromEntries(left.filter(([, graphs]) => Object.keys(graphs).length > 0))
}

/**
 * Puts a project's kernels into its bundle: the manifests, and per target a library with its report. Missing kernels are compiled now, for CUDA
 * for every architecture.
 * @param work a folder for the sources while they are compiled
 * @throws errors of `buildKernels`
 */
export async function stageKernels(
  stage: string,
  work: string,
  root: string,
  targets: readonly Target[],
  { placed, shipped }: BundledKernels,
  signal: AbortSignal | undefined,
): Promise<void> {
  const own = await readFile(join(root, 'generated', 'manifest.json'))
  await writeWork(work, placed)
  for (const target of targets) {
    const outDir = join(stage, target)
    const { report } = await buildKernels({ target, root, generated: work, outDir, signal })
    await rm(join(outDir, 'compile_commands.json'), { force: true })
    // The bundle has two manifests; the report's digest is that of the first, which the library belongs to.
    await writeFile(join(outDir, 'build.json'), `${JSON.stringify({ ...report, manifest: sha256(own) }, null, 2)}\n`)
  }
  for (const folder of ['generated', 'shipped']) await mkdir(join(stage, folder))
  await writeFile(join(stage, 'generated', 'manifest.json'), own)
  await writeFile(join(stage, 'shipped', 'manifest.json'), `${JSON.stringify(shipped)}\n`)
}

/** Writes the sources to compile, of project and package, with a manifest and a registry of just these. @throws usage `generated.foreign` */
export async function writeWork(work: string, placed: readonly PlacedKernel[]): Promise<void> {
  const entries = placed.map(({ entry }) => entry)
  const texts = new Map([
    ['manifest.json', JSON.stringify({ version: 1, kernels: entries } satisfies Manifest)],
    ['registry.cpp', registryText(entries)],
  ])
  for (const { entry, folder } of placed) {
    const path = join(folder, entry.file)
    const text = await readFile(path, 'utf8')
    expectTrusted(path, text)
    texts.set(entry.file, text)
  }
  await recordOwn([...texts.values()].map(contentDigest))
  for (const [name, text] of texts) {
    await mkdir(dirname(join(work, name)), { recursive: true })
    await writeFile(join(work, name), text)
  }
}
