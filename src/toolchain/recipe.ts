/** How each target turns generated text into objects and objects into a kernel library: the only place with compiler flags. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { usageError } from '../errors.js'
import { type Compiler, requireCxx, requireNvcc } from './compilers.js'
import { sha256 } from './hash.js'
import type { Target } from './paths.js'

/** GPU architectures with machine code in every CUDA kernel library. */
export const architectures = ['80', '90a'] as const

export interface Recipe {
  readonly target: Target
  readonly compiler: Compiler
  /** True if its objects are machine code of one architecture and nothing else. */
  readonly isCode: boolean
  /** Folders searched for quoted includes. */
  readonly include: readonly string[]
  /** By the names of the headers a file reaches. */
  readonly compileFlags: (headers: readonly string[]) => readonly string[]
  readonly linkFlags: readonly string[]
  /** What a library that travels is linked with besides, so that an old glibc loads it. */
  readonly portable: readonly string[]
}

const includeFolders = (native: string, target: Target): string[] => [
  join(native, 'include'),
  join(native, 'device'),
  ...(target === 'simt' ? [join(native, 'simt', 'include')] : []),
]

/**
 * Contraction into fused multiply-adds is off on the CPU device, so that results do not depend on the host's instruction set. What `-O2`
 * adds takes a third of the compiler's time and makes no model faster: a kernel's time goes into checked accesses and fibers. Text that is run on
 * small cases only takes the compiler three fifths of that with `-Og` and two fifths with `-O0`; none of them changes what arithmetic means.
 */
const simtFlags = (optimise: RecipeOptions['optimise'] = '-O1'): string[] => [
  '-std=c++17',
  optimise,
  '-DHEDDLE_SIMT=1',
  '-ffp-contract=off',
  '-fPIC',
]

/**
 * How kernels on the CPU device find their thread's data: by descriptors, which cost as much as fixed places while a process has room for
 * those (some sixty libraries) and go on working beyond. Elsewhere this is the default, or a call of the general kind does it: softmax of long rows
 * takes a quarter longer with that.
 */
const threadData = ({ version }: Compiler): string[] =>
  process.arch === 'x64' && !/clang/i.test(version) ? ['-mtls-dialect=gnu2'] : []

/** What only code for 90a may say: bodies written for that GPU include it, and no other file differs between 90a and 90. */
const hopperHeader = 'hopper.cuh'

/**
 * Every architecture as machine code, and PTX that a later GPU's driver can compile: code for 90a itself runs on 9.0 only. Most
 * files say nothing that needs 90a, so that one run of the compiler for 90 gives both their machine code and their PTX.
 */
const codeForAll = (headers: readonly string[]): string[] =>
  (headers.includes(hopperHeader)
    ? ['arch=compute_80,code=sm_80', 'arch=compute_90a,code=sm_90a', 'arch=compute_90,code=compute_90']
    : ['arch=compute_80,code=sm_80', 'arch=compute_90,code=[sm_90,compute_90]']
  ).flatMap((target) => ['-gencode', target])

/**
 * The architecture to compile for a device of the given one (`86`): code for 8.0 runs on every 8.x. Undefined where only PTX runs, which
 * a build for all architectures has.
 */
export const architectureOn = (device: string): string | undefined =>
  device === '90' ? '90' : /^8\d$/.test(device) ? '80' : undefined

/** An architecture as nvcc calls it, by its number (`90`). @throws usage `toolchain.architecture` for one that kernels are not built for */
export function knownArchitecture(number: string): string {
  const known = architectures.find((arch) => arch.replace(/\D/g, '') === number)
  if (known !== undefined) return known
  const allowed = architectures.map((arch) => `sm_${arch.replace(/\D/g, '')}`).join(', ')
  throw usageError('toolchain.architecture', `kernels are not built for sm_${number}`, { hint: `known: ${allowed}` })
}

/** Machine code for one architecture, by its number (`90`). A library for one device travels to it, so its code is compressed. */
function codeFor(architecture: string): string[] {
  const known = knownArchitecture(architecture)
  return ['-gencode', `arch=compute_${known},code=sm_${known}`, '-Xfatbin', '-compress-all']
}

/** What `recipeFor` may be asked for besides the target. */
export interface RecipeOptions {
  /** Compiles CUDA for this architecture only, such as `90`; for all of them by default. */
  readonly architecture?: string | undefined
  /** Lets profilers and checkers name lines of the generated text, which doubles a library. */
  readonly lineInfo?: boolean | undefined
  /** How far text for the CPU device is optimised, `-O1` by default: less where somebody waits for text that is run for a moment. */
  readonly optimise?: '-O0' | '-Og' | '-O1' | undefined
  /** Machine code of the one architecture and nothing to launch it with: what a check of texts looks at. */
  readonly codeOnly?: boolean | undefined
  /** Stands in for the nvcc of this machine, which may have none: keys of what another one made. */
  readonly nvcc?: Compiler | undefined
}

/**
 * Host code only launches, and is optimised accordingly. A library for all architectures is stored as it is: an archive compresses
 * what its kernels have in common, which compressed parts would hide.
 */
function cudaFlags({ architecture, lineInfo = false, codeOnly = false }: RecipeOptions): Recipe['compileFlags'] {
  const one = architecture === undefined ? undefined : codeFor(architecture)
  return (headers) => [
    '-std=c++17',
    '-O3',
    ...(lineInfo ? ['-lineinfo'] : []),
    ...(one ?? [...codeForAll(headers), '--no-compress']),
    ...['-Xcompiler', '-fPIC,-O1'],
    ...['-Xptxas', '-v'],
    ...['-Werror', 'all-warnings'],
    ...(codeOnly ? ['-cubin'] : []),
  ]
}

/**
 * Shared objects carry their C++ runtime, since the machine they are unpacked on may have an older one or none, and keep it to
 * themselves, since Node carries another.
 */
export const hostRuntime = ['-static-libstdc++', '-static-libgcc', '-Wl,--exclude-libs,ALL'] as const

/** @throws environment `toolchain.cxx` or `toolchain.nvcc` when the target's compiler is missing; usage `toolchain.architecture` */
export async function recipeFor(target: Target, packageRoot: string, options: RecipeOptions = {}): Promise<Recipe> {
  const include = includeFolders(join(packageRoot, 'native'), target)
  const shim = join(packageRoot, 'native', 'portable', 'glibc.cpp')
  // The digest makes another text another link.
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

/** Arguments that compile `source` (generated text, or the C++ registry), which reaches `headers`, into `object`. */
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
