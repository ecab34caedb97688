/**
 * Finds and loads the Node addon. It is in the folder of the device plugins: in the platform package, in the user's cache, next to the JavaScript
 * file in a bundle, or as named by HEDDLE_NATIVE. No other folder is searched. Loading it needs neither a GPU nor CUDA.
 */
import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { environmentError } from '../errors.js'
import { nativeHome } from '../toolchain/platform_package.js'
import type { NativeAddon } from './native.js'

/** HEDDLE_ABI_VERSION of native/include/heddle/abi.h. */
const abiVersion = 3
const addonFile = 'heddle.node'
const buildHint = 'run heddle build'

/** Folders that may hold the addon, most specific first. @throws environment `cache.foreign` */
function candidates(): string[] {
  const configured = process.env.HEDDLE_NATIVE
  if (configured !== undefined && configured !== '') return [resolve(configured)]
  const here = dirname(fileURLToPath(import.meta.url))
  return existsSync(join(here, addonFile)) ? [here] : [nativeHome()]
}

/**
 * Folder of the addon and the device plugins.
 * @throws environment `addon.missing` naming the searched folders
 */
export function nativeFolder(): string {
  const folders = candidates()
  const found = folders.find((folder) => existsSync(join(folder, addonFile)))
  if (found === undefined) {
    const hint = process.env.HEDDLE_NATIVE ? `correct HEDDLE_NATIVE, or unset it and ${buildHint}` : buildHint
    throw environmentError('addon.missing', `${addonFile} is not built; looked in ${folders.join(', ')}`, { hint })
  }
  return found
}

let loaded: { readonly folder: string; readonly addon: NativeAddon } | undefined

/**
 * Loads the addon, once per process and folder.
 * @throws environment `addon.missing`, `addon.load` if the file cannot be loaded, `addon.version` if it is from another version
 */
export function loadAddon(): NativeAddon {
  const folder = nativeFolder()
  if (loaded?.folder === folder) return loaded.addon
  const path = join(folder, addonFile)
  let addon: NativeAddon
  try {
    addon = createRequire(import.meta.url)(path) as NativeAddon
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw environmentError('addon.load', `cannot load ${path}: ${reason}`, { hint: buildHint, cause })
  }
  if (addon.abiVersion !== abiVersion) {
    throw environmentError(
      'addon.version',
      `${path} has interface version ${addon.abiVersion}, this heddle needs ${abiVersion}`,
      {
        hint: buildHint,
      },
    )
  }
  loaded = { folder, addon }
  return addon
}
