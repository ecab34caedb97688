/**
 * Holds the sources of a check against nvcc, for kernels that run on the CPU device: what is right there may still not build for a GPU, or
 * spill. Runs at the end of `heddle check`, where nvcc is; an object is found by the content of its source, so that the next check is free.
 */
import { cacheFolder } from '../../cache_folder.js'
import type { KernelEntry } from '../../emit/manifest.js'
import { HeddleError } from '../../errors.js'
import { oneOfEachOp } from '../../toolchain/check_texts.js'
import { findNvcc, requireNvcc } from '../../toolchain/compilers.js'
import { compileFiles } from '../../toolchain/objects.js'
import { packageRoot } from '../../toolchain/paths.js'
import { recipeFor } from '../../toolchain/recipe.js'
import { keyFiles } from '../../toolchain/sources.js'
import type { PreparedText } from './prepare.js'

/** `brief`: one source of each op and at most `mostSources` of them, where nvcc is; `all`: every source, and nvcc has to be there. */
export type GpuBuild = 'brief' | 'all'

/** What nvcc said. */
export interface GpuSources {
  readonly nvcc: string
  /** Sources that were compiled, now or into the cache. */
  readonly compiled: number
  /** Sources of the kernels that were checked. */
  readonly sources: number
  /** What does not compile, is warned of, or spills. */
  readonly findings: readonly string[]
}

/** A source takes nvcc some seconds. */
export const mostSources = 24

/** The architecture whose products and attention have code of their own. */
const architecture = '90'

/**
 * @param entries the kernels that were checked
 * @returns undefined where a brief build finds no nvcc
 * @throws environment `toolchain.nvcc` where all sources are asked for without one; environment `cache.*`; the signal's reason
 */
export async function compileForGpu(
  entries: readonly KernelEntry[],
  { searched }: Pick<PreparedText, 'searched'>,
  build: GpuBuild,
  signal?: AbortSignal,
): Promise<GpuSources | undefined> {
  const nvcc = build === 'all' ? await requireNvcc() : await findNvcc()
  if (nvcc === undefined) return undefined
  const files = entries.map(({ key, op, file }) => ({ op, source: file, path: `${searched.folderOf(key)}/${file}` }))
  const all = [...new Map(files.map((file) => [file.path, file])).values()]
  const chosen = build === 'all' ? all : oneOfEachOp(all).slice(0, mostSources)
  const recipe = await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true, nvcc })
  const findings: string[] = []
  try {
    await compileFiles(recipe, await keyFiles(recipe, chosen), { cache: cacheFolder(), signal })
  } catch (error) {
    signal?.throwIfAborted()
    if (!(error instanceof HeddleError) || (error.code !== 'build.compile' && error.code !== 'build.spill')) throw error
    findings.push(error.hint === undefined ? error.message : `${error.message}; ${error.hint}`)
  }
  return { nvcc: nvcc.version, compiled: chosen.length, sources: all.length, findings }
}
