/** Row programs as CUDA source: two templates over the team, one that keeps rows in registers and one that reads them again. */
import { dtypeInfo } from '../ir/dtype.js'
import { resolveDType } from '../ir/instance.js'
import { passStatementOf, rowStatementOf } from '../schedule/constructs/index.js'
import { isWrittenOnce } from '../schedule/kept_rows.js'
import { intervalIn, type MappedKernel, type RowProgram } from '../schedule/mapped.js'
import type { Step } from '../schedule/passes.js'
import { isAlone } from './constructs/shared_row.js'
import type { PassContext, Walk } from './context.js'
import type { Scope } from './expression.js'
import { type Body, bodyWriter, functionName, lines, newContext, writeIndices, writeStep } from './frame.js'
import { writeBounds } from './interval.js'
import { soonLines } from './loads.js'
import { createNames } from './names.js'
import { wholeRows } from './offsets.js'
import { meets } from './stages.js'
import { render } from './templates.js'

/** Functions that the variants of the program need. */
export function rowBodies(mapped: MappedKernel, program: RowProgram, used: Scope['used']): Body[] {
  const bodies: Body[] = []
  const width = mapped.generic === true ? ', int VEC' : ''
  if (program.variants.some((v) => v.chunks !== undefined)) {
    bodies.push({
      comment: 'Row values stay in registers: CHUNKS chunks of VEC elements a lane.',
      template: `template <class Team, int CHUNKS${width}>`,
      bounds: 'Team::threads, 1',
      name: functionName(mapped, 'kept'),
      body: rowBody(mapped, program.kept, 'kept', used),
    })
  }
  if (program.variants.some((v) => v.chunks === undefined)) {
    bodies.push({
      comment: 'Any row length: every pass reads and computes the row values it needs again.',
      template: `template <class Team${width}>`,
      bounds: `Team::threads, ${rereadBlocks(mapped, program)}`,
      name: functionName(mapped, 'reread'),
      body: rowBody(mapped, program.reread, 'reread', used),
    })
  }
  return bodies
}

function rowBody(mapped: MappedKernel, steps: readonly Step[], walk: Walk, used: Scope['used']): string {
  const names = createNames(mapped)
  const frame = bodyWriter()
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('Team team;')
  frame.writeLine('int64_t position = team.row();')
  frame.writeLine('if (position >= rows) return;')

  // Steps that do not wait for a reduction come first, so that the row can be tested before its passes.
  const first = steps.findIndex((step) => step.kind !== 'let')
  const known = steps.slice(0, first)
  const head = newContext(mapped, walk, names, used)
  for (const step of known) writeStep(step, head)
  // Passes whose lanes synchronise check every chunk, and passes that only write a shared row have no chunks. A row with no other pass is not
  // tested. Nor is a ranked row: the gain in its other passes is smaller than the cost of a second copy of the ranking.
  const all = steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  // Recurrences with row state have a single copy.
  const isCarried = steps.some(({ kind }) => kind === 'foldState')
  const passes =
    isCarried || isWrittenOnce(steps) || all.some(({ statements }) => statements.some((s) => passStatementOf(s).meets))
      ? []
      : all.filter((pass) => !meets(pass) && !isAlone(pass))
  const ready = new Set(known.flatMap((step) => (step.kind === 'let' ? [step.name] : [])))
  const whole = passes.length > 0 ? wholeRows(passes, ready, head.starts, head, head.writer) : undefined

  const body: PassContext = whole === undefined ? head : { ...head, writer: bodyWriter(2), whole }
  for (const line of soonLines(all, ready, body)) body.writer.writeLine(line)
  for (const step of steps.slice(first)) writeStep(step, body)
  const bounds = bodyWriter()
  const interval = intervalIn(mapped)
  if (interval !== undefined) writeBounds(interval, head, bounds)
  // After all source that uses indices.
  writeIndices(mapped, frame, names, used)
  const start = lines(frame) + lines(bounds) + lines(head.writer)
  return whole === undefined ? start : start + render('whole', { condition: whole.condition, body: lines(body.writer) })
}

/** Registers per thread if two blocks of a reread program share a multiprocessor, less those for addresses. */
const sharedRegisters = 56

/** Blocks of a reread program per multiprocessor: two, unless one chunk of every tensor, or a search, takes too many registers. */
function rereadBlocks({ instance: { kernel, types }, vec }: MappedKernel, { reread }: RowProgram): 1 | 2 {
  if (reread.some((step) => step.kind !== 'pass' && rowStatementOf(step).searches)) return 1
  const bytes = kernel.tensors.reduce((sum, { dtype }) => sum + vec * dtypeInfo[resolveDType(dtype, types)].bytes, 0)
  return bytes / dtypeInfo.f32.bytes > sharedRegisters ? 1 : 2
}
