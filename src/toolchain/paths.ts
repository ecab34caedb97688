/**
 * Paths of heddle. There are three roots: the package (heddle's own sources, read only when it is installed under node_modules), the project
 * (heddle's working folder; libraries of its kernels go to its `.heddle`) and the user's cache, which alone holds the addon. In the repository
 * the first two are the same.
 */
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cacheFolder } from '../cache_folder.js'
import { sha256 } from './hash.js'

/** A kernel library is built once per target. */
export type Target = 'simt' | 'cuda'

export const targets: readonly Target[] = ['simt', 'cuda']

function isPackage(folder: string): boolean {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return false
  const parsed: unknown = JSON.parse(readFileSync(file, 'utf8'))
  return typeof parsed === 'object' && parsed !== null && 'name' in parsed && parsed.name === 'heddle'
}

/**
 * Folder of `native/`, `templates/` and heddle's own `package.json`; in the portable bundle (its addon is next to the JavaScript), the bundle's
 * folder.
 */
export function packageRoot(from: string = import.meta.url): string {
  const start = dirname(fileURLToPath(from))
  if (existsSync(join(start, 'heddle.node'))) return start
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) if (isPackage(folder)) return folder
  return start
}

/** Folder of scripts that run models by other software, which `bench` times; the bundle contains all of them. */
export const peersFolder = (): string => join(packageRoot(), 'src', 'bench', 'peers')

/**
 * Folders of this package's native build: cmake's folder, and in it the outputs, heddle.node and the device plugins. There is one folder per path
 * of a package, so that two packages do not overwrite each other's build.
 * @throws environment `cache.foreign`
 */
export function nativePlace(): { readonly folder: string; readonly release: string } {
  const folder = join(cacheFolder(), 'addon', sha256(realpathSync(packageRoot())).slice(0, 16))
  return { folder, release: join(folder, 'Release') }
}

/** Paths of build outputs under a project root. */
export const outputs = (root: string) => {
  const base = join(root, '.heddle')
  return {
    base,
    target: (target: Target) => join(base, target),
    library: (target: Target) => join(base, target, 'libheddle_kernels.so'),
    report: (target: Target) => join(base, target, 'build.json'),
  }
}
