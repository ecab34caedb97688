/** The layout of tiles that the compiler verifies and evaluates is that of the device header, for every tile that a launcher chooses. */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { DType } from '../../src/ir/dtype.js'
import { layoutProblem, type TileShape, tileLayout, tileSides, wordAt, wordsOf } from '../../src/loop/tile_layout.js'
import { type Check, checks, type Workshop, workshop } from '../native/fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let found: ReadonlyMap<string, Check>
beforeAll(async () => {
  shop = await workshop()
  found = await checks(
    await shop.program('tile_layout', ['tile_layout.cu'], ['-DHEDDLE_SIMT', '-I', device, '-Wno-unknown-pragmas']),
    [],
  )
})
afterAll(() => shop.remove())

const shapeOf = (name: string): { readonly dtype: DType; readonly shape: TileShape } => {
  const [, dtype, rows, columns, run, vec] = /^(f32|f16|i8)_(\d+)x(\d+)(_run)?_(\d+)$/.exec(name) ?? []
  return {
    dtype: dtype === 'i8' || dtype === 'f16' ? dtype : 'f32',
    shape: { rows: Number(rows), columns: Number(columns), isRun: run !== undefined, vec: Number(vec) },
  }
}

const sumOf = (dtype: DType, shape: TileShape, skew = 1): number => {
  const layout = { ...tileLayout(dtype), skew }
  let sum = 0
  for (let column = 0; column < shape.columns; column++)
    for (let row = 0; row < shape.rows; row++) sum += wordAt(layout, shape, column, row) * (column * shape.rows + row + 1)
  return sum
}

it('has the words of the header', () => {
  expect(found.size).toBeGreaterThan(30)
  for (const [name, { values }] of found) {
    const { dtype, shape } = shapeOf(name)
    expect([wordsOf(tileLayout(dtype), shape), sumOf(dtype, shape)], name).toEqual(values)
    expect(sumOf(dtype, shape, 2), `${name}, a word further apart`).not.toEqual(values[1])
    expect(layoutProblem(tileLayout(dtype), shape), name).toBeUndefined()
  }
})

it('is verified for all tiles of launchers, and for no others', () => {
  const text = ({ rows, columns, isRun }: Omit<TileShape, 'vec'>): string => `${rows} ${columns} ${isRun}`
  const chosen = new Set([...found.keys()].map((name) => text(shapeOf(name).shape)))
  expect([...chosen].sort()).toEqual(tileSides.map(text).sort())
})
