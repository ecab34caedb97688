/**
 * The kernels a project can run: its own generated text first, the shipped text behind it. An op of the project takes the place of a
 * shipped one of the same name, and a plan's graph that of a shipped one.
 */
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type KernelEntry, type Manifest, parseManifest } from '../emit/manifest.js'
import { usageError } from '../errors.js'
import { mergeMatmuls } from '../schedule/library_tuning.js'
import { installation } from './installation.js'
import { expectTrusted } from './own_source.js'

/** The manifests of the search path as one. */
export interface SearchedManifest {
  readonly manifest: Manifest
  /** The folder of generated text that a kernel's file lies in. */
  folderOf(key: string): string
  /** Names of shipped ops and plans (`plan/graph`) whose place one of the project takes. */
  readonly hidden: readonly string[]
  /** Kernels whose text the user asked for as it lies. */
  asItLies?(key: string): boolean
}

/** The manifest that was last read of a path, and what its file was then: whoever stays, such as `heddle watch`, reads the shipped one once. */
const known = new Map<string, { readonly file: string; readonly manifest: Manifest }>()

/** How the manifests of a project are read. */
export interface ManifestOptions {
  /** The user asked for the project's own text as it lies, whoever wrote it. */
  readonly asItLies?: boolean
}

/**
 * The manifest of a folder of generated text.
 * @throws usage `manifest.missing`, `manifest.invalid`, `generated.foreign` for one that is not this user's; environment `cache.foreign`
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

/** @throws as `readManifestOf` */
export async function searchManifests(root: string, options: ManifestOptions = {}): Promise<SearchedManifest> {
  const { generated } = installation(root)
  const folders = generated.filter((folder) => existsSync(join(folder, 'manifest.json')))
  const [first = generated[0] ?? root, ...others] = folders
  let found: SearchedManifest = { manifest: await readManifestOf(first, options), folderOf: () => first, hidden: [] }
  for (const folder of others) found = behind(found, await readManifestOf(folder), folder)
  return found
}

/** A manifest with another behind it. */
function behind(front: SearchedManifest, back: Manifest, folder: string): SearchedManifest {
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

/** True if the project has something else of the name. */
const differs = (own: unknown, shipped: unknown): boolean => own !== undefined && JSON.stringify(own) !== JSON.stringify(shipped)
