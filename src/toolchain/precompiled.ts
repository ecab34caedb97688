/**
 * What every kernel's text begins with, read once: on small kernels gcc spends more time on those headers than on all else. They are kept as
 * gcc's precompiled header, found by the same things as an object. It saves time and nothing else: objects are what they are without it, and
 * where gcc does not take it, or there is none, headers are read as ever. Used by objects.ts.
 */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { refuseFullDisk, writing } from '../writing.js'
import { cached } from './cache.js'
import { canonicalJson, sha256 } from './hash.js'
import { reachedHeaders } from './includes.js'
import { runTool } from './process.js'
import type { Recipe } from './recipe.js'
import type { KeyedFile } from './sources.js'

/** What generated texts include before anything else that declares. */
const common = 'kernel.cuh'

/** As many units of text are worth it: gcc takes as long to write it as four of them save. */
const fewest = 8

/** Folders by what they are found by, in this process: to see whether one is whole takes a tenth of what it saves. */
const known = new Map<string, Promise<string>>()

/** Clang's are of another kind. */
const isGcc = ({ version }: Recipe['compiler']): boolean => !/clang/i.test(version)

/** What to include ahead of a unit's text. Either gives the same object. */
export interface Ahead {
  readonly quick: readonly string[]
  /** Where that is refused. */
  readonly plain: readonly string[]
}

const nothing: readonly string[] = []

const none: Ahead = { quick: nothing, plain: nothing }

/**
 * Arguments, to stand before all others, that have the recipe's compiler read the common header of a text first: precompiled, or as it is.
 * @param unit what is compiled
 * @param units how many of them are, at most: a few find a header that is there, and make none
 * @throws environment `cache.*` where nothing can be written
 */
export async function precompiledHeader(
  recipe: Recipe,
  unit: readonly KeyedFile[],
  units: number,
  cache: string,
): Promise<Ahead> {
  const { target, compiler, include } = recipe
  if (target !== 'simt' || !isGcc(compiler) || !unit.every(({ headers }) => headers.includes(common))) return none
  const reached = await reachedHeaders(`#include "${common}"\n`, include)
  const path = reached[0]?.path ?? common
  const flags = recipe.compileFlags(reached.map(({ name }) => name))
  // Messages of the compiler name headers by their paths.
  const texts = reached.map(({ path, digest }) => ({ path, digest }))
  const key = sha256(canonicalJson({ texts, include, flags, compiler: [compiler.path, compiler.version] }))
  const headers = join(cache, 'headers')
  const folder = join(headers, key)
  // Other headers may come before it in the text, and an object has its constants in the order in which they are read.
  const plain = ['-include', path]
  if (units < fewest && !existsSync(folder)) return { quick: plain, plain }
  const make = async (entry: string): Promise<void> => {
    const text = join(entry, common)
    await writing(entry, () => writeFile(text, `#include ${JSON.stringify(path)}\n`))
    const folders = include.flatMap((each) => ['-I', each])
    const args = ['-x', 'c++-header', ...flags, ...folders, text, '-o', `${text}.gch`]
    const { exitCode, stderr } = await runTool(compiler.path, args, { env: { TMPDIR: entry } })
    // A compiler that writes none reads the text that stands beside it.
    if (exitCode !== 0) refuseFullDisk(entry, stderr)
  }
  const making = known.get(folder) ?? cached(headers, key, make).then((entry) => entry.folder)
  known.set(folder, making)
  try {
    return { quick: ['-include', join(await making, common)], plain }
  } catch (error) {
    known.delete(folder)
    throw error
  }
}
