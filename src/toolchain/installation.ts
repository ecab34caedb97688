/**
 * Which built things a project uses: its own, or those of the portable bundle heddle runs from. A bundle is complete in itself, so
 * what happens to lie in the current folder never mixes with it.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { outputs, packageRoot, type Target } from './paths.js'

export interface Installation {
  /** Holds `manifest.json`: the project's own generated text, or the shipped one for a project without ops. */
  readonly generated: string
  /** Holds `heddle.node` and the device plugins. */
  readonly native: string
  library(target: Target): string
  report(target: Target): string
}

/** @param base folder of heddle's own files; the package's or the bundle's by default */
export function installation(root: string, base: string = packageRoot()): Installation {
  if (existsSync(join(base, 'heddle.node'))) {
    return {
      generated: join(base, 'generated'),
      native: base,
      library: (target) => join(base, target, 'libheddle_kernels.so'),
      report: (target) => join(base, target, 'build.json'),
    }
  }
  const own = join(root, 'generated')
  const { nativeRelease, library, report } = outputs(root)
  return {
    generated: existsSync(join(own, 'manifest.json')) ? own : join(base, 'generated'),
    native: nativeRelease,
    library,
    report,
  }
}
