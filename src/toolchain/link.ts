/**
 * Links objects into a kernel library, unless this user's last build linked the library from the same objects. Several files may share one
 * object.
 */
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { findingError } from '../errors.js'
import { isOwn, recordOwn } from '../own_text.js'
import { refuseFullDisk, writing } from '../writing.js'
import { canonicalJson, sha256 } from './hash.js'
import { firstLines, runTool } from './process.js'
import { linkArguments, type Recipe } from './recipe.js'
import type { BuildReport } from './report.js'

export interface Linked {
  readonly key: string
  readonly library: BuildReport['library']
  /** False if the library already existed. */
  readonly made: boolean
}

const file = 'libheddle_kernels.so'

/**
 * Writes `outDir/libheddle_kernels.so` by a rename of a finished file.
 * @throws finding `build.link` with the linker's first lines; environment `cache.full`
 */
export async function link(
  recipe: Recipe,
  objects: readonly { readonly key: string; readonly object: string }[],
  outDir: string,
  last: BuildReport | undefined,
  signal: AbortSignal | undefined,
): Promise<Linked> {
  const key = sha256(
    canonicalJson({
      objects: objects.map((object) => object.key),
      flags: [...recipe.linkFlags, ...recipe.portable],
      compiler: recipe.compiler.version,
    }),
  )
  const path = join(outDir, file)
  if (last?.key === key && isOwn(last.library.digest)) {
    const existing = await readFile(path).catch(() => undefined)
    if (existing !== undefined && sha256(existing) === last.library.digest) return { key, library: last.library, made: false }
  }
  await writing(outDir, () => mkdir(outDir, { recursive: true }))
  const temporary = join(outDir, `.${file}.${process.pid}`)
  try {
    const paths = [...new Set(objects.map(({ object }) => object)), ...recipe.portable]
    const { exitCode, stderr } = await runTool(recipe.compiler.path, linkArguments(recipe, paths, temporary), { signal })
    if (exitCode !== 0) {
      refuseFullDisk(path, stderr)
      throw findingError('build.link', `${basename(recipe.compiler.path)} could not link ${path}:\n${firstLines(stderr)}`, {
        cause: stderr,
      })
    }
    const content = await readFile(temporary)
    const digest = sha256(content)
    await recordOwn([digest])
    await rename(temporary, path)
    return { key, library: { file, bytes: content.length, digest }, made: true }
  } finally {
    await rm(temporary, { force: true })
  }
}
