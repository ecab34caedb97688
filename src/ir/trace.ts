/**
 * Mapping from lines of a printed or generated text to source lines. While a text is traced, each expression appends a mark that names its
 * source lines; the marks are then parsed and removed from the finished text. Printers, emitters and templates need no support for this,
 * and texts that are not traced contain no marks.
 */
import type { Expr } from './expr.js'
import { placesOf } from './walk.js'

/** A text with the source lines, `file:line`, of each of its lines. */
export interface TracedText {
  readonly text: string
  /** Source lines by line of the text, from 0. */
  readonly places: readonly (readonly string[])[]
}

/**
 * Two characters of Unicode's private use area, which no name can contain. The JSON between them is hexadecimal, so that no emitter mistakes it for
 * code.
 */
const [open, close] = ['\uE000', '\uE001'] as const
const marks = new RegExp(`${open}([0-9a-f]*)${close}`, 'g')

let isTracing = false

/** Mark with the source lines of expressions, for their line of a traced text. Empty if no text is being traced. */
export function mark(...exprs: readonly Expr[]): string {
  if (!isTracing) return ''
  const places = [...new Set(exprs.flatMap(placesOf))]
  return places.length === 0 ? '' : `${open}${Buffer.from(JSON.stringify(places)).toString('hex')}${close}`
}

function placesIn(marked: string): readonly string[] {
  const found = [...marked.matchAll(marks)].flatMap(([, hex = '']): string[] => {
    const places: unknown = JSON.parse(Buffer.from(hex, 'hex').toString())
    return Array.isArray(places) ? places.filter((place) => typeof place === 'string') : []
  })
  return [...new Set(found)]
}

/** The text that `make` returns, with the source lines of each of its lines. `make` must be synchronous. */
export function traced(make: () => string): TracedText {
  isTracing = true
  try {
    const marked = make()
    return { text: marked.replace(marks, ''), places: marked.split('\n').map(placesIn) }
  } finally {
    isTracing = false
  }
}
