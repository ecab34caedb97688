/** Tuning file of a project: `tuning.json` next to its specs, if any. Read by `gen`, read and written by `tune`. */
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { usageError } from '../errors.js'
import { namedFile } from '../output.js'
import { parseTuning, type Tuning } from '../schedule/tuning/tuning.js'

/** Location of a tuning file. */
export interface TuningPlace {
  readonly root: string
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  /** Path of the file, if it is not the one next to the specs. */
  readonly file?: string | undefined
}

/** Path of the tuning file, which may not exist. */
export const tuningFile = ({ root, specs = 'specs', file }: TuningPlace): string =>
  resolve(root, file ?? join(specs, 'tuning.json'))

/**
 * Reads the project's tuning file, or the given one; undefined if the project has none.
 * @throws usage `tuning.missing` for a given file that does not exist; `tuning.json`, `tuning.schema`, `tuning.twice` for an invalid file
 */
export async function readTuning(place: TuningPlace): Promise<Tuning | undefined> {
  const path = tuningFile(place)
  const { specs = 'specs', file } = place
  if (existsSync(path)) return parseTuning(await readFile(path, 'utf8'), file ?? join(specs, 'tuning.json'))
  if (file === undefined) return undefined
  throw usageError('tuning.missing', `there is no tuning file ${path}`, { hint: 'run `heddle tune`, or leave the option out' })
}

/** Content of the tuning file, and its writer. @throws usage `tuning.*` for an invalid file, `output.write` if it cannot be written */
export async function openTuning(place: TuningPlace) {
  const file = tuningFile(place)
  return { file, old: existsSync(file) ? await readTuning(place) : undefined, write: await namedFile(file) }
}
