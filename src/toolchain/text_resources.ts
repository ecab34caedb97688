/**
 * Resources of the kernels of generated sources (registers, shared memory, spills). Sources of the data: the record that is committed next to them,
 * the last build for CUDA, or nvcc itself, whose output is cached. For `inspect` and `explore`, also on machines without nvcc.
 */
import { basename, join } from 'node:path'
import { cacheFolder } from '../cache_folder.js'
import { HeddleError } from '../errors.js'
import { isWhole } from './cache.js'
import { findNvcc } from './compilers.js'
import type { PlacedKernel } from './demand.js'
import { installation } from './installation.js'
import { type BuildProgress, compileFiles } from './objects.js'
import { packageRoot } from './paths.js'
import type { KernelResources } from './ptxas.js'
import { recipeFor } from './recipe.js'
import { placeOf, readRecord, shortKey, type TextRecord } from './record.js'
import { readBuildReport } from './report.js'
import { type KeyedFile, keyFiles, type SourceFile } from './sources.js'
import { unitKey } from './units.js'

export interface TextResources {
  readonly from: 'record' | 'build' | 'nvcc' | 'unknown'
  /** Compiler version of the numbers; or the reason why there are none. */
  readonly detail: string
  /** One entry per kernel and architecture. */
  readonly kernels: readonly KernelResources[]
  /** True if launches may add dynamic shared memory, by their sizes. */
  readonly dynamicShared: boolean
}

export interface ResourcesOptions {
  readonly root: string
  /** Compiles sources without known resources by nvcc, which takes seconds each. */
  readonly compile: boolean
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
}

/** Header that declares dynamic shared memory. */
const dynamicHeader = 'mma.cuh'

/** Architectures in the result. */
const shown = ['90', '80'] as const

type Known = Omit<TextResources, 'dynamicShared'>

/** Resources of kernels, in their order. @throws usage `build.generated`, `build.report`; the signal's reason */
export async function resourcesOf(
  kernels: readonly PlacedKernel[],
  options: ResourcesOptions,
): Promise<readonly TextResources[]> {
  const found: TextResources[] = []
  const report = await readBuildReport(installation(options.root).report('cuda'))
  const built = new Map(report?.digests?.map(({ key, digest }) => [key, digest]))
  const records = new Map<string, TextRecord | undefined>()
  for (const folder of new Set(kernels.map((kernel) => kernel.folder))) records.set(folder, await readRecord(folder))
  for (const { entry, folder } of kernels) {
    const file: SourceFile = { source: entry.file, path: join(folder, entry.file), op: entry.op }
    const [headers = []] = (await keysOn(shown[0], [file])).map((keyed) => keyed.headers)
    const ofBuild = (): Known | undefined => {
      const own = report?.kernels.filter(({ source }) => source === entry.file) ?? []
      if (own.length === 0 || built.get(entry.key) !== entry.digest) return undefined
      return { from: 'build', detail: report?.compiler.version ?? '', kernels: own }
    }
    const known = (await recordedOf(file, records.get(folder))) ?? ofBuild() ?? (await compiled(file, entry.key, options))
    found.push({ ...known, dynamicShared: headers.includes(dynamicHeader) })
  }
  return found
}

/** @param version of nvcc, for a key that is the same on every machine */
async function keysOn(architecture: string, files: readonly SourceFile[], version = ''): Promise<readonly KeyedFile[]> {
  const nvcc = { path: 'nvcc', version }
  return keyFiles(await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true, nvcc }), files)
}

async function recordedOf(file: SourceFile, record: TextRecord | undefined): Promise<Known | undefined> {
  if (record === undefined) return undefined
  const places = new Set<string>()
  for (const architecture of shown) {
    for (const { source, key } of await keysOn(architecture, [file], record.nvcc))
      places.add(`${placeOf({ text: source, arch: `sm_${architecture}` })} ${shortKey(key)}`)
  }
  const kernels = record.texts.flatMap((text) => (places.has(`${placeOf(text)} ${text.key}`) ? text.resources : []))
  return kernels.length === 0 ? undefined : { from: 'record', detail: record.nvcc, kernels }
}

/** Resources by nvcc, compiled now or cached. */
async function compiled(file: SourceFile, key: string, { compile, signal, onProgress }: ResourcesOptions): Promise<Known> {
  const unknown = (detail: string): Known => ({ from: 'unknown', detail, kernels: [] })
  const nvcc = await findNvcc()
  if (nvcc === undefined) return unknown('there is no nvcc on this machine, and no record of this source')
  const cache = cacheFolder()
  const kernels: KernelResources[] = []
  for (const architecture of shown) {
    const recipe = await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true, nvcc })
    const files = await keyFiles(recipe, [file])
    if (!compile && !(await isWhole(join(cache, 'objects', unitKey(files))))) {
      return unknown(`it has not been compiled by nvcc: heddle explore ${key} compiles it`)
    }
    try {
      const objects = await compileFiles(recipe, files, { cache, signal, onProgress, spills: 'reported' })
      kernels.push(...objects.flatMap(({ resources }) => resources))
    } catch (error) {
      if (!(error instanceof HeddleError && error.code === 'build.compile')) throw error
      return unknown(`nvcc refuses ${basename(file.path)}: heddle build --target cuda --filter ${key} shows the error`)
    }
  }
  return { from: 'nvcc', detail: nvcc.version, kernels }
}
