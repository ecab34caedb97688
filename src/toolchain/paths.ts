/**
 * Where things are. Three roots: the package (heddle's own sources, read only when it is installed under node_modules), the project (the folder
 * heddle works in; libraries of its kernels go to its `.heddle`) and the user's cache, which alone holds the addon. In the repository the first
 * two are the same.
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
 * The folder that holds `native/`, `templates/` and heddle's own `package.json`; in the portable bundle (its addon lies
 * beside the JavaScript), the bundle's folder.
 */
export function packageRoot(from: string = import.meta.url): string {
  const start = dirname(fileURLToPath(from))
  if (existsSync(join(start, 'heddle.node'))) return start
  for (let folder = start; folder !== dirname(folder); folder = dirname(folder)) if (isPackage(folder)) return folder
  return start
}

/** Scripts of other people's ways of running models, which `bench` times; all of them travel with the bundle. */
export const peersFolder = (): string => join(packageRoot(), 'src', 'bench', 'peers')

/**
 * The native build of this package: cmake's folder, and in it what it leaves, heddle.node and the device plugins. A folder for each place a package
 * lies at, so that the builds of two do not undo each other.
 * @throws environment `cache.foreign`
 */
export function nativePlace(): { readonly folder: string; readonly release: string } {
  const folder = join(cacheFolder(), 'addon', sha256(realpathSync(packageRoot())).slice(0, 16))
  return { folder, release: join(folder, 'Release') }
}

/** Everything heddle builds under a project root. */
export const outputs = (root: string) => {
  const base = join(root, '.heddle')
  return {
    base,
    target: (target: Target) => join(base, target),
    library: (target: Target) => join(base, target, 'libheddle_kernels.so'),
    report: (target: Target) => join(base, target, 'build.json'),
  }
}
