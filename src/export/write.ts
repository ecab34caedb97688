/**
 * Writes an export: a folder that builds with CMake and a compiler alone. It holds sources of programs, their kernels, their shared headers, an
 * example of each, and Python files that make programs ops of PyTorch.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { Place } from '../output.js'
import { type Made, writeListed } from '../output_listed.js'
import { packageRoot, type SearchedManifest, type Target } from '../toolchain/index.js'
import { cmakeText } from './cmake.js'
import { exampleText } from './example.js'
import type { LoweredGenerator } from './generator.js'
import { generatorExample } from './generator_example.js'
import { generatorHeader, generatorWrapper } from './generator_header.js'
import { generatorText, programText } from './generator_source.js'
import { headerText } from './header.js'
import { examplesOf, type Library, libraryHeader } from './library.js'
import { keysOf, type Lowered } from './lowered.js'
import { generatorReadme, libraryReadme, programReadme } from './readme.js'
import { sourceText } from './source.js'
import { generatorTorch, torchText } from './torch.js'

export interface WriteOptions {
  readonly out: string
  readonly searched: SearchedManifest
  /** Default target of the folder's CMake build. */
  readonly target: Target
  /** The project, which is not part of the folder. */
  readonly place: Place
  /** Writes the weights of a model to a path, for exports with weights. */
  readonly weights?: ((path: string) => Promise<void>) | undefined
}

/** Files of the package, by their paths in the folder. */
type Shared = readonly (readonly [from: string, to: string])[]

const shared: Shared = [
  ['include/heddle/abi.h', 'include/heddle/abi.h'],
  ['include/heddle/algorithms.h', 'include/heddle/algorithms.h'],
  ['include/heddle/export.h', 'include/heddle/export.h'],
  ['export/example/tensors.hpp', 'example/tensors.hpp'],
  ['export/gather_tree_torch.py', 'gather_tree_torch.py'],
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
    ...['algorithm_search.cpp', 'algorithm_search.hpp', 'algorithm_space.hpp'],
    ...['cublaslt.cpp', 'cublaslt.hpp', 'device.hpp', 'error.cpp', 'fallback_matmul.cu'],
    ...['matmul.cpp', 'matmul_plan.cpp', 'matmul_plan.hpp', 'matmul_problem.cpp', 'matmul_problem.hpp'],
  ].map((name) => [`cuda/${name}`, `src/cuda/${name}`] as const),
]

/** Additional files of a generator. */
const sharedByGenerators: Shared = [
  ['include/heddle/generate.h', 'include/heddle/generate.h'],
  ['include/heddle/gather_tree.h', 'include/heddle/gather_tree.h'],
  ['export/example/tensors.hpp', 'include/heddle/tensors.hpp'],
  ...[
    ...['generate.hpp', 'generate.cpp', 'generate_options.cpp', 'generate_ranges.cpp'],
    ...['generate_start.cpp', 'generate_texts.cpp'],
  ].map((name) => [`export/${name}`, `src/export/${name}`] as const),
]

/**
 * Writes the files that differ from those in the folder, and removes files of an earlier export that are no longer wanted.
 * @returns the program's own files, relative to the folder, and those that were written or removed
 * @throws usage `export.name`, `output.folder`, `output.file`; environment `cache.full`, `cache.write`; what writing the weights throws
 */
export async function writeExport(
  library: Library,
  options: WriteOptions,
): Promise<{ readonly files: readonly string[]; readonly changed: readonly string[] }> {
  const { name, programs } = library
  const texts = kernelsOf(
    programs.map(({ lowered }) => lowered),
    options.searched,
  )
  const examples = examplesOf(library)
  const [first] = programs
  const sources = programs.map(({ names }) => `src/${names.program}.cpp`)
  const readme =
    first === undefined || programs.length > 1
      ? libraryReadme(library, options.target)
      : programReadme(first, name, options.target, options.weights !== undefined)
  const own = new Map<string, Made>([
    [
      'CMakeLists.txt',
      cmakeText(
        name,
        [...texts.keys()].sort(),
        options.target,
        sources,
        examples.map(([example]) => example),
      ),
    ],
    ...(name === first?.names.program ? [] : [[`include/${name}.h`, libraryHeader(library)] as const]),
    ...examples.flatMap(([example, { lowered, names }]): readonly (readonly [string, string])[] => [
      [`include/${names.program}.h`, headerText(lowered, names)],
      [`src/${names.program}.cpp`, sourceText(lowered, names)],
      [example.file, exampleText(lowered, names)],
      [`${names.program}_torch.py`, torchText(lowered, names, name)],
    ]),
    ['README.md', readme],
  ])
  return writeFolder(own, texts, shared, options)
}

/** Writes the folder of a generator, as `writeExport` does for a program. */
export async function writeGenerator(
  generator: LoweredGenerator,
  options: WriteOptions,
): Promise<{ readonly files: readonly string[]; readonly changed: readonly string[] }> {
  const { name } = generator.parts
  const programs = [generator.reader, ...generator.steppers]
  const texts = kernelsOf(
    programs.map(({ lowered }) => lowered),
    options.searched,
  )
  const sources = [name, ...programs.map((each) => each.name)].map((each) => `src/${each}.cpp`)
  const needed = sharedByGenerators.flatMap(([, to]) => (to.endsWith('.cpp') ? [to] : []))
  const own = new Map<string, Made>([
    ['CMakeLists.txt', cmakeText(name, [...texts.keys()].sort(), options.target, [...sources, ...needed])],
    [`include/${name}.h`, generatorHeader(generator)],
    [`include/${name}.hpp`, generatorWrapper(generator)],
    [`src/${name}.cpp`, generatorText(generator)],
    ...programs.map((each) => [`src/${each.name}.cpp`, programText(each)] as const),
    ['example/main.cpp', generatorExample(generator)],
    [`${name}_torch.py`, generatorTorch(generator)],
    ['README.md', generatorReadme(generator, options.target)],
  ])
  return writeFolder(own, texts, [...shared, ...sharedByGenerators], options)
}

/** Sources of the kernels that programs launch, by file name. */
function kernelsOf(programs: readonly Lowered[], searched: SearchedManifest): ReadonlyMap<string, string> {
  const entries = new Map(searched.manifest.kernels.map((entry) => [entry.key, entry]))
  const texts = new Map<string, string>()
  for (const key of programs.flatMap(({ steps }) => steps.flatMap(keysOf))) {
    const entry = entries.get(key)
    if (entry !== undefined) texts.set(basename(entry.file), join(searched.folderOf(key), entry.file))
  }
  return texts
}

async function writeFolder(
  own: Map<string, Made>,
  kernels: ReadonlyMap<string, string>,
  fromPackage: Shared,
  { out, place, weights }: WriteOptions,
): Promise<{ readonly files: readonly string[]; readonly changed: readonly string[] }> {
  for (const [name, from] of kernels) own.set(`kernels/${name}`, await readFile(from, 'utf8'))
  const files = [...own.keys()].sort()
  if (weights !== undefined) own.set('weights.safetensors', weights)
  for (const [from, to] of fromPackage) await addShared(join(packageRoot(), 'native', from), to, own)
  const changed = await writeListed(out, own, place)
  return { files: weights === undefined ? files : [...files, 'weights.safetensors'], changed }
}

/** Adds a file of the package, or all files below a folder of it. */
async function addShared(from: string, to: string, files: Map<string, Made>): Promise<void> {
  if ((await stat(from)).isFile()) {
    files.set(to, await readFile(from))
    return
  }
  for (const name of (await readdir(from)).sort()) await addShared(join(from, name), `${to}/${name}`, files)
}
