/**
 * The object cache: `.heddle/cache/<key>/` (or $HEDDLE_CACHE, which several projects may name), one folder per compiled object, found by content. An entry appears by a rename of a
 * finished folder, so a reader never sees half of one, whatever stops the writer.
 */
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/** The folder of `key`, filled by `make` unless it exists already. `made` says which. */
export async function cached(
  cache: string,
  key: string,
  make: (folder: string) => Promise<void>,
): Promise<{ readonly folder: string; readonly made: boolean }> {
  const folder = join(cache, key)
  if (existsSync(folder)) return { folder, made: false }
  await mkdir(cache, { recursive: true })
  const temporary = await mkdtemp(join(cache, '.making-'))
  try {
    await make(temporary)
    await rename(temporary, folder)
  } catch (error) {
    await rm(temporary, { recursive: true, force: true })
    // Another build may have finished the same entry first; its content is the same.
    if (!isOccupied(error)) throw error
  }
  return { folder, made: true }
}

const isOccupied = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOTEMPTY' || error.code === 'EEXIST')
