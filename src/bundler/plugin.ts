/**
 * The part of Rollup's plugin interface, which Rolldown and Vite share, that heddle needs. It is declared here because heddle depends on no
 * bundler.
 */
import { resolve } from 'node:path'
import { type HeddleError, usageError } from '../errors.js'

/** An error or a message with its place. */
export interface PluginLog {
  readonly message: string
  readonly loc?: { readonly file: string; readonly line: number /** From 0. */; readonly column: number }
  readonly pluginCode?: string
}

/** `this` of hooks. */
export interface PluginContext {
  readonly meta: { readonly watchMode: boolean }
  /** Of Vite alone. */
  readonly environment?: { readonly config: { readonly consumer: string } }
  info(text: string): void
  warn(text: string): void
  error(log: PluginLog): never
  addWatchFile(path: string): void
}

export interface BundlerPlugin {
  readonly name: string
  /** Read by Vite alone, like `config` and `configResolved`. */
  readonly enforce: 'pre'
  config(): { ssr: { external: string[] } }
  configResolved(config: { readonly root: string }): void
  buildStart(): void
  watchChange(): void
  resolveId(this: PluginContext, source: string): Promise<{ id: string; external: true } | null>
  transform(this: PluginContext, code: string, id: string): Promise<null>
  buildEnd(this: PluginContext, error?: Error): Promise<void>
}

/** An error as bundlers show it: at its place in the file, with the codes and hints that the command line prints. */
export function failureLog({ code, message, hint, places: [place] }: HeddleError, root: string): PluginLog {
  return {
    message: `${code}: ${message}${hint === undefined ? '' : `\nhint: ${hint}`}`,
    pluginCode: code,
    ...(place === undefined
      ? {}
      : { loc: { file: resolve(root, place.file), line: place.line, column: Math.max(0, place.column - 1) } }),
  }
}

/** Entries that are plain JavaScript. */
const forBrowsers: ReadonlySet<string> = new Set(['heddle', 'heddle/std'])

/** Refuses an entry that needs Node in a bundle for browsers, where it would fail when it is loaded. @throws usage `bundler.browser` */
export function refuseInBrowser(source: string): void {
  if (forBrowsers.has(source) || source.startsWith('heddle/specs/')) return
  throw usageError('bundler.browser', `${source} runs in Node, and this bundle is for browsers`, {
    hint: 'call kernels on the server, in a bundle of vite build --ssr',
  })
}
