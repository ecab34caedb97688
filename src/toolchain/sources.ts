/** Files of generated text that may be compiled, and what their objects are found by: the text, the headers it reaches, the flags and the compiler. */
import { readFile } from 'node:fs/promises'
import { usageError } from '../errors.js'
import { canonicalJson, sha256 } from './hash.js'
import { type HeaderCache, headerDigests } from './includes.js'
import { expectTrusted } from './own_source.js'
import type { Recipe } from './recipe.js'

/** A file of generated text. */
export interface SourceFile {
  /** As reports name it: `cuda/softmax__f32.cu`. */
  readonly source: string
  readonly path: string
  /** The op it is of; none of the registry. */
  readonly op?: string | undefined
  /** The user asked for the text as it lies, whoever wrote it. */
  readonly asItLies?: boolean | undefined
}

/** A file with what its object is found by. */
export interface KeyedFile extends SourceFile {
  readonly key: string
  /** What was read and let through: this is compiled, whatever the file holds later. */
  readonly text: string
  /** Names of the headers it reaches. */
  readonly headers: readonly string[]
}

/**
 * The keys of files, in their order.
 * @throws usage `build.generated` for a file that is missing, `generated.foreign` for one that is not this user's; environment `cache.foreign`
 */
export async function keyFiles(recipe: Recipe, files: readonly SourceFile[]): Promise<readonly KeyedFile[]> {
  const cache: HeaderCache = new Map()
  return Promise.all(
    files.map(async (file) => {
      // A checkout on Windows is the same text.
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
