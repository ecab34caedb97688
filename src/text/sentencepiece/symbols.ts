/** A text as the symbols that pairs are joined of: characters, and symbols of the user, which are never joined. */

export interface TextSymbol {
  readonly text: string
  /** True if it is the user's. */
  readonly own: boolean
}

/** The symbols of a text. @param own symbols of the user, of which the longest is taken */
export function symbolsOf(text: string, own: readonly string[]): TextSymbol[] {
  const longestFirst = own.toSorted((a, b) => b.length - a.length)
  const symbols: TextSymbol[] = []
  for (let at = 0; at < text.length; ) {
    const found = longestFirst.find((symbol) => text.startsWith(symbol, at))
    const symbol = found ?? String.fromCodePoint(text.codePointAt(at) ?? 0)
    symbols.push({ text: symbol, own: found !== undefined })
    at += symbol.length
  }
  return symbols
}
