/**
 * Layout of a tile in shared memory, as native/device/stage.cuh has it: elements of a column are adjacent, in words of at least four bytes, and each
 * column begins `skew` words after the end of the one before. Chunks of columns are further apart by some words, so that lanes which read adjacent
 * chunks, or adjacent columns, use different banks.
 */
import { type DType, dtypeInfo } from '../ir/dtype.js'

export interface TileLayout {
  /** Elements of a word. */
  readonly perWord: number
  readonly skew: number
  /** Words between chunks of columns, by the columns of a chunk; 0 for others. */
  readonly padding: Readonly<Record<number, number>>
}

/** Sides of a tile in elements, the columns of a chunk, and whether chunks go on from one row to the next, which need no padding. */
export interface TileShape {
  readonly rows: number
  readonly columns: number
  readonly vec: number
  readonly isRun: boolean
}

const wordBytes = 4

export const tileLayout = (dtype: DType): TileLayout => ({
  perWord: Math.max(1, wordBytes / dtypeInfo[dtype].bytes),
  skew: 1,
  padding: { 2: 1, 8: 4 },
})

const paddingOf = ({ padding }: TileLayout, { vec, isRun }: TileShape): number => (isRun ? 0 : (padding[vec] ?? 0))

/** Words from one column to the next. */
export const strideOf = ({ perWord, skew }: TileLayout, { rows }: TileShape): number => rows / perWord + skew

/** Number of words of a tile. */
export const wordsOf = (layout: TileLayout, shape: TileShape): number =>
  strideOf(layout, shape) * shape.columns + Math.floor(shape.columns / shape.vec) * paddingOf(layout, shape)

/** Word of an element. */
export const wordAt = (layout: TileLayout, shape: TileShape, column: number, row: number): number =>
  column * strideOf(layout, shape) + Math.floor(column / shape.vec) * paddingOf(layout, shape) + Math.floor(row / layout.perWord)

/** Sides of the tiles that launchers choose from (`choose_tiles`). Those of runs have all columns of the tensor. */
export const tileSides: readonly Pick<TileShape, 'rows' | 'columns' | 'isRun'>[] = [
  { rows: 1024, columns: 4, isRun: true },
  { rows: 256, columns: 16, isRun: true },
  { rows: 256, columns: 4, isRun: false },
  { rows: 256, columns: 16, isRun: false },
  { rows: 16, columns: 16, isRun: false },
  { rows: 32, columns: 32, isRun: false },
  { rows: 4, columns: 512, isRun: false },
  { rows: 16, columns: 256, isRun: false },
  { rows: 64, columns: 32, isRun: false },
  { rows: 128, columns: 32, isRun: false },
  { rows: 32, columns: 128, isRun: false },
  { rows: 64, columns: 64, isRun: false },
]

/** Reason why a layout holds no tile of a shape, or is read with conflicts; undefined if there is none. */
export function layoutProblem(layout: TileLayout, shape: TileShape): string | undefined {
  const taken = new Set<number>()
  const words = wordsOf(layout, shape)
  for (let column = 0; column < shape.columns; column++)
    for (let row = 0; row < shape.rows; row += layout.perWord) {
      const word = wordAt(layout, shape, column, row)
      if (word >= words) return `an element lies at word ${word} of ${words}`
      if (taken.has(word)) return `two elements lie at word ${word}`
      taken.add(word)
    }
  // Columns of a single word, of which bytes have tiles, are two words apart, which costs a conflict.
  const isEven = shape.rows > layout.perWord && strideOf(layout, shape) % 2 === 0
  return isEven ? 'adjacent columns begin in one bank, or in every other' : undefined
}
