/**
 * The page as one self-contained HTML file with style, script and data, so that it can be mailed, archived and opened without a
 * network. The script is src/explorer/client, which the package ships bundled as `dist/explorer.js`.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import { environmentError } from '../errors.js'
import { packageRoot } from '../toolchain/paths.js'
import type { ExplorerData } from './model.js'

/** Files of a page, relative to the package. */
export const pageFiles = { template: 'templates/explorer.hbs', script: 'dist/explorer.js' } as const

function readPart(file: string): string {
  const path = join(packageRoot(), file)
  if (!existsSync(path)) {
    throw environmentError('explore.page', `a part of the page, ${path}, is missing`, { hint: 'reinstall heddle' })
  }
  return readFileSync(path, 'utf8')
}

/** JSON that is safe inside a script element, for any strings. */
export const inlineJson = (value: unknown): string =>
  JSON.stringify(value).replaceAll('<', '\\u003c').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')

/** @throws environment `explore.page` if the package is incomplete */
export function pageHtml(data: ExplorerData): string {
  const script = readPart(pageFiles.script).replaceAll('</script', '<\\/script')
  const render = Handlebars.create().compile(readPart(pageFiles.template))
  // The template escapes the title; script and data are not escaped, but cannot end their elements.
  // A live page asks its own server, and no other.
  return render({ title: data.title, command: data.command, script, data: inlineJson(data), live: data.live !== undefined })
}
