/** The tuning file of a project: `tuning.json` at its root, when there is one. Read by `gen`, read and written by `tune`. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { usageError } from '../errors.js'
import { parseTuning, type Tuning } from '../schedule/tuning.js'

const defaultName = 'tuning.json'

/** Path of the tuning file, whether it exists or not. */
export const tuningFile = (root: string, named?: string): string =>
  named === undefined ? join(root, defaultName) : resolve(root, named)

/**
 * Reads the project's tuning file, or the one that is named; undefined when the project has none.
 * @throws usage `tuning.missing` for a named file that is not there; `tuning.json`, `tuning.schema`, `tuning.twice` for one that is no tuning file
 */
export async function readTuning(root: string, named?: string): Promise<Tuning | undefined> {
  const path = tuningFile(root, named)
  if (existsSync(path)) return parseTuning(await readFile(path, 'utf8'), named ?? defaultName)
  if (named === undefined) return undefined
  throw usageError('tuning.missing', `there is no tuning file ${path}`, { hint: 'run `heddle tune`, or leave the option out' })
}
