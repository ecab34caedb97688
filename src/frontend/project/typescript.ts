/**
 * Lazy loading of ts-morph, which contains TypeScript's compiler: loading takes as long as everything else that a verb does
 * if no spec has changed. V8's code of their 13 MB is stored in the user's cache, with which loading takes a third of the time.
 */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { createRequire, Module } from 'node:module'
import { dirname, join } from 'node:path'
import { Script } from 'node:vm'
import { cacheFolder } from '../../cache_folder.js'
import { type Memo, memoIn, noMemo } from '../../memo.js'

type Morph = typeof import('ts-morph')

let loaded: Morph | undefined

/** Returns ts-morph; the first call loads it. */
export function tsMorph(): Morph {
  if (loaded === undefined) {
    const morph = createRequire(import.meta.url).resolve('ts-morph')
    const load = createRequire(morph)
    const common = load.resolve('@ts-morph/common')
    // Each requires the ones before it.
    for (const file of [join(dirname(common), 'typescript.js'), common, morph]) loadCached(file)
    loaded = load(morph) as Morph
  }
  return loaded
}

/** Wrapper function of a CommonJS module. */
type Run = (this: unknown, exports: unknown, require: NodeJS.Require, module: NodeJS.Module, file: string, folder: string) => void

/**
 * Loads a module into the cache of `require`. V8's code comes from an earlier run; otherwise it is stored when the process ends, with every
 * function that was used.
 */
function loadCached(file: string): void {
  const require = createRequire(file)
  if (require.cache[file] !== undefined || !existsSync(file)) return
  const text = readFileSync(file)
  const slot = userMemo().slot<Uint8Array>('code', [createHash('sha256').update(text).digest('base64url')])
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

/** Cache shared by all projects of a user. Without a home directory nothing is cached. */
function userMemo(): Memo {
  try {
    return memoIn(join(cacheFolder(), 'kept'))
  } catch {
    return noMemo
  }
}
