/** Files of generated source that may be compiled, and the cache keys of their objects: source, reached headers, flags and compiler. */
import { readFile } from 'node:fs/promises'
import { usageError } from '../errors.js'
import { canonicalJson, sha256 } from './hash.js'
import { type HeaderCache, headerDigests } from './includes.js'
import { expectTrusted } from './own_source.js'
import type { Recipe } from './recipe.js'

/** A file of generated source. */
export interface SourceFile {
  /** Name in reports: `cuda/softmax__f32.cu`. */
  readonly source: string
  readonly path: string
  /** Op of the file; undefined for the registry. */
  readonly op?: string | undefined
  /** True if the user accepts the source as is, regardless of its author. */
  readonly asItLies?: boolean | undefined
}

/** A file with the cache key of its object. */
export interface KeyedFile extends SourceFile {
  readonly key: string
  /** Content that passed the trust check: this is compiled, even if the file changes later. */
  readonly text: string
  /** Names of the headers it reaches. */
  readonly headers: readonly string[]
}

/**
 * Computes the keys of files, in their order.
 * @throws usage `build.generated` for a missing file, `generated.foreign` if this user did not generate it; environment `cache.foreign`
 */
export async function keyFiles(recipe: Recipe, files: readonly SourceFile[]): Promise<readonly KeyedFile[]> {
  const cache: HeaderCache = new Map()
  return Promise.all(
    files.map(async (file) => {
      // A checkout on Windows has the same key.
      const text = (await readFile(file.path, 'utf8').catch(() => undefined))?.replaceAll('\r\n', '\n')
      if (text === undefined) {
        throw usageError('build.generated', `${file.path} is named by the manifest but missing`, {
          hint: 'run `heddle gen` again',
        })
      }
      if (file.asItLies !== true) expectTrusted(file.path, text)
      const digests = await headerDigests(text, recipe.include, cache)
      const headers = Object.keys(digests)
      const flags = recipe.compileFlags(headers)
      const { target, compiler } = recipe
      const parts = { text, source: file.source, headers: digests, flags, target, compiler: compiler.version }
      return { ...file, text, headers, key: sha256(canonicalJson(parts)) }
    }),
  )
}
