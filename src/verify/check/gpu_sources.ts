/**
 * Compiles the sources of a check with nvcc, for kernels that run on the CPU device: a kernel that is correct there may still not build for a GPU,
 * or spill. Runs at the end of `heddle check` if nvcc is installed; objects are cached by the content of their source, so the next check is free.
 */
import { cacheFolder } from '../../cache_folder.js'
import type { KernelEntry } from '../../emit/manifest/manifest.js'
import { HeddleError } from '../../errors.js'
import { oneOfEachOp } from '../../toolchain/check_texts.js'
import { findNvcc, requireNvcc } from '../../toolchain/compilers.js'
import { compileFiles } from '../../toolchain/objects.js'
import { packageRoot } from '../../toolchain/paths.js'
import { recipeFor } from '../../toolchain/recipe.js'
import { keyFiles } from '../../toolchain/sources.js'
import type { PreparedText } from './prepare.js'

/** `brief`: one source per op and at most `mostSources` of them, if nvcc is installed; `all`: every source, and nvcc is required. */
export type GpuBuild = 'brief' | 'all'

/** Results of nvcc. */
export interface GpuSources {
  readonly nvcc: string
  /** Number of sources that were compiled, now or earlier into the cache. */
  readonly compiled: number
  /** Number of sources of the checked kernels. */
  readonly sources: number
  /** Compile errors, warnings and spills. */
  readonly findings: readonly string[]
}

/** Most sources of a brief build: each takes nvcc some seconds. */
export const mostSources = 24

/** The architecture with its own code for matmuls and attention. */
const architecture = '90'

/**
 * @param entries the checked kernels
 * @returns undefined if a brief build finds no nvcc
 * @throws environment `toolchain.nvcc` if all sources are requested without one; environment `cache.*`; the signal's reason
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
