/**
 * Kernels of a mapped kernel as CUDA source: the frame around the passes. An elementwise program is one kernel; row programs are in rows.ts.
 */
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { placeUpdates } from '../../ir/update.js'
import { visitKernel } from '../../ir/walk.js'
import { frameOf } from '../../loop/kernel_loops.js'
import { loopsOf } from '../../loop/pipeline.js'
import type { ElementwiseProgram, MappedKernel, PieceSteps } from '../../schedule/mapped.js'
import type { Pass } from '../../schedule/normalise/passes.js'
import type { PassContext } from '../print/context.js'
import { operandText, type Scope } from '../print/expression.js'
import { printLoops, validLine } from '../print/loops.js'
import { createNames, handleText, type Names, scalarText } from '../print/names.js'
import { workParameters, writeBounds } from '../print/update_range.js'
import { structTexts } from '../print/user_monoid.js'
import { render } from '../templates.js'
import { columnBody, totalBody } from './divided.js'
import { type Body, bodyWriter, functionName, lines, newContext, onlyPass, writeIndices, writePeeled } from './frame.js'
import { rowBodies } from './rows.js'
import { tiledBody } from './tiled.js'

/** Parameters of a kernel, except the amount of work, which is the first if there is one. */
export interface Parameters {
  readonly dims: readonly string[]
  readonly attrs: readonly { readonly name: string; readonly type: 'f32' | 'i32' }[]
  readonly tensors: readonly TensorParam[]
}

export interface KernelTexts {
  readonly text: string
  readonly parameters: Parameters
}

/** Tensors that a kernel reads or writes. A tensor that is updated and not read is represented by the output alone. */
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
  const work = { elementwise: workParameters(mapped, 'work'), rows: workParameters(mapped, 'rows'), columns: [], totals: [] }[
    program.kind
  ]
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
      return [
        program.staging === undefined
          ? elementwiseBody(mapped, program, used)
          : tiledBody(mapped, program, program.staging, used),
      ]
    case 'rows':
      return rowBodies(mapped, program, used)
    case 'columns':
      return [columnBody(mapped, program, used)]
    case 'totals':
      return [totalBody(mapped, program, used)]
  }
}

function elementwiseBody(mapped: MappedKernel, program: ElementwiseProgram, used: Scope['used']): Body {
  const names = createNames(mapped)
  const pass = onlyPass(program)
  const { interval } = program
  const inner = newContext(mapped, 'single', names, used)
  if (program.pieces !== undefined) writePieces(mapped, program.pieces, pass, inner)
  printLoops(loopsOf(program.steps, frameOf(mapped, 'single')), inner)
  const frame = bodyWriter()
  const length = operandText(pass.loop.length, inner)
  const first = names.first(pass.loop.index)
  const threads = mapped.generic === true ? 'THREADS' : `${program.threads}`
  frame.writeLine('heddle::begin_kernel();')
  frame.writeLine(`int64_t position = static_cast<int64_t>(blockIdx.x) * ${threads} + threadIdx.x;`)
  frame.writeLine('if (position >= work) return;')
  if (mapped.across !== undefined) writePeeled(mapped.across, mapped, frame, names, used)
  frame.writeLine(`const int ${first} = heddle::peel(position, heddle::chunks_of<VEC>(${length})) * VEC;`)
  frame.writeLine(validLine(pass.loop.length, first, inner))
  const bounds = bodyWriter()
  if (interval !== undefined) writeBounds(interval, inner, bounds)
  // After all source that uses indices.
  writeIndices(mapped, frame, names, used)
  return {
    comment: 'Each thread computes one chunk of VEC elements.',
    template: mapped.generic === true ? 'template <int VEC, int THREADS>' : '',
    bounds: `${threads}, 1`,
    name: functionName(mapped, 'single'),
    body: lines(frame) + lines(bounds) + lines(inner.writer),
  }
}

/** Source for a chunk that lies in one piece; the thread is then done. */
function writePieces(mapped: MappedKernel, { index, bounds, steps }: PieceSteps, { loop }: Pass, outer: PassContext): void {
  const { names, used, writer } = outer
  const first = names.first(loop.index)
  const value = (name: string): string => (name === index ? first : names.value(name))
  const body = { ...newContext(mapped, 'single', { ...names, value }, used), writer: bodyWriter(1) }
  printLoops(loopsOf(steps, frameOf(mapped, 'single')), body)
  const tests = bounds.map((bound) => operandText(bound, outer)).map((at) => `${at} <= ${first} || ${at} - ${first} >= VEC`)
  writer.writeLine(`if (${tests.length === 1 ? tests[0] : tests.map((test) => `(${test})`).join(' && ')}) {`)
  writer.write(lines(body.writer))
  writer.writeLine('  return;')
  writer.writeLine('}')
}

function parameterList({ dims, attrs, tensors }: Parameters, first: readonly string[], names: Names): string {
  return [
    ...first,
    ...dims.map((dim) => `const int ${names.dim(dim)}`),
    ...attrs.map((attr) => `const ${scalarText[attr.type]} ${names.attr(attr.name)}`),
    ...tensors.map((tensor) => `const ${handleText(tensor, names)} ${names.tensor(tensor.name)}`),
  ].join(',\n    ')
}
