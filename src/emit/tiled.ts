/**
 * Elementwise programs with staged loads as CUDA source: a block loads a tile of each staged tensor into shared memory, in chunks along the axis
 * in which the tensor is contiguous, and its threads then compute chunks along the loop of the pass.
 */
import { extentOf } from '../ir/row_axis.js'
import { mark } from '../ir/trace.js'
import { frameOf } from '../loop/kernel_loops.js'
import { loopsOf } from '../loop/pipeline.js'
import type { ElementwiseProgram, MappedKernel } from '../schedule/mapped.js'
import type { StagedLoad, Staging } from '../schedule/stage.js'
import type { PassContext } from './context.js'
import { offsetText, operandText, type Scope, tensorOf } from './expression.js'
import { type Body, bodyWriter, functionName, lines, newContext, onlyPass, writePeeled } from './frame.js'
import { extentIn } from './launch_text.js'
import { printLoops } from './loops.js'
import { createNames, storageText } from './names.js'

export function tiledBody(mapped: MappedKernel, program: ElementwiseProgram, staging: Staging, used: Scope['used']): Body {
  const names = createNames(mapped)
  const { loop } = onlyPass(program)
  const { axis, loads } = staging
  const inner: PassContext = { ...newContext(mapped, 'single', names, used), writer: bodyWriter(2) }
  const tiles = new Map(loads.map((each) => [each, names.fresh(each.name)]))
  for (const each of loads) {
    const element = `heddle::tile_element<${storageText(tensorOf(each.load.tensor, inner), names)}, Shape>`
    inner.elements.set(each.name, `${element}(${tiles.get(each)}, column_in_tile + i, row_in_tile)`)
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
  walk.writeLine('constexpr int chunks = Shape::columns / VEC, lanes = heddle::lanes_of_line<VEC, chunks>;')
  walk.writeLine('HEDDLE_UNROLL_FEW')
  walk.writeLine('for (int first = 0; first < Shape::rows * chunks; first += heddle::stage_threads) {')
  walk.writeLine('  const int at = first + static_cast<int>(threadIdx.x);')
  walk.writeLine('  if (Shape::rows * chunks % heddle::stage_threads != 0 && at >= Shape::rows * chunks) break;')
  walk.writeLine('  const int row_in_tile = at / lanes % Shape::rows;')
  walk.writeLine('  const int column_in_tile = (at / (lanes * Shape::rows) * lanes + at % lanes) * VEC;')
  walk.writeLine(`  const int ${row} = tile_row + row_in_tile;`)
  walk.writeLine(`  const int ${names.first(loop.index)} = tile_column + column_in_tile;`)
  walk.writeLine(`  const int valid = ${row} < ${extent} ? ${length} - ${names.first(loop.index)} : 0;`)
  walk.writeLine('  if (valid <= 0) continue;')
  return {
    comment: 'A block computes a tile, whose strided loads go through shared memory.',
    template: 'template <class Shape, int VEC>',
    bounds: 'heddle::stage_threads, 1',
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

/** Loads a tile of one tensor, zeros where the axes end: in whole chunks where each line of the tensor has them, otherwise word by word. */
function writeStage({ load, vec }: StagedLoad, context: PassContext, { tile, column, row, extent, length }: Place): void {
  const { writer, names } = context
  const type = storageText(tensorOf(load.tensor, context), names)
  const offset = offsetText(load.tensor, load.indices, context)
  const fill = names.fresh('fill')
  writer.writeLine(`HEDDLE_SHARED(heddle::TileWord<${type}>, ${tile}, (heddle::tile_words<${type}, Shape>));`)
  writer.write(`const auto ${fill} = [&](auto width) `).inlineBlock(() => {
    writer.writeLine('constexpr int wide = decltype(width)::value, chunks = Shape::rows / wide;')
    writer.writeLine('HEDDLE_UNROLL')
    writer.write('for (int first = 0; first < Shape::columns * chunks; first += heddle::stage_threads)').block(() => {
      writer.writeLine('const int at = first + static_cast<int>(threadIdx.x);')
      writer.writeLine('if (at >= Shape::columns * chunks) break;')
      writer.writeLine('const int column_in_tile = at / chunks, row_in_tile = at % chunks * wide;')
      writer.writeLine(`const int ${column} = tile_column + column_in_tile, ${row} = tile_row + row_in_tile;`)
      writer.writeLine(`const int valid = ${column} < ${length} ? ${extent} - ${row} : 0;`)
      const chunk = `heddle::load_chunk<wide>(${names.tensor(load.tensor)}, ${offset}, valid)`
      writer.writeLine(`heddle::put_chunk<Shape>(${tile}, column_in_tile, row_in_tile, ${chunk});${mark(load)}`)
    })
  })
  writer.write(';').newLine()
  const narrow = `${fill}(heddle::Width<heddle::word_width<${type}>>{});`
  const whole = `Shape::rows >= ${4 * vec} && ${extent} % ${vec} == 0`
  writer
    .write(`if (${whole})`)
    .block(() => writer.writeLine(`${fill}(heddle::Width<Shape::rows < ${4 * vec} ? heddle::word_width<${type}> : ${vec}>{});`))
  writer.write('else').block(() => writer.writeLine(narrow))
}
