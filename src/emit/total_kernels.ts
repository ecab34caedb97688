/** Programs of totals as CUDA source: a kernel in which many blocks walk over a tensor, and one that combines their partial results. */
import type { MappedKernel } from '../schedule/mapped.js'
import type { TotalProgram } from '../schedule/totals.js'
import type { Scope } from './expression.js'
import { type Body, bodyWriter, functionName, lines, newContext, writeIndices } from './frame.js'
import { createNames } from './names.js'
import { render } from './templates.js'
import { writeFrame, writeJoin, writeWalk } from './totals.js'

/** Functions that walk over a tensor, and the function that combines the totals of its blocks. */
export function totalBodies(mapped: MappedKernel, program: TotalProgram, used: Scope['used']): Body[] {
  const [walk, join] = [createNames(mapped), createNames(mapped)].map((names) => {
    const head = newContext(mapped, 'reread', names, used)
    const frame = bodyWriter()
    return { head, frame, indices: () => writeIndices(mapped, frame, names, used) }
  })
  if (walk === undefined || join === undefined) throw new Error('internal: a program of totals has two kernels')
  const body = { ...walk.head, writer: bodyWriter(mapped.vec === 1 ? 1 : 2) }
  const condition = writeWalk(program, mapped.vec, walk.head, body)
  writeFrame(walk.frame, 'Team', 'team.row() / parts')
  walk.frame.writeLine('if (position >= rows) return;')
  walk.frame.writeLine('const int part = static_cast<int>(team.row() % parts);')
  walk.indices()
  used.indices.clear()
  writeJoin(program, join.head)
  writeFrame(join.frame, 'heddle::WarpTeam<heddle::warp_lanes, 1>', 'static_cast<int64_t>(blockIdx.x)')
  join.indices()
  const inside = lines(body.writer)
  return [
    {
      comment: 'Teams combine the chunks of a tensor; one that is ALONE computes the outputs.',
      template: 'template <class Team, bool ALONE>',
      bounds: 'heddle::total_threads, 2',
      first: ['const int64_t rows', 'const int64_t chunks', 'const int parts', '[[maybe_unused]] const heddle::Out<float> sums'],
      name: functionName(mapped, 'parts'),
      body:
        lines(walk.frame) +
        lines(walk.head.writer) +
        (condition === undefined ? inside : render('whole', { condition, body: inside })),
    },
    {
      comment: 'A warp combines what the blocks left.',
      template: '',
      bounds: 'heddle::warp_lanes, 1',
      first: ['const int parts', 'const heddle::In<float> sums'],
      name: functionName(mapped, 'totals'),
      body: lines(join.frame) + lines(join.head.writer),
    },
  ]
}
