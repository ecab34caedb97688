/**
 * Writes an export: a folder that builds with CMake and a compiler alone. It holds the program's text, its kernels, what both include,
 * an example, and a Python file that makes the program an op of PyTorch.
 */
import { cp, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { usageError } from '../errors.js'
import { packageRoot, type SearchedManifest, type Target } from '../toolchain/index.js'
import { cmakeText } from './cmake.js'
import { exampleText } from './example.js'
import { headerText, namesOf } from './header.js'
import type { Lowered } from './lowered.js'
import { sourceText } from './source.js'
import { torchText } from './torch.js'

export interface WriteOptions {
  readonly out: string
  readonly searched: SearchedManifest
  /** What the folder is built for unless CMake is told otherwise. */
  readonly target: Target
}

/** Of the package, by their places in the folder. */
const shared: readonly (readonly [from: string, to: string])[] = [
  ['include/heddle/abi.h', 'include/heddle/abi.h'],
  ['include/heddle/export.h', 'include/heddle/export.h'],
  ['export/example/tensors.hpp', 'example/tensors.hpp'],
  ...[
    'backend.hpp',
    'backend_cuda.cpp',
    'backend_simt.cpp',
    'fail.hpp',
    'place.cpp',
    'program.cpp',
    'program.hpp',
    'replays_cuda.hpp',
    'weights.cpp',
  ].map((name) => [`export/${name}`, `src/export/${name}`] as const),
  ['device', 'src/device'],
  ['simt/include', 'src/simt/include'],
  ...['matmul.cpp', 'matmul.hpp', 'matmul_epilogue.hpp', 'matmul_tile.hpp', 'memory.hpp', 'workers.cpp', 'workers.hpp'].map(
    (name) => [`simt/plugin/${name}`, `src/simt/plugin/${name}`] as const,
  ),
  ...[
    ...['cublaslt.cpp', 'cublaslt.hpp', 'device.hpp', 'error.cpp', 'fallback_matmul.cu'],
    ...['matmul.cpp', 'matmul_problem.cpp', 'matmul_problem.hpp'],
  ].map((name) => [`cuda/${name}`, `src/cuda/${name}`] as const),
]

/** @returns the files that are the program's own, below the folder @throws usage `export.name`, `export.write` */
export async function writeExport(lowered: Lowered, { out, searched, target }: WriteOptions): Promise<readonly string[]> {
  const names = namesOf(lowered)
  const { program } = names
  const entries = new Map(searched.manifest.kernels.map((entry) => [entry.key, entry]))
  const files = new Map<string, string>()
  for (const key of lowered.steps.flatMap((step) => step.key ?? [])) {
    const entry = entries.get(key)
    if (entry !== undefined) files.set(basename(entry.file), join(searched.folderOf(key), entry.file))
  }
  const kernels = [...files.keys()].sort()
  const own: Record<string, string> = {
    'CMakeLists.txt': cmakeText(program, kernels, target),
    [`include/${program}.h`]: headerText(lowered, names),
    [`src/${program}.cpp`]: sourceText(lowered, names),
    'example/main.cpp': exampleText(lowered, names),
    [`${program}_torch.py`]: torchText(lowered, names),
  }
  for (const [name, from] of files) own[`kernels/${name}`] = await readFile(from, 'utf8')
  try {
    for (const [name, text] of Object.entries(own)) {
      const path = join(out, name)
      await mkdir(dirname(path), { recursive: true })
      await writeFile(path, text)
    }
    for (const [from, to] of shared) {
      const path = join(out, to)
      await mkdir(dirname(path), { recursive: true })
      await cp(join(packageRoot(), 'native', from), path, { recursive: true })
    }
  } catch (cause) {
    throw usageError('export.write', `cannot write to ${out}: ${cause instanceof Error ? cause.message : String(cause)}`, {
      cause,
    })
  }
  return Object.keys(own).sort()
}
