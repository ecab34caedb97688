/** Pieces of text that exported files are made of. */
import { type Extent, printExtent, type Shape, termsOf } from '../ir/shape.js'

/** An extent in C++, over variables of type Size; a number where it is one. */
export function sizeText({ factor, dims }: Extent): string {
  if (dims.length === 0) return String(factor)
  const parts = dims.map((dim) => {
    const terms = termsOf(dim)
    return terms === undefined ? `d_${dim}` : `(${terms.map((term) => sizeText(term)).join(' + ')})`
  })
  return [...(factor === 1 ? [] : [`Size(${factor})`]), ...parts].join(' * ')
}

/** An extent in Python or C, over what dimensions are called there. */
export function plainText({ factor, dims }: Extent, called: (dim: string) => string): string {
  const parts = dims.map((dim) => {
    const terms = termsOf(dim)
    return terms === undefined ? called(dim) : `(${terms.map((term) => plainText(term, called)).join(' + ')})`
  })
  return [...(factor === 1 && parts.length > 0 ? [] : [String(factor)]), ...parts].join(' * ')
}

/** A text in quotes, for C, C++ and Python. */
export const quoted = (text: string): string => JSON.stringify(text)

export const braced = (items: readonly string[]): string => `{${items.join(', ')}}`

/** `[b, s, 768]`, as comments have it. */
export const shapeText = (shape: Shape): string => `[${shape.map(printExtent).join(', ')}]`

/** Items in lines of at most some columns. */
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
