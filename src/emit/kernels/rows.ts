/** Row programs as CUDA source: two templates over the team, one that keeps rows in registers and one that reads them again. */
import { dtypeInfo } from '../../ir/dtype.js'
import { resolveDType } from '../../ir/instance.js'
import type { Loop, Walk } from '../../loop/ir.js'
import { frameOf } from '../../loop/kernel_loops.js'
import { loopsOf } from '../../loop/pipeline.js'
import { rowStatementOf } from '../../schedule/constructs/index.js'
import { intervalIn, type MappedKernel, type RowProgram } from '../../schedule/mapped.js'
import type { Step } from '../../schedule/normalise/passes.js'
import type { Scope } from '../print/expression.js'
import { printLoops } from '../print/loops.js'
import { createNames } from '../print/names.js'
import { writeBounds } from '../print/update_range.js'
import { type Body, bodyWriter, functionName, lines, newContext, writeIndices } from './frame.js'

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
  const loops = loopsOf(steps, frameOf(mapped, walk))
  const body = newContext(mapped, walk, names, used)
  printLoops(loops.filter(isRequest), { ...body, writer: frame })
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine('Team team;')
  frame.writeLine('int64_t position = team.row();')
  frame.writeLine('if (position >= rows) return;')
  printLoops(
    loops.filter((loop) => !isRequest(loop)),
    body,
  )
  const bounds = bodyWriter()
  const interval = intervalIn(mapped)
  if (interval !== undefined) writeBounds(interval, body, bounds)
  // After all source that uses indices.
  writeIndices(mapped, frame, names, used)
  return lines(frame) + lines(bounds) + lines(body.writer)
}

const isRequest = ({ kind }: Loop): boolean => kind === 'request'

/** Registers per thread if two blocks of a reread program share a multiprocessor, less those for addresses. */
const sharedRegisters = 56

/** Blocks of a reread program per multiprocessor: two, unless one chunk of every tensor, or a search, takes too many registers. */
function rereadBlocks({ instance: { kernel, types }, vec }: MappedKernel, { reread }: RowProgram): 1 | 2 {
  if (reread.some((step) => step.kind !== 'pass' && rowStatementOf(step).searches)) return 1
  const bytes = kernel.tensors.reduce((sum, { dtype }) => sum + vec * dtypeInfo[resolveDType(dtype, types)].bytes, 0)
  return bytes / dtypeInfo.f32.bytes > sharedRegisters ? 1 : 2
}
