/**
 * Verifier of the division of a kernel's work. No axis is divided twice, and an interval is narrowed where it has slots. A body for chunks in one piece
 * tests where pieces end, and its chunks are those of threads. Tiles are filled before the block meets, and their layouts hold every element once.
 */
import type { Barrier, Loop, OnePiece, TileLoop, Work } from './ir.js'
import { layoutProblem, type TileLayout, tileSides } from './tile_layout.js'

interface Inside {
  readonly names: ReadonlySet<string>
  readonly work?: Work
  readonly tiles?: TileLoop
  readonly fail: (reason: string) => never
}

/** Indices that a share of the work has. That of an interval is known once it is narrowed, those of tiles in the loops over them. */
export const indicesOf = ({ digits }: Work): readonly string[] =>
  digits.flatMap((digit) => (digit.of === 'axis' ? [digit.axis.index] : []))

/** Names of the states of a tile: it has memory, all threads have stored their part, and all can read it. */
export const allocated = (tile: string): string => `memory of ${tile}`
export const filled = (tile: string): string => `filled ${tile}`
export const published = (tile: string): string => `published ${tile}`

export function verifyWork(loop: Loop, inside: Inside): void {
  const { work, names, fail } = inside
  switch (loop.kind) {
    case 'work':
      verifyDigits(loop, inside)
      return
    case 'narrow':
      if (work?.digits.some((digit) => digit.of === 'slots' && digit.interval.axis === loop.interval.axis) !== true)
        fail(`${loop.interval.axis.index} is narrowed and has no slots`)
      return
    case 'piece':
      verifyPiece(loop, inside)
      return
    case 'tile': {
      const problem = problemOf(loop.layout)
      if (problem !== undefined) fail(`${loop.name}: ${problem}`)
      return
    }
    case 'fillTile':
      if (inside.tiles !== undefined || work?.owner !== 'block') fail(`${loop.tile} is filled by threads that do not share it`)
      if (!names.has(allocated(loop.tile))) fail(`${loop.tile} is filled before it is declared`)
      return
    case 'barrier':
      verifyBarrier(loop, inside)
      return
    case 'for':
      if (loop.owner === 'block')
        for (const tile of loop.tiles) if (!names.has(published(tile))) fail(`${tile} is read before its block has met`)
      return
    default:
  }
}

function verifyDigits({ digits }: Work, { work, fail }: Inside): void {
  if (work !== undefined) fail('work is divided in a share of it')
  const seen = new Set<string>()
  for (const digit of digits) {
    const index = digit.of === 'axis' ? digit.axis.index : digit.of === 'slots' ? digit.interval.axis.index : digit.index
    if (seen.has(index)) fail(`${index} is divided twice`)
    seen.add(index)
  }
}

function verifyPiece({ bounds, when, loop }: OnePiece, { work, fail }: Inside): void {
  if (bounds.length === 0 && when === undefined) fail('a chunk is taken for one piece without a test')
  if (work?.owner !== 'thread' || !work.digits.some((digit) => digit.of === 'chunks' && digit.index === loop))
    fail(`a thread has no chunk of ${loop}`)
}

function verifyBarrier({ scope, publishes }: Barrier, { names, work, tiles, fail }: Inside): void {
  if ((scope === 'block') !== (work?.owner === 'block')) fail('threads meet that do not share the work')
  if (scope !== 'block') return
  if (tiles !== undefined) fail('a block meets in a loop that its threads divide')
  for (const tile of publishes) if (!names.has(filled(tile))) fail(`${tile} is published before it is filled`)
}

const problems = new Map<string, string | undefined>()

/** Problem of a layout in any of the tiles that launchers choose from. */
function problemOf(layout: TileLayout): string | undefined {
  const key = JSON.stringify(layout)
  if (!problems.has(key)) {
    const found = tileSides.flatMap((sides) =>
      [1, 2, 4, 8].flatMap((vec) => {
        const problem = layoutProblem(layout, { ...sides, vec })
        return problem === undefined ? [] : [`${problem} of tiles of ${sides.rows} x ${sides.columns}`]
      }),
    )
    problems.set(key, found[0])
  }
  return problems.get(key)
}
