/** How each target turns generated text into objects and objects into a kernel library: the only place with compiler flags. */
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { type Compiler, requireCxx, requireNvcc } from './compilers.js'
import type { Target } from './paths.js'

/** GPU architectures with machine code in every CUDA kernel library. */
export const architectures = ['80', '90a'] as const

export interface Recipe {
  readonly target: Target
  readonly compiler: Compiler
  /** Folders searched for quoted includes. */
  readonly include: readonly string[]
  readonly compileFlags: readonly string[]
  readonly linkFlags: readonly string[]
}

const includeFolders = (native: string, target: Target): string[] => [
  join(native, 'include'),
  join(native, 'device'),
  ...(target === 'simt' ? [join(native, 'simt', 'include')] : []),
]

/** Contraction into fused multiply-adds is off on the CPU device, so that results do not depend on the host's instruction set. */
const simtFlags = ['-std=c++17', '-O2', '-DHEDDLE_SIMT=1', '-ffp-contract=off', '-fPIC']

/** Every architecture as machine code, and PTX that a later GPU's driver can compile: code for 90a itself runs on 9.0 only. */
const targets: readonly string[] = [
  ...architectures.map((arch) => `arch=compute_${arch},code=sm_${arch}`),
  'arch=compute_90,code=compute_90',
]

/** Machine code for one architecture, by its number (`90`). A library for one device travels to it, so its code is compressed. */
function codeFor(architecture: string): string[] {
  const known = architectures.find((arch) => arch.replace(/\D/g, '') === architecture)
  if (known === undefined) {
    const allowed = architectures.map((arch) => `sm_${arch.replace(/\D/g, '')}`).join(', ')
    throw usageError('toolchain.architecture', `kernels are not built for sm_${architecture}`, { hint: `known: ${allowed}` })
  }
  return ['-gencode', `arch=compute_${known},code=sm_${known}`, '-Xfatbin', '-compress-all']
}

const cudaFlags = (architecture: string | undefined): string[] => [
  '-std=c++17',
  '-O3',
  '-lineinfo',
  ...(architecture === undefined ? targets.flatMap((target) => ['-gencode', target]) : codeFor(architecture)),
  ...['-Xcompiler', '-fPIC'],
  ...['-Xptxas', '-v'],
  ...['-Werror', 'all-warnings'],
]

/**
 * Shared objects carry their C++ runtime, since the machine they are unpacked on may have an older one or none, and keep it to
 * themselves, since Node carries another.
 */
export const hostRuntime = ['-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL'] as const

/**
 * @param architecture compiles CUDA for this one only, such as `90`; for all of them by default
 * @throws environment `toolchain.cxx` or `toolchain.nvcc` when the target's compiler is missing; usage `toolchain.architecture`
 */
export async function recipeFor(target: Target, packageRoot: string, architecture?: string): Promise<Recipe> {
  const include = includeFolders(join(packageRoot, 'native'), target)
  return target === 'simt'
    ? {
        target,
        compiler: await requireCxx(),
        include,
        compileFlags: simtFlags,
        linkFlags: ['-shared', ...hostRuntime],
      }
    : {
        target,
        compiler: await requireNvcc(),
        include,
        compileFlags: cudaFlags(architecture),
        linkFlags: ['-shared', ...hostRuntime.flatMap((flag) => ['-Xcompiler', `"${flag}"`])],
      }
}

/** Arguments that compile `source` (generated text, or the C++ registry) into `object`. */
export const compileArguments = (recipe: Recipe, source: string, object: string): string[] => [
  ...(recipe.target === 'simt' ? ['-x', 'c++'] : []),
  ...recipe.compileFlags,
  ...recipe.include.flatMap((folder) => ['-I', folder]),
  '-c',
  source,
  '-o',
  object,
]

export const linkArguments = (recipe: Recipe, objects: readonly string[], library: string): string[] => [
  ...recipe.linkFlags,
  ...objects,
  '-o',
  library,
]
