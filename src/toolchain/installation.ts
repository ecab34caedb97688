/**
 * Which built things a project uses: its own, or those of the portable bundle heddle runs from. A bundle is complete in itself, so
 * what happens to lie in the current folder never mixes with it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { nativePlace, outputs, packageRoot, type Target } from './paths.js'

export interface Installation {
  /** The folders that hold generated text and a `manifest.json`: the project's own, and the shipped one behind it. The first may be absent. */
  readonly generated: readonly string[]
  /** Holds `heddle.node` and the device plugins: below the user's cache, or the bundle's folder. @throws environment `cache.foreign` */
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
      // A bundle of a project has both, one of what ships alone has it in the first.
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
      return nativePlace().release
    },
    portable: false,
    library,
    report,
  }
}

/**
 * The folder that a whole build compiles: the project's own generated text, or the shipped one in a project without any.
 */
export function generatedFolder(root: string): string {
  const { generated } = installation(root)
  return generated.find((folder) => existsSync(join(folder, 'manifest.json'))) ?? generated[0] ?? root
}
