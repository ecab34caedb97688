/**
 * Lowers the division of a kernel's work: the digits of a share, the place in an interval, the body for chunks in one piece, and tiles in shared
 * memory. What a share computes is lowered before.
 */

import type { StagedLoad } from '../schedule/access/staged_loads.js'
import type { PieceSteps } from '../schedule/mapped.js'
import type { Step } from '../schedule/normalise/passes.js'
import type { Loop, TileLoop, Work } from './ir.js'
import { tileLayout } from './tile_layout.js'

/** Loads through tiles, whose sides are an axis and the loop of the pass. */
export interface Tiles extends Pick<TileLoop, 'rows' | 'columns' | 'isRun'> {
  readonly loads: readonly StagedLoad[]
}

/** Division of the work of a kernel. */
export interface Division extends Pick<Work, 'owner' | 'digits' | 'threads'> {
  readonly pieces?: PieceSteps
  readonly tiles?: Tiles
}

/**
 * @param body loops of a share
 * @param lowered lowers the steps for chunks in one piece
 */
export function lowerWork(
  { pieces, tiles, ...work }: Division,
  body: readonly Loop[],
  lowered: (steps: readonly Step[]) => readonly Loop[],
): readonly Loop[] {
  const narrows = work.digits.flatMap((digit): Loop[] =>
    digit.of === 'slots' ? [{ kind: 'narrow', interval: digit.interval }] : [],
  )
  const inner = tiles === undefined ? body : inTiles(tiles, body)
  return [{ kind: 'work', ...work, body: [...narrows, ...(pieces === undefined ? [] : onePiece(pieces, lowered)), ...inner] }]
}

function onePiece(
  { index, bounds, when, steps }: PieceSteps,
  lowered: (steps: readonly Step[]) => readonly Loop[],
): readonly Loop[] {
  const body = lowered(steps)
  const lanes = body.find((loop) => loop.kind === 'for' && loop.owner === 'lane')
  if (lanes === undefined || !('index' in lanes)) throw new Error('internal: a chunk in one piece has no loop')
  return [{ kind: 'piece', index, loop: lanes.index, bounds, ...(when === undefined ? {} : { when }), body }]
}

/** The body for each chunk of a tile, after all threads of the block have loaded it. */
function inTiles({ loads, rows, columns, isRun }: Tiles, body: readonly Loop[]): readonly Loop[] {
  const tiles = loads.map(({ name }) => name)
  return [
    ...loads.flatMap(({ name, load, dtype, vec, isLinear }): readonly Loop[] => [
      { kind: 'tile', name, tensor: load.tensor, layout: tileLayout(dtype) },
      { kind: 'fillTile', tile: name, load, vec, isLinear, rows, columns },
    ]),
    { kind: 'barrier', scope: 'block', publishes: tiles },
    { kind: 'for', owner: 'block', rows, columns, tiles, isRun, body },
  ]
}
