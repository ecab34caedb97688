/**
 * Byte-pair encoding (Sennrich et al. 2016) as in SentencePiece: of all adjacent pairs that form a piece, the one with the highest score is merged,
 * the leftmost of equals, until none is left. Pieces that are marked as unused are split again.
 */
import type { PieceModel } from './model.js'
import { symbolsOf } from './symbols.js'
import type { Cut } from './unigram.js'

interface Pair {
  readonly left: number
  readonly right: number
  readonly score: number
  /** Length of both, to detect a pair of which one side has been merged since. */
  readonly length: number
}

/** A function that splits a normalised text into pieces. */
export function bytePairsOf({ pieces, unknown }: Pick<PieceModel, 'pieces' | 'unknown'>): (text: string) => readonly Cut[] {
  const ids = new Map<string, number>()
  for (const [id, { text, type }] of pieces.entries()) {
    if (type === 'normal' || type === 'user' || type === 'unused') ids.set(text, id)
  }
  const own = pieces.filter(({ type }) => type === 'user').map(({ text }) => text)
  const isUnused = (text: string): boolean => pieces[ids.get(text) ?? unknown]?.type === 'unused'
  return (text) => {
    const symbols = symbolsOf(text, own)
    const next = symbols.map((_, i) => i + 1)
    const before = symbols.map((_, i) => i - 1)
    const apart = new Map<string, readonly [string, string]>()
    const pairs = heapOf<Pair>((a, b) => a.score > b.score || (a.score === b.score && a.left < b.left))
    const offer = (left: number, right: number): void => {
      const [a, b] = [symbols[left], symbols[right]]
      if (a === undefined || b === undefined || a.own || b.own) return
      const joined = a.text + b.text
      const id = ids.get(joined)
      if (id === undefined) return
      if (isUnused(joined)) apart.set(joined, [a.text, b.text])
      pairs.push({ left, right, score: pieces[id]?.score ?? 0, length: joined.length })
    }
    for (let i = 1; i < symbols.length; i++) offer(i - 1, i)
    for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
      const { left, right, length } = pair
      const [a, b] = [symbols[left], symbols[right]]
      if (a === undefined || b === undefined || a.text === '' || b.text === '' || a.text.length + b.text.length !== length)
        continue
      symbols[left] = { text: a.text + b.text, own: false }
      symbols[right] = { text: '', own: false }
      const after = next[right] ?? symbols.length
      next[left] = after
      if (after < symbols.length) before[after] = left
      offer(before[left] ?? -1, left)
      offer(left, after)
    }
    const cut = (part: string): readonly Cut[] => {
      const halves = isUnused(part) ? apart.get(part) : undefined
      return halves === undefined ? [{ text: part, id: ids.get(part) ?? unknown }] : halves.flatMap(cut)
    }
    return symbols.filter((symbol) => symbol.text !== '').flatMap((symbol) => cut(symbol.text))
  }
}

interface Heap<T> {
  push(value: T): void
  /** Removes and returns the first value; undefined if the heap is empty. */
  pop(): T | undefined
}

/** A binary heap. @param first true if a value comes before another */
function heapOf<T>(first: (a: T, b: T) => boolean): Heap<T> {
  const values: T[] = []
  const comesFirst = (a: number, b: number): boolean => {
    const [left, right] = [values[a], values[b]]
    return left !== undefined && right !== undefined && first(left, right)
  }
  const swap = (a: number, b: number): void => {
    const [left, right] = [values[a], values[b]]
    if (left === undefined || right === undefined) return
    values[a] = right
    values[b] = left
  }
  return {
    push(value) {
      values.push(value)
      for (let at = values.length - 1; at > 0 && comesFirst(at, (at - 1) >> 1); at = (at - 1) >> 1) swap(at, (at - 1) >> 1)
    },
    pop() {
      swap(0, values.length - 1)
      const top = values.pop()
      for (let at = 0; ; ) {
        const child = comesFirst(2 * at + 2, 2 * at + 1) ? 2 * at + 2 : 2 * at + 1
        if (!comesFirst(child, at)) return top
        swap(at, child)
        at = child
      }
    },
  }
}
