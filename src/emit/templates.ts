/** The handlebars templates in `templates/`: frames that set names and splice compiled text. None holds an algorithm. */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Handlebars from 'handlebars'
import { environmentError } from '../errors.js'

export type TemplateName = 'file' | 'kernel' | 'whole' | 'launcher' | 'registry' | 'bindings' | 'template' | 'slots'

const engine = Handlebars.create()
const compiled = new Map<TemplateName, Handlebars.TemplateDelegate>()

/** Fills a template. A name the template uses and `values` lacks is an error. */
export function render(name: TemplateName, values: object): string {
  const template =
    compiled.get(name) ?? engine.compile(readFileSync(join(folder(), `${name}.hbs`), 'utf8'), { noEscape: true, strict: true })
  compiled.set(name, template)
  return template(values)
}

/** `templates/` beside the package's sources, however deep this module lies in it. */
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
