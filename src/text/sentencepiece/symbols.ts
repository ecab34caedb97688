/** A text as the symbols that are merged: characters, and user-defined symbols, which are never merged. */

export interface TextSymbol {
  readonly text: string
  /** True if it is user-defined. */
  readonly own: boolean
}

/** Symbols of a text. @param own user-defined symbols, of which the longest match is taken */
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
