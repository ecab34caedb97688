/**
 * Where things are. Two roots: the package (heddle's own sources, read only when it is installed under node_modules) and the
 * project (the folder heddle works in; everything built goes to its `.heddle`). In the repository the two are the same.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

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

/** Everything heddle builds under a project root. */
export const outputs = (root: string) => {
  const base = join(root, '.heddle')
  return {
    base,
    native: join(base, 'native'),
    /** What the native build leaves: heddle.node and the device plugins. */
    nativeRelease: join(base, 'native', 'Release'),
    target: (target: Target) => join(base, target),
    library: (target: Target) => join(base, target, 'libheddle_kernels.so'),
    report: (target: Target) => join(base, target, 'build.json'),
  }
}
