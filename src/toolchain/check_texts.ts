/**
 * Holds every CUDA text against the compiler without building a library: whether it compiles, without a warning, and whether its kernels spill. A
 * whole build takes twice as long, for the host's side, the PTX and a second architecture of texts that say the same for both. Runs for
 * `heddle build --check`, which is how CI looks at CUDA.
 */
import { sha256 } from './hash.js'
import { readSources } from './kernels.js'
import { type BuildProgress, type BuiltObject, compileFiles } from './objects.js'
import { cacheFolder, packageRoot } from './paths.js'
import { recipeFor } from './recipe.js'
import { keyFiles, type SourceFile } from './sources.js'

export interface CheckTextsOptions {
  /** Folder of the generated text. */
  readonly generated: string
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Compilers at a time; defaults to the number of cores. */
  readonly jobs?: number | undefined
}

export interface CheckedTexts {
  /** By architecture, how many texts were compiled for it. */
  readonly texts: Readonly<Record<string, number>>
  /** Kernels that ptxas reported on. */
  readonly kernels: number
  /** Texts that were compiled now and not found in the cache. */
  readonly compiled: number
}

/**
 * Compiles every text for sm_90, whose products have code of their own, and one instance of each op for sm_80.
 * @throws usage `build.generated`; environment `toolchain.nvcc`, `cache.*`; finding `build.compile`, `build.spill`; the signal's reason
 */
export async function checkTexts({ generated, signal, onProgress, jobs }: CheckTextsOptions): Promise<CheckedTexts> {
  const { files } = await readSources(generated)
  const texts = files.filter(({ op }) => op !== undefined)
  const some = oneOfEachOp(texts)
  const total = texts.length + some.length
  let before = 0
  const compile = async (architecture: string, chosen: readonly SourceFile[]): Promise<readonly BuiltObject[]> => {
    const recipe = await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true })
    const objects = await compileFiles(recipe, await keyFiles(recipe, chosen), {
      cache: cacheFolder(),
      signal,
      jobs,
      together: 'headers',
      onProgress: (progress) => onProgress?.({ ...progress, done: before + progress.done, total }),
    })
    before += chosen.length
    return objects
  }
  const built = [...(await compile('90', texts)), ...(await compile('80', some))]
  return {
    texts: { sm_90: texts.length, sm_80: some.length },
    kernels: built.reduce((sum, { resources }) => sum + resources.length, 0),
    compiled: built.filter(({ made }) => made).length,
  }
}

/** One file of each op: which one is drawn by the op's name, so that every type and size is met with some op. */
export function oneOfEachOp(files: readonly SourceFile[]): readonly SourceFile[] {
  const instances = new Map<string, SourceFile[]>()
  for (const file of files) if (file.op !== undefined) instances.set(file.op, [...(instances.get(file.op) ?? []), file])
  return [...instances].flatMap(([op, of]) => of.slice(Number.parseInt(sha256(op).slice(0, 8), 16) % of.length).slice(0, 1))
}
