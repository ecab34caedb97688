/**
 * Splits a text into the pieces with the highest sum of scores (Kudo 2018): Viterbi's search over all segmentations, from left to right. Sums are
 * float32, as in SentencePiece, and of equal segmentations the one whose last piece begins first is taken, so that ids are the same.
 */
import type { PieceModel } from './model.js'

/** Penalty of a character without a piece, below the worst piece. */
const unknownPenalty = 10
/** Cost of a user-defined symbol, below any piece's. */
const ownCost = 0.1

/** A piece of a text and its id. */
export interface Cut {
  readonly text: string
  readonly id: number
}

/** A function that splits a normalised text into pieces. */
export function unigramOf({ pieces, unknown }: Pick<PieceModel, 'pieces' | 'unknown'>): (text: string) => readonly Cut[] {
  const normal = pieces.filter(({ type }) => type === 'normal').map(({ score }) => score)
  const worst = Math.fround(normal.reduce((least, score) => Math.min(least, score), 0) - unknownPenalty)
  const best = normal.reduce((most, score) => Math.max(most, score), 0)
  const ids = new Map<string, number>()
  let longest = 1
  for (const [id, { text, type }] of pieces.entries()) {
    // Control pieces and bytes match no text, and unused pieces are ignored.
    if (type !== 'normal' && type !== 'user') continue
    ids.set(text, id)
    longest = Math.max(longest, text.length)
  }
  const scoreOf = (id: number): number => {
    const piece = pieces[id]
    if (piece?.type !== 'user') return piece?.score ?? 0
    return Buffer.byteLength(piece.text) * best - ownCost
  }
  return (text) => {
    /** Best segmentation up to each position: its sum, and its last piece. */
    const sums = new Float32Array(text.length + 1)
    const last: (Cut | undefined)[] = Array.from({ length: text.length + 1 }, () => undefined)
    const offer = (from: number, cut: Cut, score: number): void => {
      const to = from + cut.text.length
      const sum = Math.fround((sums[from] ?? 0) + score)
      if (last[to] !== undefined && !(sum > (sums[to] ?? 0))) return
      sums[to] = sum
      last[to] = cut
    }
    for (let from = 0; from < text.length; ) {
      const width = String.fromCodePoint(text.codePointAt(from) ?? 0).length
      let alone = false
      for (let length = 1; length <= longest && from + length <= text.length; length++) {
        const part = text.slice(from, from + length)
        const id = ids.get(part)
        if (id === undefined) continue
        alone ||= length === width
        offer(from, { text: part, id }, scoreOf(id))
      }
      if (!alone) offer(from, { text: text.slice(from, from + width), id: unknown }, worst)
      from += width
    }
    const way: Cut[] = []
    for (let to = text.length; to > 0; ) {
      const cut = last[to]
      if (cut === undefined) throw new Error('internal: a text has no segmentation')
      way.push(cut)
      to -= cut.text.length
    }
    return way.reverse()
  }
}
