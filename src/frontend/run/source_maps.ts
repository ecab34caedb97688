/**
 * Maps locations in transpiled spec modules back to the author's source. Spec modules run as JavaScript in their own folder. Errors there, and later
 * errors of graphs and plans, have stacks with locations in that folder.
 */
import { SourceMap } from 'node:module'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Place } from '../../errors.js'
import { nameIn, type PathModule } from '../../path_names.js'

/** A transpiled module: its source file, and its source map. */
interface Translated {
  readonly source: string
  readonly map: SourceMap
}

type MapPayload = ConstructorParameters<typeof SourceMap>[0]

/** `at f (file:///a/b.js:3:4)`, `at /a/b.js:3:4`, `at C:\a\b.js:3:4`; the first line of a syntax error is `file:///a/b.js:3`. */
const framePattern = /(?:^|\(|at |async )((?:file:\/\/)?(?:\/|[A-Za-z]:[\\/])[^()]*?):(\d+)(?::(\d+))?\)?$/

export class SourceMaps {
  readonly #root: string
  readonly #translated = new Map<string, Translated>()

  readonly #paths: PathModule

  /** @param root folder of the project, to which locations are relative */
  constructor(root: string, paths: PathModule = path) {
    this.#root = root
    this.#paths = paths
  }

  /** @param module path of the JavaScript @param source path of the TypeScript @param map as the TypeScript compiler writes it */
  add(module: string, source: string, map: string): void {
    this.#translated.set(module, { source, map: new SourceMap(JSON.parse(map) as MapPayload) })
  }

  /** The innermost location of the author in a stack; without one, the innermost location that `isForeign` accepts. */
  placeOf(stack: string | undefined, isForeign: (path: string) => boolean = () => false): Place | undefined {
    let foreign: Place | undefined
    for (const line of (stack ?? '').split('\n')) {
      const [, file, at, column = '1'] = framePattern.exec(line.trim()) ?? []
      if (file === undefined) continue
      const module = file.startsWith('file://') ? fileURLToPath(file, { windows: this.#paths.sep === '\\' }) : file
      const translated = this.#translated.get(module)
      if (translated !== undefined) return this.#original(translated, Number(at), Number(column))
      if (foreign === undefined && isForeign(module))
        foreign = { file: this.#name(module), line: Number(at), column: Number(column) }
    }
    return foreign
  }

  #original({ source, map }: Translated, line: number, column: number): Place | undefined {
    const entry = map.findEntry(line - 1, column - 1)
    if (!('originalLine' in entry)) return undefined
    return { file: this.#name(source), line: entry.originalLine + 1, column: entry.originalColumn + 1 }
  }

  #name(file: string): string {
    const name = nameIn(this.#root, file, this.#paths)
    return this.#paths.isAbsolute(name) || name.startsWith('../../') ? file : name
  }
}
