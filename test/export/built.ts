/** Exports built and run: by CMake as their users do, or, for speed, linked with kernels that the run in Node has compiled already. */
import { rmSync } from 'node:fs'
import { mkdtemp, readdir, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { formatSafetensors, parseSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import { demandKernels, findCxx, runTool, searchManifests } from '../../src/toolchain/index.js'

export type Tensors = Readonly<Record<string, StoredTensor>>

export interface Built {
  readonly folder: string
  /** Runs the example; an error is its output. */
  run(weights: Tensors, inputs: Tensors, dims: Readonly<Record<string, number>>, repeats?: number): Promise<Tensors>
}

export const i32 = (shape: readonly number[], values: Iterable<number>): StoredTensor => ({
  dtype: 'I32',
  shape,
  data: new Uint8Array(Int32Array.from(values).buffer),
})

export const f32 = (shape: readonly number[], values: Iterable<number>): StoredTensor => ({
  dtype: 'F32',
  shape,
  data: new Uint8Array(Float32Array.from(values).buffer),
})

export async function readTensors(path: string): Promise<Tensors> {
  return Object.fromEntries(parseSafetensors(new Uint8Array(await readFile(path)), path).tensors)
}

async function tool(path: string, args: readonly string[]): Promise<void> {
  const { exitCode, stdout, stderr } = await runTool(path, [...args], {})
  if (exitCode !== 0) throw new Error(`${path} ${args.join(' ')}\n${stdout}\n${stderr}`)
}

const running = (folder: string, example: string): Built => ({
  folder,
  async run(weights, inputs, dims, repeats = 1) {
    const [from, given, to] = ['weights', 'inputs', 'outputs'].map((name) => join(folder, `run_${name}.safetensors`))
    await writeFile(from ?? '', formatSafetensors(Object.entries(weights)))
    await writeFile(given ?? '', formatSafetensors(Object.entries(inputs)))
    const sizes = Object.entries(dims).map(([dim, size]) => `${dim}=${size}`)
    const { exitCode, stderr } = await runTool(example, [from ?? '', given ?? '', to ?? '', String(repeats), ...sizes], {})
    if (exitCode !== 0) throw new Error(stderr)
    return readTensors(to ?? '')
  },
})

/** By CMake, for CUDA as machine code of one GPU. */
export async function builtByCmake(
  folder: string,
  target: 'simt' | 'cuda' = 'simt',
  flags: readonly string[] = [],
): Promise<Built> {
  const build = join(folder, 'build')
  await tool('cmake', ['-S', folder, '-B', build, `-DHEDDLE_TARGET=${target}`, '-DCMAKE_CUDA_ARCHITECTURES=90a-real', ...flags])
  await tool('cmake', ['--build', build, '--parallel', '2'])
  return running(folder, join(build, 'example'))
}

/** Linked with kernels of the cache, compiled from the same source as those of a run in Node. */
export const linked = async (root: string, folder: string, program: string): Promise<Built> =>
  running(folder, await linkedTo(join(folder, 'example/main.cpp'), root, folder, [program]))

/** A text that a generator's example printed. */
export interface Printed {
  readonly prompt: number
  readonly finish: number
  readonly logProbability: number
  readonly score: number
  readonly ids: readonly number[]
}

export interface BuiltGenerator {
  readonly folder: string
  /** Runs the example; an error is its output. @returns texts, and the words of steps on request */
  run(
    prompts: readonly (readonly number[])[],
    options: Readonly<Record<string, number | readonly number[]>>,
  ): Promise<{ readonly texts: readonly Printed[]; readonly steps: readonly (readonly number[])[] }>
}

const generating = (folder: string, example: string): BuiltGenerator => ({
  folder,
  async run(prompts, options) {
    const file = join(folder, 'prompts.txt')
    await writeFile(file, prompts.map((ids) => `${ids.join(' ')}\n`).join(''))
    const given = Object.entries(options).flatMap(([name, value]) => [value].flat().map((each) => `${name}=${each}`))
    const { exitCode, stdout, stderr } = await runTool(example, [join(folder, 'weights.safetensors'), file, ...given], {})
    if (exitCode !== 0) throw new Error(stderr)
    const lines = stdout.split('\n').map((line) => line.split(' '))
    const texts = lines.filter(([first]) => first !== 'words').map((words) => words.map(Number))
    return {
      texts: texts.map(([prompt = -1, finish = -1, logProbability = 0, score = 0, ...ids]) => ({
        prompt,
        finish,
        logProbability,
        score,
        ids,
      })),
      steps: lines.flatMap(([first, ...words]) => (first === 'words' ? [words.map(Number)] : [])),
    }
  },
})

/** A generator, built by CMake; kernels at the level of the tests, and other sources but matmuls without optimisation, which would cost more time than it saves. */
export async function generatorByCmake(folder: string): Promise<BuiltGenerator> {
  const [file, usual] = [join(folder, 'CMakeLists.txt'), '-xc++;-O1;']
  const text = await readFile(file, 'utf8')
  if (!text.includes(usual)) throw new Error(`expected kernels with the options ${usual}, got\n${text}`)
  await writeFile(file, text.replace(usual, `-xc++;${process.env.HEDDLE_SIMT_OPTIMISE ?? '-O1'};`))
  const { folder: built } = await builtByCmake(folder, 'simt', ['-DCMAKE_CXX_FLAGS_RELEASE=-O0'])
  return generating(built, join(built, 'build', 'example'))
}

/** A generator, linked with kernels of the cache. */
export async function linkedGenerator(root: string, folder: string, name: string): Promise<BuiltGenerator> {
  const programs = (await readdir(join(folder, 'src'))).filter((file) => file.endsWith('.cpp')).map((file) => file.slice(0, -4))
  const needed = ['generate', 'generate_options', 'generate_start', 'generate_texts', 'generate_ranges'].map(
    (file) => `src/export/${file}.cpp`,
  )
  if (!programs.includes(name)) throw new Error(`expected ${folder}/src to have ${name}.cpp, got ${programs.join(', ')}`)
  return generating(folder, await linkedTo(join(folder, 'example/main.cpp'), root, folder, programs, needed))
}

/** A program in C++ linked with an export as the example is; returns its path. */
export async function linkedTo(
  main: string,
  root: string,
  folder: string,
  programs: readonly string[],
  needed: readonly string[] = [],
): Promise<string> {
  const { path: cxx } = (await findCxx()) ?? { path: 'c++' }
  const texts = await Promise.all(programs.map((program) => readFile(join(folder, 'src', `${program}.cpp`), 'utf8')))
  const keys = new Set(texts.flatMap((text) => [...text.matchAll(/heddle_launch_(\w+)\(/g)].map(([, key]) => key)))
  const searched = await searchManifests(root)
  const kernels = searched.manifest.kernels.filter(({ key }) => keys.has(key))
  const placed = kernels.map((entry) => ({ entry, folder: searched.folderOf(entry.key) }))
  const { library } = await demandKernels(placed, { root, target: 'simt', signal: undefined })
  const runtime = await runtimeObjects(cxx, folder)
  const made = join(folder, `linked_${basename(main, '.cpp')}`)
  const own = ['include', 'src/export', 'example'].flatMap((name) => ['-I', join(folder, name)])
  const sources = [...[...programs.map((program) => `src/${program}.cpp`), ...needed].map((file) => join(folder, file)), main]
  await tool(cxx, [
    '-std=c++17',
    '-O0',
    '-Wall',
    '-Wextra',
    '-Werror',
    ...own,
    ...sources,
    ...runtime,
    library,
    '-pthread',
    '-o',
    made,
  ])
  return made
}

let objects: Promise<readonly string[]> | undefined

/** The objects that every export needs, compiled once for all test files of a worker: the folder of the first export may be gone by then. */
const runtimeObjects = (cxx: string, folder: string): Promise<readonly string[]> => {
  objects ??= compiled(cxx, folder)
  return objects
}

async function compiled(cxx: string, folder: string): Promise<readonly string[]> {
  const out = await mkdtemp(join(tmpdir(), 'heddle-objects-'))
  process.once('exit', () => rmSync(out, { recursive: true, force: true }))
  const include = ['include', 'src/export', 'src/simt/include', 'src/simt/plugin'].flatMap((name) => ['-I', join(folder, name)])
  const sources: readonly (readonly [string, readonly string[]])[] = [
    ...['program', 'place', 'weights', 'backend_simt'].map((name) => [`src/export/${name}.cpp`, ['-O1']] as const),
    ['src/simt/plugin/matmul.cpp', ['-O3', '-ffp-contract=fast']],
    ['src/simt/plugin/workers.cpp', ['-O1']],
  ]
  const objects: string[] = []
  for (const [source, flags] of sources) {
    const object = join(out, `${source.replace(/\W/g, '_')}.o`)
    await tool(cxx, ['-std=c++17', ...flags, '-Wall', '-Wextra', '-Werror', ...include, '-c', join(folder, source), '-o', object])
    objects.push(object)
  }
  return objects
}
