/**
 * `heddle/bundler`: a plugin of Rolldown, Vite and Rollup. A bundle that contains specs of a project gets their kernels: source is generated when
 * the first of these modules is read, and compiled when all modules have been read. heddle itself stays a package beside the bundle.
 */
import { resolve } from 'node:path'
import { HeddleError } from '../errors.js'
import { isWithin } from '../path_names.js'
import type { Target } from '../toolchain/index.js'
import { type BundlerPlugin, failureLog, type PluginContext, refuseInBrowser } from './plugin.js'

export type { BundlerPlugin } from './plugin.js'

export interface HeddleOptions {
  /** Folder of the project; by default the nearest one above the bundler's root whose package depends on heddle. */
  readonly root?: string
  /** Folder of the spec modules; `specs` by default. */
  readonly specs?: string
  /**
   * Devices to compile kernels for; `[]` leaves compilation to the first call. By default the CPU device, and the GPU where there is one with
   * nvcc; nothing without a C++ compiler, and while the bundler watches.
   */
  readonly targets?: readonly Target[]
}

/** Packages of heddle by their entries. */
const isHeddle = (source: string): boolean => /^heddle(\/|$)/.test(source)

/** Path of a module, without a bundler's query, as Node writes it. */
const pathOf = (id: string): string => resolve(id.replace(/[?#].*$/, ''))

/** Plugin that builds the kernels of the specs in a bundle. */
export function heddle(options: HeddleOptions = {}): BundlerPlugin {
  const { specs = 'specs' } = options
  let root = options.root === undefined ? undefined : resolve(options.root)
  let above = process.cwd()
  let generated: Promise<readonly string[]> | undefined

  const rootOf = async (): Promise<string> => {
    root ??= (await import('./build.js')).projectAbove(above)
    return root
  }
  const guarded = async <T>(context: PluginContext, act: (root: string) => Promise<T>): Promise<T> => {
    const folder = await rootOf()
    try {
      return await act(folder)
    } catch (error) {
      if (error instanceof HeddleError) return context.error(failureLog(error, folder))
      throw error
    }
  }

  return {
    name: 'heddle',
    // Vite resolves packages itself otherwise.
    enforce: 'pre',
    config: () => ({ ssr: { external: ['heddle'] } }),
    configResolved(config) {
      above = config.root
    },
    buildStart() {
      generated = undefined
    },
    watchChange() {
      generated = undefined
    },
    async resolveId(source) {
      if (!isHeddle(source)) return null
      if (this.environment?.config.consumer !== 'client') return { id: source, external: true }
      await guarded(this, async () => refuseInBrowser(source))
      return null
    },
    async transform(_, id) {
      const folder = await rootOf()
      if (!isWithin(resolve(folder, specs), pathOf(id))) return null
      const { generate, specFiles } = await import('./build.js')
      // Specs with errors are watched, too.
      for (const path of specFiles(resolve(folder, specs))) this.addWatchFile(path)
      await guarded(this, async () => {
        generated ??= generate(folder, specs, this)
        for (const path of await generated) this.addWatchFile(path)
      })
      return null
    },
    async buildEnd(error) {
      if (error !== undefined || generated === undefined) return
      const { targets } = options
      if (targets === undefined && this.meta.watchMode) return
      await guarded(this, async (folder) => (await import('./build.js')).compile(folder, targets, this))
    },
  }
}
