/**
 * Kernels that a project can run: those of its own generated source first, then the shipped ones. An op of the project overrides a shipped
 * one of the same name, and so does a graph of a plan.
 */
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type KernelEntry, type Manifest, parseManifest } from '../emit/manifest/manifest.js'
import { usageError } from '../errors.js'
import { mergeMatmuls } from '../schedule/tuning/library.js'
import { installation } from './installation.js'
import { expectTrusted } from './own_source.js'

/** Merged manifest of the search path. */
export interface SearchedManifest {
  readonly manifest: Manifest
  /** Folder of generated source that holds a kernel's file. */
  folderOf(key: string): string
  /** Names of shipped ops and plans (`plan/graph`) that the project overrides. */
  readonly hidden: readonly string[]
  /** True for kernels whose source the user accepts as is. */
  asItLies?(key: string): boolean
}

/** Cache of manifests by path, with the state of the file: a long-running process, such as `heddle watch`, reads the shipped one once. */
const known = new Map<string, { readonly file: string; readonly manifest: Manifest }>()

/** Options of reading a project's manifests. */
export interface ManifestOptions {
  /** Accepts the project's own source as is, regardless of its author. */
  readonly asItLies?: boolean
  /** Folder of the project's own source; default `generated`. */
  readonly own?: string | undefined
}

/**
 * Reads the manifest of a folder of generated source.
 * @throws usage `manifest.missing`, `manifest.invalid`, `generated.foreign` if this user did not generate it; environment `cache.foreign`
 */
export async function readManifestOf(generated: string, { asItLies = false }: ManifestOptions = {}): Promise<Manifest> {
  const path = join(generated, 'manifest.json')
  const missing = (cause: unknown): never => {
    throw usageError('manifest.missing', `cannot read ${path}`, { hint: 'run heddle gen', cause })
  }
  const { ino, size, mtimeNs } = await stat(path, { bigint: true }).catch(missing)
  const file = `${ino} ${size} ${mtimeNs}`
  const last = known.get(path)
  if (last?.file === file) return last.manifest
  const text = await readFile(path, 'utf8').catch(missing)
  if (!asItLies) expectTrusted(path, text)
  const manifest = parseManifest(text, path)
  if (!asItLies) known.set(path, { file, manifest })
  return manifest
}

/** Merges the manifests of the search path. @throws like `readManifestOf` */
export async function searchManifests(root: string, options: ManifestOptions = {}): Promise<SearchedManifest> {
  const { own } = options
  const given = installation(root).generated
  const generated = own === undefined ? given : [...new Set([own, ...given.slice(-1)])]
  const folders = generated.filter((folder) => existsSync(join(folder, 'manifest.json')))
  const [first = generated[0] ?? root, ...others] = folders
  let found: SearchedManifest = { manifest: await readManifestOf(first, options), folderOf: () => first, hidden: [] }
  for (const folder of others) found = withFallback(found, await readManifestOf(folder), folder)
  return found
}

/** Merges a manifest with a fallback of lower precedence. */
function withFallback(front: SearchedManifest, back: Manifest, folder: string): SearchedManifest {
  const { kernels, plans = {} } = front.manifest
  const ops = new Set(kernels.map(({ op }) => op))
  const added = back.kernels.filter(({ op }) => !ops.has(op))
  const digests = new Map(kernels.map(({ key, digest }) => [key, digest]))
  const replaced = back.kernels.filter(({ op, key, digest }) => ops.has(op) && digests.get(key) !== digest)
  const hiddenPlans: string[] = []
  const merged: Record<string, NonNullable<Manifest['plans']>[string]> = { ...plans }
  for (const [plan, graphs] of Object.entries(back.plans ?? {})) {
    const own = Object.hasOwn(plans, plan) ? (plans[plan] ?? {}) : {}
    hiddenPlans.push(...Object.keys(graphs).flatMap((graph) => (differs(own[graph], graphs[graph]) ? [`${plan}/${graph}`] : [])))
    merged[plan] = { ...graphs, ...own }
  }
  const keys = new Set(added.map(({ key }) => key))
  const matmuls = mergeMatmuls(back.matmuls ?? [], front.manifest.matmuls ?? [], front.manifest.matmuls ?? [])
  const tuned = matmuls.length === 0 ? {} : { matmuls }
  return {
    manifest: {
      ...front.manifest,
      kernels: [...kernels, ...added].sort(byKey),
      plans: merged,
      ...tuned,
      layouts: { ...back.layouts, ...front.manifest.layouts },
    },
    folderOf: (key) => (keys.has(key) ? folder : front.folderOf(key)),
    hidden: [...front.hidden, ...new Set(replaced.map(({ op }) => op)), ...hiddenPlans],
  }
}

const byKey = (a: KernelEntry, b: KernelEntry): number => (a.key < b.key ? -1 : 1)

/** True if the project has a different definition of the name. */
const differs = (own: unknown, shipped: unknown): boolean => own !== undefined && JSON.stringify(own) !== JSON.stringify(shipped)
