/** The handlebars templates in `templates/`: frames that set names and splice compiled source. None holds an algorithm. */
import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Handlebars from 'handlebars'
import { environmentError } from '../errors.js'
import type { SourceSpan } from '../ir/kernel.js'

/** Parts of generated source. */
const names = ['file', 'kernel', 'whole', 'launcher', 'registry', 'template', 'slots', 'part', 'last'] as const
export type TemplateName =
  | (typeof names)[number]
  | `export_${'cmake' | 'example' | 'header'}`
  | `generator_${'example' | 'header' | 'wrapper'}`
  | 'repro_case'
  | 'torch'
  | 'torch_generator'
  | 'torch_library'

/**
 * A place in a spec as the contents of a comment. File names may contain characters that end a comment or a line; these are written as `%0a`, as in
 * an address.
 */
export const placeText = ({ file, line }: SourceSpan): string =>
  `${file.replace(/[\p{Cc}\p{Zl}\p{Zp}\\*?]/gu, (sign) => `%${(sign.codePointAt(0) ?? 0).toString(16).padStart(2, '0')}`)}:${line}`

const engine = Handlebars.create()
const compiled = new Map<TemplateName, Handlebars.TemplateDelegate>()

/** Fills a template. A name that the template uses and `values` lacks is an error. */
export function render(name: TemplateName, values: object): string {
  const template =
    compiled.get(name) ?? engine.compile(readFileSync(join(folder(), `${name}.hbs`), 'utf8'), { noEscape: true, strict: true })
  compiled.set(name, template)
  return template(values)
}

let digest: string | undefined

/** Digest of the templates, on which generated source depends too. */
export function templatesDigest(): string {
  digest ??= createHash('sha256')
    .update(JSON.stringify(names.map((name) => readFileSync(join(folder(), `${name}.hbs`), 'utf8'))))
    .digest('base64url')
  return digest
}

/** Returns `templates/` beside the package's sources, however deep this module lies in it. */
function folder(): string {
  let at = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(at, 'templates', 'kernel.hbs'))) {
    const parent = dirname(at)
    if (parent === at) {
      throw environmentError('emit.templates', 'the folder templates/ of the heddle package is missing', {
        hint: 'reinstall heddle',
      })
    }
    at = parent
  }
  return join(at, 'templates')
}
