/** Programs of totals as CUDA source: a kernel in which many blocks walk over a tensor. */
import type { MappedKernel } from '../schedule/mapped.js'
import type { TotalProgram } from '../schedule/totals.js'
import type { Scope } from './expression.js'
import { type Body, bodyWriter, functionName, lines, newContext, writeIndices } from './frame.js'
import { createNames } from './names.js'
import { render } from './templates.js'
import { writeFrame, writeWalk } from './totals.js'

/** The function that walks over a tensor. */
export function totalBodies(mapped: MappedKernel, program: TotalProgram, used: Scope['used']): Body[] {
  const names = createNames(mapped)
  const head = newContext(mapped, 'reread', names, used)
  const frame = bodyWriter()
  const body = { ...head, writer: bodyWriter(mapped.vec === 1 ? 1 : 2) }
  const condition = writeWalk(program, mapped.vec, head, body)
  writeFrame(frame)
  writeIndices(mapped, frame, names, used)
  const inside = lines(body.writer)
  return [
    {
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
      body: lines(frame) + lines(head.writer) + (condition === undefined ? inside : render('whole', { condition, body: inside })),
    },
  ]
}
