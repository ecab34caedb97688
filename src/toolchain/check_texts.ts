/**
 * Checks CUDA sources with the compiler, without building a library: each must compile without a warning, its kernels must not spill, and none
 * may read or release before its wait.
 * Files with a committed record of their digest were checked before, so only a part of them is compiled again, and must match the record; each
 * commit draws another part. Runs for `heddle build --check`, the CUDA check of CI.
 */
import { basename } from 'node:path'
import { cacheFolder } from '../cache_folder.js'
import { usageError } from '../errors.js'
import { findNvcc, requireNvcc } from './compilers.js'
import { sha256 } from './hash.js'
import { readSources } from './kernels.js'
import { type BuildProgress, type BuiltObject, compileFiles } from './objects.js'
import { packageRoot } from './paths.js'
import { runTool } from './process.js'
import { type Recipe, recipeFor } from './recipe.js'
import { expectOwnRecord, placeOf, type RecordedText, readRecord, shortKey, writeRecord } from './record.js'
import { type CheckedRecord, checkRecord, refuseDifferent, refuseStale } from './record_check.js'
import { refuseEarly } from './sass.js'
import { type KeyedFile, keyFiles, type SourceFile } from './sources.js'
import { unitsOf } from './units.js'

export interface CheckTextsOptions {
  /** Folder of the generated source. */
  readonly generated: string
  /** Checks only files of instances with a matching key, and compiles each of them. */
  readonly filter?: RegExp | undefined
  /** Updates the record from nvcc, instead of refusing an outdated one. */
  readonly record?: boolean | undefined
  /** Part of the recorded files to compile again; by default drawn by the commit's files. */
  readonly sample?: number | 'all' | undefined
  readonly signal?: AbortSignal | undefined
  readonly onProgress?: ((progress: BuildProgress) => void) | undefined
  /** Maximum number of parallel compilers; defaults to the number of cores. */
  readonly jobs?: number | undefined
}

export interface CheckedTexts {
  /** Number of checked files by architecture: compiled, or found in the record. */
  readonly texts: Readonly<Record<string, number>>
  /** Number of files compiled by nvcc, now or from the cache. */
  readonly compiled: number
  /** Number of kernels in the compiled files. */
  readonly kernels: number
  /** State of the record: `other` is that of another nvcc, `untried` one that was not checked for lack of nvcc. */
  readonly record: 'none' | 'other' | 'untried' | 'tried' | 'written'
}

/** Number of parts of the recorded files; each check compiles one. */
export const samples = 24

/** Architecture on which every file is checked; on it, kernels may start before earlier launches are complete. */
const mostChecked = '90'

/** Files to check by architecture, such as `90`. */
type Chosen = ReadonlyMap<string, readonly SourceFile[]>

/**
 * Checks every file for sm_90, whose matmuls have code of their own, and one instance of each op for sm_80. Without a record, and with another
 * nvcc than the record's, all of them are compiled.
 * @throws usage `build.generated`, `build.selection`, `build.check`, `output.file`; environment `toolchain.nvcc`, `cache.*`; finding
 * `build.compile`, `build.spill`, `build.early`; finding `build.record` for a record that is outdated or disagrees with nvcc; the signal's reason
 */
export async function checkTexts(options: CheckTextsOptions): Promise<CheckedTexts> {
  const { generated, filter, record: writes = false, sample } = options
  if (writes) await expectOwnRecord(generated)
  const chosen = await choose(generated, filter)
  const texts = Object.fromEntries([...chosen].map(([architecture, { length }]) => [`sm_${architecture}`, length]))
  const record = await readRecord(generated)
  const nvcc = await findNvcc()
  const isOther = nvcc !== undefined && record !== undefined && record.nvcc !== nvcc.version
  if (isOther && writes && filter !== undefined) {
    throw usageError('build.check', `the record was written by ${record.nvcc}, and this is ${nvcc.version}`, {
      hint: 'a record has one nvcc version: write it without --filter',
    })
  }
  const checked = record === undefined ? undefined : await checkRecord(record, chosen)
  if (record !== undefined && checked !== undefined && !writes) {
    refuseStale(record, checked, filter !== undefined)
    if (nvcc === undefined) return { texts, compiled: 0, kernels: 0, record: 'untried' }
  }
  const isNew = checked === undefined || isOther
  const isWhole = isNew || sample === 'all' || (sample === undefined && filter !== undefined && !writes)
  const part = isWhole ? undefined : (sample ?? (writes ? undefined : await drawnPart(generated, checked)))
  const built = await compileChosen(chosen, options, (recipe, files) => {
    if (isWhole) return files
    const sampled = part === undefined ? [] : partOf(recipe, files, part)
    return files.filter((file) => sampled.includes(file) || checked.stale.has(`${file.source} sm_${recipe.architecture}`))
  })
  const made = built.map(recorded)
  if (writes) {
    const lines = new Map([...(isNew ? [] : checked.current), ...made.map((text) => [placeOf(text), text] as const)])
    const others = filter === undefined || record === undefined ? [] : record.texts.filter((text) => !lines.has(placeOf(text)))
    await writeRecord(generated, (nvcc ?? (await requireNvcc())).version, [...others, ...lines.values()])
  } else if (!isNew) refuseDifferent(made, checked)
  return {
    texts,
    compiled: built.length,
    kernels: built.reduce((sum, { resources }) => sum + resources.length, 0),
    record: writes ? 'written' : isOther ? 'other' : isNew ? 'none' : 'tried',
  }
}

async function choose(generated: string, filter: RegExp | undefined): Promise<Chosen> {
  const { files } = await readSources(generated)
  const all = files.filter(({ op }) => op !== undefined)
  const chosen = (of: readonly SourceFile[]) => of.filter(({ source }) => filter?.test(basename(source, '.cu')) ?? true)
  if (chosen(all).length > 0 || all.length === 0)
    return new Map([
      [mostChecked, chosen(all)],
      ['80', chosen(oneOfEachOp(all))],
    ])
  throw usageError('build.selection', 'no kernel is selected', { hint: 'kernels have names such as softmax__f32' })
}

/** Compiles the files that `which` selects for each architecture. */
async function compileChosen(
  chosen: Chosen,
  { signal, jobs, onProgress }: CheckTextsOptions,
  which: (recipe: Recipe & { readonly architecture: string }, files: readonly KeyedFile[]) => readonly KeyedFile[],
): Promise<readonly RecordedObject[]> {
  const work = await Promise.all(
    [...chosen].map(async ([architecture, files]) => {
      const recipe = { ...(await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true })), architecture }
      return { recipe, files: which(recipe, await keyFiles(recipe, files)) }
    }),
  )
  const total = work.reduce((sum, { files }) => sum + files.length, 0)
  const built: RecordedObject[] = []
  for (const { recipe, files } of work) {
    const before = built.length
    const objects = await compileFiles(recipe, files, {
      cache: cacheFolder(),
      signal,
      jobs,
      together: 'headers',
      onProgress: (progress) => onProgress?.({ ...progress, done: before + progress.done, total }),
    })
    if (recipe.architecture === mostChecked) await refuseEarly(objects)
    built.push(...objects.map((object) => ({ ...object, arch: `sm_${recipe.architecture}` })))
  }
  return built
}

type RecordedObject = BuiltObject & { readonly arch: string }

/** The line of a file. A kernel of the headers is in none, since its file depends on the others of the unit. */
const recorded = ({ source, arch, key, resources }: RecordedObject): RecordedText => ({
  text: source,
  arch,
  key: shortKey(key),
  resources: resources.filter(({ ofHeaders }) => ofHeaders !== true),
})

/** Part of the files, in whole units as in a full build: whole units cost less than their share of files. */
const partOf = (recipe: Recipe, files: readonly KeyedFile[], part: number): readonly KeyedFile[] =>
  unitsOf(recipe, files, 'headers')
    .filter((_, at) => at % samples === part % samples)
    .flat()

/** Part drawn by this commit's files; outside of a repository, by the keys of the sources. The same commit draws the same. */
async function drawnPart(generated: string, { keys }: CheckedRecord): Promise<number> {
  const { exitCode, stdout } = await runTool('git', ['rev-parse', 'HEAD^{tree}'], { cwd: generated })
  const digest = sha256(exitCode === 0 ? stdout.trim() : keys.map(({ key }) => key).join())
  return Number.parseInt(digest.slice(0, 8), 16) % samples
}

/** One file per op, drawn by the op's name, so that every type and size occurs with some op. */
export function oneOfEachOp(files: readonly SourceFile[]): readonly SourceFile[] {
  const instances = new Map<string, SourceFile[]>()
  for (const file of files) if (file.op !== undefined) instances.set(file.op, [...(instances.get(file.op) ?? []), file])
  return [...instances].flatMap(([op, of]) => of.slice(Number.parseInt(sha256(op).slice(0, 8), 16) % of.length).slice(0, 1))
}
