/** Tiles in shared memory as CUDA source (native/device/stage.cuh): their memory, the loads that fill them, and the loop over their chunks. */
import { mark } from '../../ir/trace.js'
import type { FillTile, Loop, Tile, TileLoop } from '../../loop/ir.js'
import { offsetText, operandText, tensorOf } from './expression.js'
import { storageText } from './names.js'
import { declare, type Printing } from './state.js'

export function tileLine({ name, tensor }: Tile, printing: Printing): string {
  const { context } = printing
  const type = storageText(tensorOf(tensor, context), context.names)
  const tile = declare(name, name, printing)
  context.elements.set(name, `chunk_of_tile.template element<${type}>(${tile}, i)`)
  return `HEDDLE_SHARED(heddle::TileWord<${type}>, ${tile}, (heddle::TileWords<${type}, Shape, VEC>::count));`
}

export function fillLines(
  { tile, load, vec, isLinear, rows, columns }: FillTile,
  { context, given }: Printing,
): readonly string[] {
  const { names } = context
  const [length, width] = [rows, columns].map((side) => operandText(side.length, context))
  const [row, column] = [rows, columns].map(({ index }) => names.value(index))
  const sizes = `${length}, ${width} - tile_column, ${length} - tile_row`
  return [
    `heddle::fill_tile<Shape, VEC, ${vec}, ${isLinear}>(${given.get(tile)}, ${names.tensor(load.tensor)}, ${sizes}, [&](int column, int row) -> int64_t {`,
    `  const int ${column} = tile_column + column, ${row} = tile_row + row;`,
    `  return ${offsetText(load.tensor, load.indices, context)};${mark(load)}`,
    '});',
  ]
}

export function printTileLoop(
  { rows, columns, body }: TileLoop,
  printing: Printing,
  print: (loops: readonly Loop[], printing: Printing) => void,
): void {
  const { context } = printing
  const { writer, names } = context
  const [length, width] = [rows, columns].map((side) => operandText(side.length, context))
  writer.writeLine('using Stored = heddle::TileChunk<Shape, VEC>;')
  writer.writeLine('HEDDLE_UNROLL_FEW')
  writer.write('for (unsigned int first = 0; first < Stored::chunks; first += Shape::threads)').block(() => {
    writer.writeLine('const unsigned int at = first + threadIdx.x;')
    writer.writeLine('if (Stored::chunks % Shape::threads != 0 && at >= Stored::chunks) break;')
    writer.writeLine(`const Stored chunk_of_tile(at, ${length} - tile_row, ${width} - tile_column);`)
    writer.writeLine('const int valid = chunk_of_tile.valid;')
    writer.writeLine('if (valid <= 0) continue;')
    writer.writeLine(`const int ${names.value(rows.index)} = tile_row + chunk_of_tile.row;`)
    writer.writeLine(`const int ${names.first(columns.index)} = tile_column + chunk_of_tile.column;`)
    print(body, printing)
  })
}
