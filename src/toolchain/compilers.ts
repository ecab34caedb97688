/** Finds compilers and their versions. Each finder returns undefined if there is none; `require*` throw an error. */
import { access, constants, stat } from 'node:fs/promises'
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { environmentError } from '../errors.js'
import { runTool } from './process.js'

export interface Compiler {
  readonly path: string
  /** Version line, part of every cache key. */
  readonly version: string
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  )
}

/** Absolute path of an executable, searched like a shell. */
export async function which(name: string): Promise<string | undefined> {
  if (isAbsolute(name)) return (await isExecutable(name)) ? name : undefined
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (folder !== '' && (await isExecutable(join(folder, name)))) return join(folder, name)
  }
  return undefined
}

/** Cache of versions by executable and state of its file: starting one dominates the time of a lookup. */
const versions = new Map<string, Promise<string>>()

/** Output of `--version`; empty if the executable cannot run. */
async function versionOf(path: string): Promise<string> {
  const { dev, ino, size, mtimeMs } = await stat(path)
  const key = [path, dev, ino, size, mtimeMs].join()
  const version = versions.get(key) ?? runTool(path, ['--version']).then(({ exitCode, stdout }) => (exitCode === 0 ? stdout : ''))
  versions.set(key, version)
  return version
}

async function probe(candidates: readonly (string | undefined)[], line: RegExp): Promise<Compiler | undefined> {
  for (const candidate of candidates) {
    if (candidate === undefined || candidate === '') continue
    const path = await which(candidate)
    if (path === undefined) continue
    const version = (await versionOf(path)).split('\n').find((text) => line.test(text))
    if (version !== undefined) return { path, version: version.trim() }
  }
  return undefined
}

/** The host C++ compiler: $CXX, g++, c++, clang++. */
export const findCxx = (): Promise<Compiler | undefined> => probe([process.env.CXX, 'g++', 'c++', 'clang++'], /\d+\.\d+/)

/** The CUDA compiler: $HEDDLE_NVCC, PATH, /usr/local/cuda. A set but broken $HEDDLE_NVCC has no fallback. */
export const findNvcc = (): Promise<Compiler | undefined> =>
  probe(process.env.HEDDLE_NVCC ? [process.env.HEDDLE_NVCC] : ['nvcc', '/usr/local/cuda/bin/nvcc'], /release \d+/)

/** Disassembler: `nvdisasm`, else `cuobjdump`, which has no line information; in PATH, next to nvcc, in /usr/local/cuda. */
export async function findDisassembler(): Promise<(Compiler & { readonly name: 'nvdisasm' | 'cuobjdump' }) | undefined> {
  const nvcc = await findNvcc()
  const besideNvcc = nvcc === undefined ? [] : [dirname(nvcc.path)]
  for (const name of ['nvdisasm', 'cuobjdump'] as const) {
    const places = [name, ...[...besideNvcc, '/usr/local/cuda/bin'].map((folder) => join(folder, name))]
    const found = await probe(places, /release \d+/)
    if (found !== undefined) return { ...found, name }
  }
  return undefined
}

export const findCmake = (): Promise<Compiler | undefined> => probe(['cmake'], /cmake version/)

export async function requireCxx(): Promise<Compiler> {
  const found = await findCxx()
  if (found === undefined) {
    throw environmentError('toolchain.cxx', 'no C++ compiler was found ($CXX, g++, c++, clang++)', {
      hint: 'install a C++17 compiler such as g++',
    })
  }
  return found
}

export async function requireNvcc(): Promise<Compiler> {
  const found = await findNvcc()
  if (found === undefined) {
    throw environmentError('toolchain.nvcc', 'nvcc was not found ($HEDDLE_NVCC, PATH, /usr/local/cuda/bin)', {
      hint: 'install the CUDA toolkit or set HEDDLE_NVCC; `--target simt` needs no CUDA',
    })
  }
  return found
}
