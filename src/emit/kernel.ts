/**
 * The kernels of a mapped kernel as CUDA text: the frame around the passes. An elementwise program is one kernel; a row
 * program is two templates over the team, one that keeps rows in registers and one that reads them again.
 */
import { dtypeInfo } from '../ir/dtype.js'
import { resolveDType } from '../ir/instance.js'
import type { Kernel, TensorParam } from '../ir/kernel.js'
import { placeUpdates } from '../ir/update.js'
import { visitKernel } from '../ir/walk.js'
import type { ColumnProgram } from '../schedule/columns.js'
import { passStatementOf, rowStatementOf } from '../schedule/constructs/index.js'
import type { ElementwiseProgram, MappedKernel, PieceSteps, RowProgram } from '../schedule/mapped.js'
import type { Pass, Step } from '../schedule/passes.js'
import type { TotalProgram } from '../schedule/totals.js'
import { writeColumns } from './columns.js'
import { rowLine } from './constructs/index.js'
import { isAlone } from './constructs/shared_row.js'
import type { PassContext, Walk } from './context.js'
import { operandText, type Scope } from './expression.js'
import {
  type Body,
  bodyWriter,
  functionName,
  lines,
  newContext,
  type Parameters,
  parameterList,
  writeIndices,
  writePeeled,
} from './kernel_frame.js'
import { soonLines } from './loads.js'
import { createNames } from './names.js'
import { wholeRows } from './offsets.js'
import { structTexts } from './own_monoid.js'
import { writePass } from './pass.js'
import { meets } from './stages.js'
import { render } from './templates.js'
import { writeFrame, writeJoin, writeWalk } from './totals.js'

export interface KernelTexts {
  readonly text: string
  readonly parameters: Parameters
}

/** The tensors a kernel reads and writes: one that is updated and not read is the memory of the output alone. */
function usedTensors(kernel: Kernel): readonly TensorParam[] {
  const { tensors } = kernel
  const read = new Set<string>()
  visitKernel(placeUpdates(kernel), (node) => {
    if (node.kind === 'load') read.add(node.tensor)
  })
  return tensors.filter(({ name }) => read.has(name) || tensors.every(({ updates }) => updates !== name))
}

/** All kernels of one file. */
export function kernelTexts(mapped: MappedKernel): KernelTexts {
  const { program, instance } = mapped
  const used: Scope['used'] = { dims: new Set(), attrs: new Set(), indices: new Set() }
  const bodies = bodiesOf(mapped, used)
  const parameters: Parameters = {
    dims: instance.kernel.dims.filter((dim) => used.dims.has(dim)),
    attrs: instance.kernel.attrs.filter((attr) => used.attrs.has(attr.name)),
    tensors: usedTensors(instance.kernel),
  }
  const work = { elementwise: ['const int64_t work'], rows: ['const int64_t rows'], columns: [], totals: [] }[program.kind]
  const names = createNames(mapped)
  const texts = bodies.map((body) =>
    render('kernel', { ...body, parameters: parameterList(parameters, body.first ?? work, names) }),
  )
  return { text: [...structTexts(instance.kernel), ...texts].join('\n'), parameters }
}

function bodiesOf(mapped: MappedKernel, used: Scope['used']): readonly Body[] {
  const { program } = mapped
  switch (program.kind) {
    case 'elementwise':
      return [elementwiseBody(mapped, program, used)]
    case 'rows':
      return rowBodies(mapped, program, used)
    case 'columns':
      return [columnBody(mapped, program, used)]
    case 'totals':
      return totalBodies(mapped, program, used)
  }
}

function rowBodies(mapped: MappedKernel, program: RowProgram, used: Scope['used']): Body[] {
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

  // What does not wait for a reduction comes first, so that the row can be judged before its passes.
  const first = steps.findIndex((step) => step.kind !== 'let')
  const known = steps.slice(0, first)
  const head = newContext(mapped, walk, names, used)
  for (const step of known) writeStep(step, head)
  // Passes in which lanes meet check every chunk, and those that only share a row have none, so a row that has no other need not be
  // judged. One that is ranked is not either: what it would win in the other passes is less than a second copy of the ranking costs.
  const all = steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  const passes = all.some(({ statements }) => statements.some((s) => passStatementOf(s).meets))
    ? []
    : all.filter((pass) => !meets(pass) && !isAlone(pass))
  const ready = new Set(known.flatMap((step) => (step.kind === 'let' ? [step.name] : [])))
  const whole = passes.length > 0 ? wholeRows(passes, ready, head.starts, head, head.writer) : undefined

  const body: PassContext = whole === undefined ? head : { ...head, writer: bodyWriter(2), whole }
  for (const line of soonLines(all, ready, body)) body.writer.writeLine(line)
  for (const step of steps.slice(first)) writeStep(step, body)
  writeIndices(mapped, frame, names, used)
  const start = lines(frame) + lines(head.writer)
  return whole === undefined ? start : start + render('whole', { condition: whole.condition, body: lines(body.writer) })
}

function columnBody(mapped: MappedKernel, program: ColumnProgram, used: Scope['used']): Body {
  const writers = { frame: bodyWriter(), body: bodyWriter(2) }
  const condition = writeColumns(mapped, program, used, writers, (writer, names) => writeIndices(mapped, writer, names, used))
  return {
    comment: 'A thread reduces VEC neighbouring columns of its rows.',
    template: 'template <class Team>',
    bounds: 'Team::threads, 1',
    name: functionName(mapped, 'columns'),
    body: lines(writers.frame) + render('whole', { condition, body: lines(writers.body) }),
  }
}

/** The walk over a tensor, and what combines the totals of its blocks. */
function totalBodies(mapped: MappedKernel, program: TotalProgram, used: Scope['used']): Body[] {
  const [walk, join] = [createNames(mapped), createNames(mapped)].map((names) => {
    const head = newContext(mapped, 'reread', names, used)
    const frame = bodyWriter()
    return { head, frame, indices: () => writeIndices(mapped, frame, names, used) }
  })
  if (walk === undefined || join === undefined) throw new Error('internal: a program of totals has two kernels')
  const body = { ...walk.head, writer: bodyWriter(mapped.vec === 1 ? 1 : 2) }
  const condition = writeWalk(program, mapped.vec, walk.head, body)
  writeFrame(walk.frame, 'heddle::BlockTeam<heddle::total_threads>', 'static_cast<int64_t>(blockIdx.x) / parts')
  walk.frame.writeLine('const int part = static_cast<int>(blockIdx.x) % parts;')
  walk.indices()
  used.indices.clear()
  writeJoin(program, join.head)
  writeFrame(join.frame, 'heddle::WarpTeam<heddle::warp_lanes, 1>', 'static_cast<int64_t>(blockIdx.x)')
  join.indices()
  const inside = lines(body.writer)
  return [
    {
      comment: 'Blocks combine the chunks of a tensor; one that is ALONE computes the outputs.',
      template: 'template <bool ALONE>',
      bounds: 'heddle::total_threads, 2',
      first: ['const int64_t chunks', 'const int parts', '[[maybe_unused]] const heddle::Out<float> sums'],
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

function elementwiseBody(mapped: MappedKernel, program: ElementwiseProgram, used: Scope['used']): Body {
  const names = createNames(mapped)
  const pass = onlyPass(program)
  const inner = newContext(mapped, 'single', names, used)
  if (program.pieces !== undefined) writePieces(mapped, program.pieces, pass, inner)
  for (const step of program.steps) writeStep(step, inner)
  const frame = bodyWriter()
  const length = operandText(pass.loop.length, inner)
  const first = names.first(pass.loop.index)
  const threads = mapped.generic === true ? 'THREADS' : `${program.threads}`
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine(`int64_t position = static_cast<int64_t>(blockIdx.x) * ${threads} + threadIdx.x;`)
  frame.writeLine('if (position >= work) return;')
  if (mapped.across !== undefined) writePeeled(mapped.across, mapped, frame, names, used)
  frame.writeLine(`const int ${first} = heddle::peel(position, heddle::chunks_of<VEC>(${length})) * VEC;`)
  frame.writeLine(`const int valid = ${length} - ${first};`)
  writeIndices(mapped, frame, names, used)
  return {
    comment: 'Each thread computes one chunk of VEC elements.',
    template: mapped.generic === true ? 'template <int VEC, int THREADS>' : '',
    bounds: `${threads}, 1`,
    name: functionName(mapped, 'single'),
    body: lines(frame) + lines(inner.writer),
  }
}

/** What a chunk in which no piece ends is computed by, and the thread is done. */
function writePieces(mapped: MappedKernel, { index, bounds, steps }: PieceSteps, { loop }: Pass, outer: PassContext): void {
  const { names, used, writer } = outer
  const first = names.first(loop.index)
  const value = (name: string): string => (name === index ? first : names.value(name))
  const body = { ...newContext(mapped, 'single', { ...names, value }, used), writer: bodyWriter(1) }
  for (const step of steps) writeStep(step, body)
  const tests = bounds.map((bound) => operandText(bound, outer)).map((at) => `${at} <= ${first} || ${at} - ${first} >= VEC`)
  writer.writeLine(`if (${tests.length === 1 ? tests[0] : tests.map((test) => `(${test})`).join(' && ')}) {`)
  writer.write(lines(body.writer))
  writer.writeLine('  return;')
  writer.writeLine('}')
}

/** Registers a thread has when two blocks that read their rows again share a multiprocessor, less those for addresses. */
const sharedRegisters = 56

/** Blocks of a reread program that are to share a multiprocessor: two, unless one chunk of every tensor or a search is too much for that. */
function rereadBlocks({ instance: { kernel, types }, vec }: MappedKernel, { reread }: RowProgram): 1 | 2 {
  if (reread.some((step) => step.kind !== 'pass' && rowStatementOf(step).searches)) return 1
  const bytes = kernel.tensors.reduce((sum, { dtype }) => sum + vec * dtypeInfo[resolveDType(dtype, types)].bytes, 0)
  return bytes / dtypeInfo.f32.bytes > sharedRegisters ? 1 : 2
}

/** The one pass of an elementwise program. */
export function onlyPass(program: ElementwiseProgram): Pass {
  const pass = program.steps.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))[0]
  if (pass === undefined) throw new Error('internal: an elementwise program has one pass')
  return pass
}

function writeStep(step: Step, context: PassContext): void {
  if (step.kind === 'pass') writePass(step.pass, context)
  else context.writer.writeLine(rowLine(step, context))
}
