/** Compile and link commands of each target, from generated source to a kernel library: the only place with compiler flags. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { type Compiler, requireCxx, requireNvcc } from './compilers.js'
import { sha256 } from './hash.js'
import type { Target } from './paths.js'

/** GPU architectures with machine code in every CUDA kernel library. */
export const architectures = ['80', '90a'] as const

/** Architectures on request. Sources compile for them; no kernel was run or tuned on one of them. */
export const compiledOnly = ['86', '89', '100', '120'] as const

export interface Recipe {
  readonly target: Target
  readonly compiler: Compiler
  /** True if its objects are machine code of one architecture and nothing else. */
  readonly isCode: boolean
  /** Folders searched for quoted includes. */
  readonly include: readonly string[]
  /** Flags by the names of the headers that a file reaches. */
  readonly compileFlags: (headers: readonly string[]) => readonly string[]
  readonly linkFlags: readonly string[]
  /** Additional link inputs of a portable library, so that an old glibc loads it. */
  readonly portable: readonly string[]
}

/** Folders of the headers that generated source includes. @param native the folder `native` of the package */
export const includeFolders = (native: string, target: Target): string[] => [
  join(native, 'include'),
  join(native, 'device'),
  ...(target === 'simt' ? [join(native, 'simt', 'include')] : []),
]

const optimisations = ['-O0', '-Og', '-O1'] as const
type Optimisation = (typeof optimisations)[number]

/** Level of source for the CPU device where the caller names none: $HEDDLE_SIMT_OPTIMISE, or `-O1`. @throws usage `toolchain.optimise` */
function usualOptimisation(stated = process.env.HEDDLE_SIMT_OPTIMISE): Optimisation {
  if (stated === undefined || stated === '') return '-O1'
  const known = optimisations.find((level) => level === stated)
  if (known !== undefined) return known
  throw usageError(
    'toolchain.optimise',
    `HEDDLE_SIMT_OPTIMISE: expected a level of optimisation, got ${JSON.stringify(stated)}`,
    {
      hint: `give one of ${optimisations.join(', ')}`,
    },
  )
}

/**
 * Contraction into fused multiply-adds is off on the CPU device, so that results do not depend on the host's instruction set. The additional
 * optimisations of `-O2` take a third of the compile time and make no model faster: a kernel spends its time in checked accesses and fibers.
 * Kernels that only run on small cases compile in three fifths of that time with `-Og` and in two fifths with `-O0`. None of these flags changes
 * the semantics of arithmetic.
 */
export const simtFlags = (optimise: Optimisation = usualOptimisation()): string[] => [
  '-std=c++17',
  optimise,
  '-DHEDDLE_SIMT=1',
  '-ffp-contract=off',
  '-fPIC',
]

/**
 * Thread-local storage of kernels on the CPU device: by TLS descriptors, which cost as much as static TLS while a process has space for it (some
 * sixty libraries), and still work beyond that. Elsewhere descriptors are the default, or the general dynamic model is used: softmax of long
 * rows takes a quarter longer with that.
 */
const threadData = ({ version }: Compiler): string[] =>
  process.arch === 'x64' && !/clang/i.test(version) ? ['-mtls-dialect=gnu2'] : []

/** Header with code for 90a only: bodies written for that GPU include it, and no other file differs between 90a and 90. */
const hopperHeader = 'hopper.cuh'

/**
 * Flags for machine code of every architecture, and PTX that the driver of a later GPU can compile: code for 90a itself runs on 9.0 only. Most
 * files do not need 90a, so that one compilation for 90 gives both their machine code and their PTX.
 */
const codeForAll = (headers: readonly string[]): string[] =>
  (headers.includes(hopperHeader)
    ? ['arch=compute_80,code=sm_80', 'arch=compute_90a,code=sm_90a', 'arch=compute_90,code=compute_90']
    : ['arch=compute_80,code=sm_80', 'arch=compute_90,code=[sm_90,compute_90]']
  ).flatMap((target) => ['-gencode', target])

/**
 * Architecture to compile for on a device of the given one (`86`): code for 8.0 runs on every 8.x. Undefined if only PTX runs, which a build
 * for all architectures has.
 */
export const architectureOn = (device: string): string | undefined =>
  device === '90' ? '90' : /^8\d$/.test(device) ? '80' : undefined

/** nvcc's name of an architecture, by its number (`90`). @throws usage `toolchain.architecture` for an unsupported one */
export function knownArchitecture(number: string): string {
  const all = [...architectures, ...compiledOnly]
  const known = all.find((arch) => arch.replace(/\D/g, '') === number)
  if (known !== undefined) return known
  const allowed = all.map((arch) => `sm_${arch.replace(/\D/g, '')}`).join(', ')
  throw usageError('toolchain.architecture', `kernels are not built for sm_${number}`, { hint: `known: ${allowed}` })
}

/** Flags for machine code of some architectures, by numbers (`89,90`). A library for one device is copied to it, so its code is compressed. */
function codeFor(list: string): string[] {
  const known = [...new Set(list.split(',').map(knownArchitecture))]
  return [...known.flatMap((each) => ['-gencode', `arch=compute_${each},code=sm_${each}`]), '-Xfatbin', '-compress-all']
}

/** Options of `recipeFor` besides the target. */
export interface RecipeOptions {
  /** Compiles CUDA for these architectures only, such as `90` or `80,89`; by default for all that have been measured. */
  readonly architecture?: string | undefined
  /** Adds line information of the generated source for profilers and checkers, which doubles the size of a library. */
  readonly lineInfo?: boolean | undefined
  /** Optimisation level of source for the CPU device, by default $HEDDLE_SIMT_OPTIMISE or `-O1`: lower for kernels that run briefly while a user waits. */
  readonly optimise?: Optimisation | undefined
  /** Emits machine code of one architecture without host code to launch it (a cubin), for checks of sources. */
  readonly codeOnly?: boolean | undefined
  /** Replaces the nvcc of this machine, which may have none: for keys of objects that another version compiled. */
  readonly nvcc?: Compiler | undefined
}

/** Flags that results on a GPU depend on. */
export const gpuFlags = ['-std=c++17', '-O3'] as const

/**
 * Host code only launches, and is optimised accordingly. A library for all architectures is stored uncompressed: an archive compresses the
 * similarities of its kernels, which compressed parts would hide.
 */
function cudaFlags({ architecture, lineInfo = false, codeOnly = false }: RecipeOptions): Recipe['compileFlags'] {
  const one = architecture === undefined ? undefined : codeFor(architecture)
  return (headers) => [
    ...gpuFlags,
    ...(lineInfo ? ['-lineinfo'] : []),
    ...(one ?? [...codeForAll(headers), '--no-compress']),
    ...['-Xcompiler', '-fPIC,-O1'],
    ...['-Xptxas', '-v'],
    ...['-Werror', 'all-warnings'],
    ...(codeOnly ? ['-cubin'] : []),
  ]
}

/**
 * Shared objects link their C++ runtime statically, since the target machine may have an older one or none, and hide its symbols, since Node has
 * another.
 */
export const hostRuntime = ['-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL'] as const

/** @throws environment `toolchain.cxx` or `toolchain.nvcc` when the target's compiler is missing; usage `toolchain.architecture` */
export async function recipeFor(target: Target, packageRoot: string, options: RecipeOptions = {}): Promise<Recipe> {
  const include = includeFolders(join(packageRoot, 'native'), target)
  const shim = join(packageRoot, 'native', 'portable', 'glibc.cpp')
  // The digest makes a changed source a different link key.
  const portable = [
    shim,
    '-O2',
    `-DHEDDLE_PORTABLE_GLIBC=0x${sha256(await readFile(shim).catch(() => new Uint8Array())).slice(0, 8)}`,
  ]
  if (target === 'simt') {
    const compiler = await requireCxx()
    const flags = [...simtFlags(options.optimise), ...threadData(compiler)]
    return {
      target,
      compiler,
      isCode: false,
      include,
      compileFlags: () => flags,
      linkFlags: ['-shared', ...hostRuntime],
      portable: [...portable, '-fPIC'],
    }
  }
  return {
    target,
    compiler: options.nvcc ?? (await requireNvcc()),
    isCode: options.codeOnly === true,
    include,
    compileFlags: cudaFlags(options),
    linkFlags: ['-shared', ...hostRuntime.flatMap((flag) => ['-Xcompiler', `"${flag}"`])],
    portable: [...portable, '-Xcompiler', '-fPIC'],
  }
}

/** Arguments that compile `source` (a generated file, or the C++ registry), which reaches `headers`, into `object`. */
export function compileArguments(recipe: Recipe, source: string, headers: readonly string[], object: string): string[] {
  const flags = recipe.compileFlags(headers)
  return [
    ...(recipe.target === 'simt' ? ['-x', 'c++'] : []),
    ...flags,
    ...recipe.include.flatMap((folder) => ['-I', folder]),
    ...(recipe.isCode ? [] : ['-c']),
    source,
    '-o',
    object,
  ]
}

export const linkArguments = (recipe: Recipe, objects: readonly string[], library: string): string[] => [
  ...recipe.linkFlags,
  ...objects,
  '-o',
  library,
]
