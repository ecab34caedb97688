/**
 * Results of packed commands: `job/run` writes them where the command ran, `--read` of the same verb prints them at home. A file has what the verb
 * prints with `--json`, the circumstances of the run, and a digest of both.
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { type Provenance, provenance } from '../bench/history/entry.js'
import { usageError } from '../errors.js'
import { sha256 } from '../toolchain/hash.js'

const schema = z.strictObject({
  heddle: z.literal('result'),
  version: z.literal(1),
  /** Words after `heddle`, as they were packed. */
  argv: z.array(z.string()).min(1),
  about: provenance,
  /** SHA-256 of the result as JSON. */
  digest: z.string(),
  result: z.unknown(),
})

export interface JobResult {
  readonly argv: readonly string[]
  readonly about: Provenance
  /** Value that the verb prints with `--json`. */
  readonly result: unknown
}

/** Text of a result's file. */
export function resultText({ argv, about, result }: JobResult): string {
  const written: z.input<typeof schema> = {
    heddle: 'result',
    version: 1,
    argv: [...argv],
    about,
    digest: sha256(JSON.stringify(result)),
    result,
  }
  return `${JSON.stringify(written)}\n`
}

/** The verb of a command: `bench suite`, `bench`, `check`. */
export const verbOf = ([verb = '', second = '']: readonly string[]): string =>
  verb === 'bench' && second === 'suite' ? 'bench suite' : verb

const has = (value: unknown, field: string): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && field in value

/**
 * Reads a result of a verb.
 * @throws usage `result.foreign` for a file that no job wrote, `result.newer` for one of a newer heddle, `result.damaged`, `result.verb` for one of
 * another verb
 */
export async function readResult(path: string, verb: string): Promise<JobResult> {
  const foreign = (cause?: unknown) =>
    usageError('result.foreign', `${path} is not the result of a job`, { hint: 'name the result.json that job/run wrote', cause })
  const text = await readFile(path, 'utf8').catch((cause: unknown) => {
    throw foreign(cause)
  })
  const damaged = (cause?: unknown) =>
    usageError('result.damaged', `${path} was cut or changed`, { hint: 'copy it again from where the job ran', cause })
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw text.startsWith('{"heddle":"result"') ? damaged(cause) : foreign(cause)
  }
  if (!has(value, 'heddle') || value.heddle !== 'result') throw foreign()
  if (typeof value.version === 'number' && value.version > 1)
    throw usageError('result.newer', `${path} was written by a newer heddle`, {
      hint: 'update heddle, or pack the job with this one',
    })
  const { success, data, error } = schema.safeParse(value)
  if (!success) throw damaged(error)
  if (sha256(JSON.stringify(data.result)) !== data.digest) throw damaged()
  const { argv, about, result } = data
  if (verbOf(argv) !== verb)
    throw usageError('result.verb', `${path} is the result of heddle ${argv.join(' ')}`, {
      hint: `heddle ${verbOf(argv)} --read ${path}`,
    })
  return { argv, about, result }
}
