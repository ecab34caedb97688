/**
 * Elementwise programs with staged loads as CUDA source: a block loads a tile of each staged tensor into shared memory, in chunks along the axis
 * in which the tensor is contiguous, and its threads then compute chunks along the loop of the pass.
 */
import { extentOf } from '../../ir/row_axis.js'
import { mark } from '../../ir/trace.js'
import { frameOf } from '../../loop/kernel_loops.js'
import { loopsOf } from '../../loop/pipeline.js'
import type { StagedLoad, Staging } from '../../schedule/access/staged_loads.js'
import type { ElementwiseProgram, MappedKernel } from '../../schedule/mapped.js'
import { extentIn } from '../launch/conditions.js'
import type { PassContext } from '../print/context.js'
import { offsetText, operandText, type Scope, tensorOf } from '../print/expression.js'
import { printLoops } from '../print/loops.js'
import { createNames, storageText } from '../print/names.js'
import { type Body, bodyWriter, functionName, lines, newContext, onlyPass, writePeeled } from './frame.js'

export function tiledBody(mapped: MappedKernel, program: ElementwiseProgram, staging: Staging, used: Scope['used']): Body {
  const names = createNames(mapped)
  const { loop } = onlyPass(program)
  const { axis, loads } = staging
  const inner: PassContext = { ...newContext(mapped, 'single', names, used), writer: bodyWriter(2) }
  const tiles = new Map(loads.map((each) => [each, names.fresh(each.name)]))
  for (const each of loads) {
    const type = storageText(tensorOf(each.load.tensor, inner), names)
    inner.elements.set(each.name, `chunk_of_tile.template element<${type}>(${tiles.get(each)}, i)`)
  }
  printLoops(loopsOf(program.steps, frameOf(mapped, 'single')), inner)
  const extent = operandText(extentOf(axis, extentIn(mapped)), inner)
  const length = operandText(loop.length, inner)
  const [column, row] = [names.value(loop.index), names.value(axis.index)]
  const stage = bodyWriter()
  for (const each of loads)
    writeStage(each, { ...inner, writer: stage }, { tile: tiles.get(each) ?? '', column, row, extent, length })
  const frame = bodyWriter()
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('int64_t position = static_cast<int64_t>(blockIdx.x);')
  frame.writeLine(
    `const int tile_column = heddle::peel(position, heddle::chunks_of<Shape::columns>(${length})) * Shape::columns;`,
  )
  frame.writeLine(`const int tile_row = heddle::peel(position, heddle::chunks_of<Shape::rows>(${extent})) * Shape::rows;`)
  const others = mapped.axes.filter((each) => each !== axis).reverse()
  others.forEach((each, i) => {
    if (i < others.length - 1) writePeeled(each, mapped, frame, names, used)
    else if (used.indices.has(each.index)) frame.writeLine(`const int ${names.value(each.index)} = static_cast<int>(position);`)
  })
  const walk = bodyWriter()
  walk.writeLine('using Stored = heddle::TileChunk<Shape, VEC>;')
  walk.writeLine('HEDDLE_UNROLL_FEW')
  walk.writeLine('for (unsigned int first = 0; first < Stored::chunks; first += Shape::threads) {')
  walk.writeLine('  const unsigned int at = first + threadIdx.x;')
  walk.writeLine('  if (Stored::chunks % Shape::threads != 0 && at >= Stored::chunks) break;')
  walk.writeLine(`  const Stored chunk_of_tile(at, ${extent} - tile_row, ${length} - tile_column);`)
  walk.writeLine('  const int valid = chunk_of_tile.valid;')
  walk.writeLine('  if (valid <= 0) continue;')
  walk.writeLine(`  const int ${row} = tile_row + chunk_of_tile.row;`)
  walk.writeLine(`  const int ${names.first(loop.index)} = tile_column + chunk_of_tile.column;`)
  return {
    comment: 'A block computes a tile, whose strided loads go through shared memory.',
    template: 'template <class Shape, int VEC>',
    bounds: 'Shape::threads, 1',
    first: [],
    name: functionName(mapped, 'tiled'),
    body: `${lines(frame)}${lines(stage)}  __syncthreads();\n${lines(walk)}${lines(inner.writer)}  }\n`,
  }
}

interface Place {
  readonly tile: string
  readonly column: string
  readonly row: string
  readonly extent: string
  readonly length: string
}

/** Loads a tile of one tensor. */
function writeStage(staged: StagedLoad, context: PassContext, { tile, column, row, extent, length }: Place): void {
  const { load, vec, isLinear } = staged
  const { writer, names } = context
  const type = storageText(tensorOf(load.tensor, context), names)
  const tensor = names.tensor(load.tensor)
  writer.writeLine(`HEDDLE_SHARED(heddle::TileWord<${type}>, ${tile}, (heddle::TileWords<${type}, Shape, VEC>::count));`)
  const sizes = `${extent}, ${length} - tile_column, ${extent} - tile_row`
  writer
    .write(
      `heddle::fill_tile<Shape, VEC, ${vec}, ${isLinear}>(${tile}, ${tensor}, ${sizes}, [&](int column, int row) -> int64_t `,
    )
    .inlineBlock(() => {
      writer.writeLine(`const int ${column} = tile_column + column, ${row} = tile_row + row;`)
      writer.writeLine(`return ${offsetText(load.tensor, load.indices, context)};${mark(load)}`)
    })
  writer.write(');').newLine()
}
