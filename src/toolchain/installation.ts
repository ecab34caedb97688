/**
 * Paths of the built files that a project uses: its own, or those of the portable bundle from which heddle runs. A bundle is self-contained, so
 * files of the current folder never mix with it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { outputs, packageRoot, type Target } from './paths.js'
import { nativeHome } from './platform_package.js'

export interface Installation {
  /** Folders of generated source with a `manifest.json`: the project's own, then the shipped one. The first may be absent. */
  readonly generated: readonly string[]
  /** Folder of `heddle.node` and the device plugins: in the user's cache, or the bundle's folder. @throws environment `cache.foreign` */
  readonly native: string
  /** True for the portable bundle, which compiles nothing. */
  readonly portable: boolean
  library(target: Target): string
  report(target: Target): string
}

/** @param base folder of heddle's own files; the package's or the bundle's by default */
export function installation(root: string, base: string = packageRoot()): Installation {
  if (existsSync(join(base, 'heddle.node'))) {
    return {
      // A bundle of a project has both folders, one without own kernels only the first.
      generated: ['generated', 'shipped'].map((name) => join(base, name)).filter(existsSync),
      native: base,
      portable: true,
      library: (target) => join(base, target, 'libheddle_kernels.so'),
      report: (target) => join(base, target, 'build.json'),
    }
  }
  const { library, report } = outputs(root)
  return {
    generated: [...new Set([join(root, 'generated'), join(base, 'generated')])],
    get native() {
      return nativeHome()
    },
    portable: false,
    library,
    report,
  }
}

/**
 * Folder that a full build compiles: the project's own generated source, or the shipped one in a project without any.
 */
export function generatedFolder(root: string): string {
  const { generated } = installation(root)
  return generated.find((folder) => existsSync(join(folder, 'manifest.json'))) ?? generated[0] ?? root
}
