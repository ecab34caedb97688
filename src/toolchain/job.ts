/**
 * Jobs: a command with everything that it needs, as a folder that runs on a machine with nothing installed. `job.json` names the command and the
 * digest of every file. `heddle pack` writes it, the job's `run` reads it.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { environmentError } from '../errors.js'
import { recordOwn } from '../own_text.js'
import { sha256 } from './hash.js'

const schema = z.strictObject({
  version: z.literal(1),
  /** Words after `heddle`. */
  argv: z.array(z.string()).min(1),
  /** Folder of the project in the job: `heddle` where it is heddle's own. */
  project: z.enum(['project', 'heddle']),
  /** Commit of the project; absent outside of a repository. */
  commit: z.object({ id: z.string(), changed: z.boolean() }).optional(),
  /** SHA-256 of the files, by path. */
  files: z.record(z.string(), z.string()),
})

export type Job = z.infer<typeof schema>

/** Name of the job's description. */
export const jobFile = 'job.json'

const damaged = (problem: string, cause?: unknown) =>
  environmentError('job.damaged', problem, { hint: 'unpack the archive again, into an empty folder', cause })

/**
 * Reads a job, compares its files with their digests, and records those of its project as the user's own: starting a job is trusting it.
 * @throws environment `job.damaged`
 */
export async function openJob(folder: string): Promise<Job> {
  const text = await readFile(join(folder, jobFile), 'utf8').catch((cause: unknown) => {
    throw damaged(`${folder} has no ${jobFile}`, cause)
  })
  const job = await Promise.resolve(text)
    .then((content) => schema.parse(JSON.parse(content)))
    .catch((cause: unknown) => {
      throw damaged(`${join(folder, jobFile)} is not the description of a job`, cause)
    })
  for (const [name, digest] of Object.entries(job.files)) {
    const content = await readFile(join(folder, name)).catch(() => undefined)
    if (content === undefined) throw damaged(`${join(folder, name)} is missing`)
    if (sha256(content) !== digest) throw damaged(`${join(folder, name)} was changed`)
  }
  const built = [`${job.project}/generated/`, `${job.project}/.heddle/`]
  const own = Object.entries(job.files).filter(([name]) => built.some((start) => name.startsWith(start)))
  await recordOwn(own.map(([, digest]) => digest))
  return job
}
