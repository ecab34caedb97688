/**
 * Precompiled header of the includes that every kernel starts with: on small kernels gcc spends more time on these headers than on the rest. It is
 * cached by the same inputs as an object. It only saves time: objects are the same without it, and if gcc does not accept it, or there is none,
 * headers are read as usual. Used by objects.ts.
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

/** Header that generated sources include before any other declaration. */
const common = 'kernel.cuh'

/** Minimum number of units that pays: writing the header takes gcc as long as four of them save. */
const minUnits = 8

/** Folders by key, memoised in this process: checking an entry takes a tenth of the time that it saves. */
const known = new Map<string, Promise<string>>()

/** True for gcc: the precompiled headers of clang differ. */
const isGcc = ({ version }: Recipe['compiler']): boolean => !/clang/i.test(version)

/** Arguments that include the header before a unit's source. Both variants give the same object. */
export interface Ahead {
  readonly quick: readonly string[]
  /** Fallback if `quick` fails. */
  readonly plain: readonly string[]
}

const nothing: readonly string[] = []

const none: Ahead = { quick: nothing, plain: nothing }

/**
 * Leading arguments by which the recipe's compiler reads the common header of a unit first: precompiled, or as source.
 * @param unit files of the unit
 * @param units maximum number of units of the build: few of them use an existing header, but write none
 * @throws environment `cache.*` if the cache cannot be written
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
  // Other headers may precede it in the source, and an object has its constants in the order in which headers are read.
  const plain = ['-include', path]
  if (units < minUnits && !existsSync(folder)) return { quick: plain, plain }
  const make = async (entry: string): Promise<void> => {
    const text = join(entry, common)
    await writing(entry, () => writeFile(text, `#include ${JSON.stringify(path)}\n`))
    const folders = include.flatMap((each) => ['-I', each])
    const args = ['-x', 'c++-header', ...flags, ...folders, text, '-o', `${text}.gch`]
    const { exitCode, stderr } = await runTool(compiler.path, args, { env: { TMPDIR: entry } })
    // A compiler that writes none reads the source file next to it.
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
