/**
 * ts-morph, and in it TypeScript's compiler, loaded by whoever needs it first: loading takes as long as everything else that a verb does
 * where no spec has changed. What V8 made of their 13 MB is kept in the user's cache: loading takes a third of the time with it.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'
import { Script } from 'node:vm'
import { cacheFolder } from '../cache_folder.js'
import { type Memo, memoIn, noMemo } from '../memo.js'

type Morph = typeof import('ts-morph')

let loaded: Morph | undefined

/** Loads it in the first call. */
export function tsMorph(): Morph {
  if (loaded === undefined) {
    const morph = createRequire(import.meta.url).resolve('ts-morph')
    const load = createRequire(morph)
    const common = load.resolve('@ts-morph/common')
    // Each requires the ones in front of it.
    for (const file of [join(dirname(common), 'typescript.js'), common, morph]) loadKept(file)
    loaded = load(morph) as Morph
  }
  return loaded
}

/** What Node makes of the text of a CommonJS module. */
type Run = (this: unknown, exports: unknown, require: NodeJS.Require, module: NodeJS.Module, file: string, folder: string) => void

/** Puts a module where `require` finds it. Its code is V8's of an earlier run, or kept for later ones when the process ends: it holds every function that was used. */
function loadKept(file: string): void {
  const require = createRequire(file)
  if (require.cache[file] !== undefined || !existsSync(file)) return
  const text = readFileSync(file)
  const slot = userKept().slot<Uint8Array>('code', [createHash('sha256').update(text).digest('base64url')])
  const cachedData = slot.read()
  const wrapped = `(function (exports, require, module, __filename, __dirname) { ${text.toString()}\n})`
  const script = new Script(wrapped, { filename: file, ...(cachedData === undefined ? {} : { cachedData }) })
  // Another version of V8, or other flags.
  const isNew = cachedData === undefined || script.cachedDataRejected === true
  if (isNew) process.once('exit', () => slot.write(script.createCachedData()))
  const module = new Module(file)
  module.filename = file
  require.cache[file] = module
  const run = script.runInThisContext() as Run
  run.call(module.exports, module.exports, require, module, file, dirname(file))
  module.loaded = true
}

/** Results of no one project. A user without a home keeps none. */
function userKept(): Memo {
  try {
    return memoIn(join(cacheFolder(), 'kept'))
  } catch {
    return noMemo
  }
}
