/** Text fragments shared by exported files. */
import type { Count } from '../ir/facts/facts.js'
import { type Extent, printExtent, quotientOf, type Shape, termsOf } from '../ir/shape.js'
import type { LoweredValue } from './lowered.js'
import { isExtent, type Size } from './sizes.js'

/** A size as C++, over variables of type Size; a literal where it is a number. */
export function sizeText(size: Size): string {
  if (!isExtent(size)) return countText(size, (dim) => `d_${dim}`, inC)
  const { factor, dims } = size
  if (dims.length === 0) return String(factor)
  const parts = dims.map((dim) => {
    const [terms, quotient] = [termsOf(dim), quotientOf(dim)]
    if (quotient !== undefined) return `((${sizeText(quotient.of)}) / (${sizeText(quotient.by)}))`
    return terms === undefined ? `d_${dim}` : `(${terms.map((term) => sizeText(term)).join(' + ')})`
  })
  return [...(factor === 1 ? [] : [`Size(${factor})`]), ...parts].join(' * ')
}

/** C++ spelling of operations on non-negative integers. */
interface Written {
  readonly quotient: string
  readonly least: (a: string, b: string) => string
  readonly most: (a: string, b: string) => string
}

const inC: Written = {
  quotient: '/',
  least: (a, b) => `(${a} < ${b} ? ${a} : ${b})`,
  most: (a, b) => `(${a} > ${b} ? ${a} : ${b})`,
}
export const inPython: Written = { quotient: '//', least: (a, b) => `min(${a}, ${b})`, most: (a, b) => `max(${a}, ${b})` }

const symbols = { add: '+', sub: '-', mul: '*', mod: '%' } as const

/** A count, in parentheses where it is an operation. */
function countText(count: Count, called: (dim: string) => string, written: Written): string {
  if (typeof count === 'number') return String(count)
  if (typeof count === 'string') return called(count)
  const [operation, first = 0, second = 0] = count
  const [a, b] = [countText(first, called, written), countText(second, called, written)]
  if (operation === 'minimum') return written.least(a, b)
  if (operation === 'maximum') return written.most(a, b)
  return `(${a} ${operation === 'idiv' ? written.quotient : symbols[operation]} ${b})`
}

/** A size in C or another language, over the given names of dimensions. */
export function plainText(size: Size, called: (dim: string) => string, written = inC): string {
  if (!isExtent(size)) return countText(size, called, written)
  const { factor, dims } = size
  const parts = dims.map((dim) => {
    const [terms, quotient] = [termsOf(dim), quotientOf(dim)]
    const text = (extent: Extent): string => plainText(extent, called, written)
    if (quotient !== undefined) return `((${text(quotient.of)}) ${written.quotient} (${text(quotient.by)}))`
    return terms === undefined ? called(dim) : `(${terms.map(text).join(' + ')})`
  })
  return [...(factor === 1 && parts.length > 0 ? [] : [String(factor)]), ...parts].join(' * ')
}

/** A string literal, for C, C++ and Python. */
export const quoted = (text: string): string => JSON.stringify(text)

export const braced = (items: readonly string[]): string => `{${items.join(', ')}}`

/** `[b, s, 768]`, as in comments. */
export const shapeText = (shape: Shape): string => `[${shape.map(printExtent).join(', ')}]`

/** Comment after the shape of a value: its layout, and its number of elements if the layout pads. */
export function layoutText({ layout, padded }: Pick<LoweredValue, 'layout' | 'padded'>): string {
  if (layout === 'row') return ''
  return `, layout ${layout}${padded === undefined ? '' : `: ${plainText(padded, (dim) => dim)} elements`}`
}

/** Items in lines of a maximum width. */
export function wrapped(items: readonly string[], indent: string, width = 130): string {
  const lines: string[] = []
  let line = indent
  for (const [i, item] of items.entries()) {
    const text = i === items.length - 1 ? item : `${item},`
    if (line.trim() !== '' && line.length + text.length + 1 > width) {
      lines.push(line)
      line = indent
    }
    line += line === indent ? text : ` ${text}`
  }
  if (line.trim() !== '') lines.push(line)
  return lines.join('\n')
}
