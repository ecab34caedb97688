/**
 * Objects of generated text: each file is compiled by itself, and its object is found in the cache by everything that went into it: the
 * text, the headers it reaches, the flags and the compiler. A file that does not compile stops no other.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { basename, join } from 'node:path'
import pLimit from 'p-limit'
import { findingError, HeddleError, usageError } from '../errors.js'
import { cached } from './cache.js'
import { canonicalJson, sha256 } from './hash.js'
import { type HeaderCache, headerDigests } from './includes.js'
import { firstLines, runTool } from './process.js'
import { type KernelResources, parsePtxas } from './ptxas.js'
import { compileArguments, type Recipe } from './recipe.js'
import { refuseSpills } from './spills.js'
import { readableNames } from './symbol.js'
import { refuseFullDisk, writing } from './writing.js'

/** A file of generated text. */
export interface SourceFile {
  /** As reports name it: `cuda/softmax__f32.cu`. */
  readonly source: string
  readonly path: string
  /** The op it is of; none of the registry. */
  readonly op?: string | undefined
}

export interface BuildProgress {
  readonly done: number
  readonly total: number
  /** The file just finished. */
  readonly source: string
  /** True when its object came from the cache. */
  readonly cached: boolean
}

/** A file with what its object is found by. */
export interface KeyedFile extends SourceFile {
  readonly key: string
  /** Names of the headers it reaches. */
  readonly headers: readonly string[]
}

export interface BuiltObject extends KeyedFile {
  readonly object: string
  readonly made: boolean
  readonly resources: readonly KernelResources[]
}

export interface CompileOptions {
  readonly cache: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Called when another process compiles a file already. */
  readonly onWait?: ((source: string) => void) | undefined
  /** Compilers at a time; defaults to the number of cores. */
  readonly jobs?: number | undefined
}

/** The keys of files, in their order. @throws usage `build.generated` for a file that is missing */
export async function keyFiles(recipe: Recipe, files: readonly SourceFile[]): Promise<readonly KeyedFile[]> {
  const cache: HeaderCache = new Map()
  return Promise.all(
    files.map(async (file) => {
      const text = await readFile(file.path, 'utf8').catch(() => undefined)
      if (text === undefined) {
        throw usageError('build.generated', `${file.path} is named by the manifest but missing`, {
          hint: 'run `heddle gen` again',
        })
      }
      const digests = await headerDigests(text, recipe.include, cache)
      const headers = Object.keys(digests)
      const flags = recipe.compileFlags(headers)
      const { target, compiler } = recipe
      const parts = { text, source: file.source, headers: digests, flags, target, compiler: compiler.version }
      return { ...file, headers, key: sha256(canonicalJson(parts)) }
    }),
  )
}

/**
 * The objects of all files, compiled where the cache has none.
 * @throws finding `build.compile` with every file that the compiler refused and the op it is of, once all others are compiled;
 * finding `build.spill`; environment `cache.*`; the signal's reason
 */
export async function compileFiles(
  recipe: Recipe,
  files: readonly KeyedFile[],
  options: CompileOptions,
): Promise<readonly BuiltObject[]> {
  const { signal, onProgress } = options
  const limit = pLimit(options.jobs ?? availableParallelism())
  // What is no fault of one file stops the others: their children are ended before this function returns.
  const failure = new AbortController()
  const stop = signal === undefined ? failure.signal : AbortSignal.any([signal, failure.signal])
  const refused: HeddleError[] = []
  let done = 0
  const results = await Promise.allSettled(
    files.map((file) =>
      limit(async () => {
        stop.throwIfAborted()
        try {
          const built = await compile(recipe, file, { ...options, signal: stop })
          done += 1
          onProgress?.({ done, total: files.length, source: file.source, cached: !built.made })
          return built
        } catch (error) {
          if (error instanceof HeddleError && error.code === 'build.compile') refused.push(error)
          else failure.abort(error)
          throw error
        }
      }),
    ),
  )
  signal?.throwIfAborted()
  if (failure.signal.aborted) throw failure.signal.reason
  refuseAll(refused, files.length)
  const objects = await named(
    results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])),
    signal,
  )
  refuseSpills(objects)
  return objects
}

/** Kernels by names that a reader knows: all symbols of a build are read at once. */
async function named(objects: readonly BuiltObject[], signal: AbortSignal | undefined): Promise<readonly BuiltObject[]> {
  const symbols = objects.flatMap(({ resources }) => resources.map(({ kernel }) => kernel))
  if (symbols.length === 0) return objects
  const names = await readableNames(symbols, signal)
  return objects.map(({ resources, ...object }) => ({
    ...object,
    resources: resources.map((each) => ({ ...each, kernel: names.get(each.kernel) ?? each.kernel })),
  }))
}

/** One finding for all that was refused. */
function refuseAll(refused: readonly HeddleError[], total: number): void {
  const [first] = refused
  if (first === undefined) return
  if (refused.length === 1 && total === 1) throw first
  const messages = refused.map(({ message }) => message).sort()
  const { hint = '' } = first
  throw findingError('build.compile', `${refused.length} of ${total} files do not compile\n${messages.join('\n')}`, {
    hint,
    cause: first.cause,
  })
}

async function compile(recipe: Recipe, file: KeyedFile, { cache, signal, onWait }: CompileOptions): Promise<BuiltObject> {
  const { path, source, key, headers, op } = file
  const make = async (folder: string): Promise<void> => {
    const object = join(folder, 'object.o')
    // What the compiler leaves when it is killed goes with the unfinished entry.
    const scratch = join(folder, 'scratch')
    await writing(scratch, () => mkdir(scratch))
    const tool = recipe.compiler.path
    const args = compileArguments(recipe, path, headers, object)
    const { exitCode, stderr } = await runTool(tool, args, { signal, env: { TMPDIR: scratch } })
    if (exitCode !== 0) {
      refuseFullDisk(path, stderr)
      const name = op === undefined ? '' : `op ${op}: `
      throw findingError('build.compile', `${name}${basename(tool)} refused ${path}:\n${firstLines(stderr)}`, {
        hint: 'the text is generated: correct the op or the device header it comes from',
        cause: stderr,
      })
    }
    await rm(scratch, { recursive: true, force: true })
    await writing(folder, () => writeFile(join(folder, 'stderr.txt'), stderr))
  }
  const { folder, made } = await cached(join(cache, 'objects'), key, make, { signal, onWait: () => onWait?.(source) })
  const resources = parsePtxas(await readFile(join(folder, 'stderr.txt'), 'utf8'))
  return { ...file, object: join(folder, 'object.o'), made, resources }
}
