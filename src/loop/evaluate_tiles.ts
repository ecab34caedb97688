/** Tiles in shared memory, as the loop IR is evaluated: words by their layout, elements in words, and the chunks of a tile. */
import type { Value } from '../ir/constructs/construct.js'
import { evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { type Lane, newRegisters, type Team } from './evaluate_lane.js'
import { tileOf } from './evaluate_work.js'
import type { FillTile, Tile, TileLoop } from './ir.js'
import { type TileLayout, type TileShape, wordAt, wordsOf } from './tile_layout.js'

/** Memory of a tile: the elements of words. */
export interface TileMemory {
  readonly layout: TileLayout
  readonly shape: TileShape
  readonly elements: Map<number, Value>
}

const number = (e: Expr, { env }: Lane): number => Number(evaluateExpr(e, env))

function shapeOf({ tile, vec }: Team): TileShape {
  if (tile === undefined) throw new Error('internal: a team has no tiles')
  return { ...tile, vec }
}

export const newTile = ({ layout }: Tile, team: Team): TileMemory => ({ layout, shape: shapeOf(team), elements: new Map() })

/** Place of an element, counted in elements of words. @throws internal error for a place outside of the tile's memory */
function placeAt({ layout, shape }: TileMemory, column: number, row: number): number {
  const word = wordAt(layout, shape, column, row)
  if (word < 0 || word >= wordsOf(layout, shape)) throw new Error(`internal: word ${word} lies outside of its tile`)
  return word * layout.perWord + (row % layout.perWord)
}

/** Loads all elements of a tile; those after the end of either side are 0. @throws internal error if two share a place */
export function fillTile({ load, rows, columns }: FillTile, lane: Lane, tile: TileMemory): void {
  const { values } = lane.env
  const firstRow = Number(values.get(tileOf(rows.index)))
  const firstColumn = Number(values.get(tileOf(columns.index)))
  const [length, width] = [number(rows.length, lane), number(columns.length, lane)]
  for (let column = 0; column < tile.shape.columns; column++)
    for (let row = 0; row < tile.shape.rows; row++) {
      const place = placeAt(tile, column, row)
      if (tile.elements.has(place)) throw new Error('internal: two elements of a tile share a place')
      const exists = firstRow + row < length && firstColumn + column < width
      values.set(rows.index, firstRow + row)
      values.set(columns.index, firstColumn + column)
      tile.elements.set(place, exists ? evaluateExpr(load, lane.env) : 0)
    }
  values.delete(rows.index)
  values.delete(columns.index)
}

/** Number of chunks of a tile. */
export function chunksOfTile(team: Team): number {
  const { rows, columns, vec } = shapeOf(team)
  return (rows * columns) / vec
}

/** Moves a lane to a chunk of a tile, whose elements it reads. @returns false if none of its elements exists */
export function enterChunk(
  loop: TileLoop,
  at: number,
  lane: Lane,
  { team, tiles }: { readonly team: Team; readonly tiles: ReadonlyMap<string, TileMemory> },
): boolean {
  const shape = shapeOf(team)
  const { values } = lane.env
  const firstRow = Number(values.get(tileOf(loop.rows.index)))
  const firstColumn = Number(values.get(tileOf(loop.columns.index)))
  const [length, width] = [number(loop.rows.length, lane), number(loop.columns.length, lane)]
  const isRun = loop.isRun && shape.isRun
  const perRow = shape.columns / shape.vec
  const row = isRun ? 0 : Math.floor(at / perRow)
  const column = isRun ? at * shape.vec : (at % perRow) * shape.vec
  lane.first = firstColumn + column
  lane.valid = isRun
    ? Math.min(length - firstRow, shape.rows) * width - column
    : firstRow + row < length
      ? width - firstColumn - column
      : 0
  if (lane.valid <= 0) return false
  values.set(loop.rows.index, firstRow + row)
  if (isRun) lane.run = { index: loop.rows.index, row: firstRow, length: width }
  for (const name of loop.tiles) {
    const tile = tiles.get(name)
    if (tile === undefined) throw new Error(`internal: ${name} is not declared`)
    const registers = newRegisters()
    for (let i = 0; i < Math.min(lane.valid, shape.vec); i++) {
      const [c, r] = isRun ? [(column + i) % width, Math.floor((column + i) / width)] : [column + i, row]
      registers[lane.first + i] = tile.elements.get(placeAt(tile, c, r)) ?? Number.NaN
    }
    lane.rows.set(name, registers)
  }
  return true
}
