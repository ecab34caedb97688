/**
 * Which lines of a source each line of a printed or generated text was made of. While a text is traced, expressions leave a mark behind
 * themselves that names the lines they were written in; the finished text is read for marks and freed of them. So texts that are put together
 * by printers, writers and templates need to know nothing of it, and texts that are not traced hold no mark.
 */
import type { Expr } from './expr.js'
import { placesOf } from './walk.js'

/** A text with the lines of sources, `file:line`, that each of its lines was made of. */
export interface TracedText {
  readonly text: string
  /** By line of the text, from 0. */
  readonly places: readonly (readonly string[])[]
}

/** Two characters of Unicode's private use area, which no name can hold. Between them is JSON in hexadecimal, which no writer takes for code. */
const [open, close] = ['\uE000', '\uE001'] as const
const marks = new RegExp(`${open}([0-9a-f]*)${close}`, 'g')

let isTracing = false

/** What leaves the places of expressions in a text that is traced: to be put on their line. Nothing in any other text. */
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

/** What `make` returns, and the places of its lines. `make` ends before this does: it waits for nothing. */
export function traced(make: () => string): TracedText {
  isTracing = true
  try {
    const marked = make()
    return { text: marked.replace(marks, ''), places: marked.split('\n').map(placesIn) }
  } finally {
    isTracing = false
  }
}
