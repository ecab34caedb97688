/** Column programs and programs of totals as CUDA source: a kernel whose threads divide rows, or chunks of a whole tensor. */
import { frameOf } from '../../loop/kernel_loops.js'
import { loopsOf } from '../../loop/pipeline.js'
import type { ColumnProgram, TotalProgram } from '../../schedule/divided/divided_program.js'
import type { MappedKernel } from '../../schedule/mapped.js'
import { operandText, type Scope } from '../print/expression.js'
import { printLoops } from '../print/loops.js'
import { createNames } from '../print/names.js'
import { type Body, bodyWriter, functionName, lines, newContext, writeIndices } from './frame.js'

export function columnBody(mapped: MappedKernel, program: ColumnProgram, used: Scope['used']): Body {
  const names = createNames(mapped)
  const body = newContext(mapped, 'columns', names, used)
  printLoops(loopsOf(program, frameOf(mapped, 'columns')), body)
  const length = operandText(program.length, body)
  const frame = bodyWriter()
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('HEDDLE_DYNAMIC_SHARED(shared);')
  frame.writeLine('Team team;')
  frame.writeLine('int64_t position = team.tile();')
  frame.writeLine(`const int tile = heddle::peel(position, heddle::column_tiles<Team, VEC>(${length}));`)
  frame.writeLine(`const int valid = heddle::columns_left<Team, VEC>(team, tile, ${length});`)
  frame.writeLine(`const int ${names.first(program.column.index)} = ${length} - valid;`)
  // After all source that uses indices.
  writeIndices(mapped, frame, names, used)
  return {
    comment: 'A thread reduces VEC neighbouring columns of its rows.',
    template: 'template <class Team>',
    bounds: 'Team::threads, 1',
    name: functionName(mapped, 'columns'),
    body: lines(frame) + lines(body.writer),
  }
}

export function totalBody(mapped: MappedKernel, program: TotalProgram, used: Scope['used']): Body {
  const names = createNames(mapped)
  const body = newContext(mapped, 'parts', names, used)
  printLoops(loopsOf(program, frameOf(mapped, 'parts')), body)
  const frame = bodyWriter()
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('[[maybe_unused]] const Team team;')
  frame.writeLine('[[maybe_unused]] int64_t position = team.row() / parts;')
  frame.writeLine('if (position >= rows) return;')
  frame.writeLine('const int part = static_cast<int>(team.row() % parts);')
  writeIndices(mapped, frame, names, used)
  return {
    comment: 'Teams combine the chunks of a tensor. One that is ALONE, or the last of several, computes the outputs.',
    template: 'template <class Team, bool ALONE>',
    bounds: 'heddle::total_threads, 2',
    first: [
      'const int64_t rows',
      'const int64_t chunks',
      'const int parts',
      '[[maybe_unused]] const heddle::Out<float> sums',
      '[[maybe_unused]] const heddle::Out<int> arrived',
    ],
    name: functionName(mapped, 'parts'),
    body: lines(frame) + lines(body.writer),
  }
}
