/**
 * Resource record of each CUDA source file: registers, shared memory and spills of its kernels, by a digest of all inputs of the machine code. It is
 * committed next to the source, so that a check compiles only changed files, and so that a page can show resources without nvcc. Written by `heddle
 * build --check --record`; read by checks, `inspect` and `explore`.
 *
 * There is one line per file and architecture, sorted, so that the records of two branches merge by lines; outdated lines are found by digest.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { recordFile } from '../emit/write.js'
import { refuseForeign, writeWhole } from '../output.js'
import { packageRoot } from './paths.js'
import type { KernelResources } from './ptxas.js'
import { recipeFor } from './recipe.js'
import { keyFiles, type SourceFile } from './sources.js'

const count = z.number().int().nonnegative()

/** Name, threads per block, registers per thread, bytes of shared memory; for kernels with a stack also bytes of stack, spill stores and loads. */
const kernelLine = z.union([
  z.tuple([z.string(), count, count, count]),
  z.tuple([z.string(), count, count, count, count, count, count]),
])

const headLine = z.strictObject({ version: z.literal(1), nvcc: z.string() })
const textLine = z.strictObject({
  text: z.string(),
  arch: z.string().regex(/^sm_\d+a?$/),
  key: z.string(),
  kernels: z.array(kernelLine),
})

/** A source file on an architecture, with its kernels in the order of their names. */
export interface RecordedText {
  /** Name in reports: `cuda/softmax__f32.cu`. */
  readonly text: string
  readonly arch: string
  readonly key: string
  readonly resources: readonly KernelResources[]
}

export interface TextRecord {
  /** Version line of nvcc. */
  readonly nvcc: string
  readonly texts: readonly RecordedText[]
  /** Number of unreadable lines, such as conflict markers of a merge. */
  readonly unreadable: number
}

/** Identifier of a file on an architecture. */
export const placeOf = ({ text, arch }: Pick<RecordedText, 'text' | 'arch'>): string => `${text} ${arch}`

/** Key of a record entry: file, architecture and digest. */
export type RecordKey = Omit<RecordedText, 'resources'>

/** Record keys of files for a version of nvcc and an architecture, such as `90`, the same on every machine. @throws usage `build.generated` */
export async function recordKeys(
  files: readonly SourceFile[],
  architecture: string,
  nvcc: string,
): Promise<readonly RecordKey[]> {
  const recipe = await recipeFor('cuda', packageRoot(), { architecture, codeOnly: true, nvcc: { path: 'nvcc', version: nvcc } })
  const keyed = await keyFiles(recipe, files)
  return keyed.map(({ source, key }) => ({ text: source, arch: `sm_${architecture}`, key: shortKey(key) }))
}

/** 132 bits of a digest: collisions are negligible, in half of the space. */
export const shortKey = (key: string): string => Buffer.from(key, 'hex').toString('base64url').slice(0, 22)

/** Reads the record of generated source; undefined if there is none. */
export async function readRecord(generated: string): Promise<TextRecord | undefined> {
  const content = await readFile(join(generated, recordFile), 'utf8').catch(() => undefined)
  if (content === undefined) return undefined
  const lines = content.split('\n').filter((line) => line !== '')
  const values = lines.map(parsed)
  const heads = values.flatMap((value) => headLine.safeParse(value).data ?? [])
  const texts = values.flatMap((value) => {
    const line = textLine.safeParse(value).data
    return line === undefined ? [] : [readLine(line)]
  })
  // A merged record of two compilers has surplus head lines, which count as unreadable.
  const [first] = new Set(heads.map(({ nvcc }) => nvcc))
  return { nvcc: first ?? '', texts, unreadable: lines.length - texts.length - Math.min(heads.length, 1) }
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}

function readLine({ text, arch, key, kernels }: z.infer<typeof textLine>): RecordedText {
  const resources = kernels.map(([kernel, threads, registers, sharedBytes, ...memory]): KernelResources => {
    const [stackBytes = 0, spillStoreBytes = 0, spillLoadBytes = 0] = memory
    return { kernel, arch, threads, registers, sharedBytes, stackBytes, spillStoreBytes, spillLoadBytes }
  })
  return { text, arch, key, resources }
}

/** Line of a file in the record, also used for comparison. */
export function recordLine({ text, arch, key, resources }: RecordedText): string {
  const kernels = resources.map((each): z.infer<typeof kernelLine> => {
    const { kernel, threads = 0, registers, sharedBytes, stackBytes, spillStoreBytes, spillLoadBytes } = each
    const memory = [stackBytes, spillStoreBytes, spillLoadBytes] as const
    return memory.some((bytes) => bytes > 0)
      ? [kernel, threads, registers, sharedBytes, ...memory]
      : [kernel, threads, registers, sharedBytes]
  })
  kernels.sort(([a], [b]) => (a < b ? -1 : 1))
  return JSON.stringify({ text, arch, key, kernels })
}

/** @throws usage `output.file` if the path of the record holds another file */
export async function expectOwnRecord(generated: string): Promise<void> {
  const record = await readRecord(generated)
  const isForeign = record !== undefined && record.texts.length === 0 && record.nvcc === '' && record.unreadable > 0
  if (isForeign) refuseForeign(generated, [recordFile])
}

export async function writeRecord(generated: string, nvcc: string, texts: readonly RecordedText[]): Promise<void> {
  const head = JSON.stringify({ version: 1, nvcc })
  const lines = [...texts].sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1)).map(recordLine)
  await writeWhole(join(generated, recordFile), `${[head, ...lines].join('\n')}\n`)
}
