/** Kernels of a mapped kernel as CUDA source: the functions that print its loops, with their parameters. */
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { placeUpdates } from '../../ir/update.js'
import { visitKernel } from '../../ir/walk.js'
import { loopsFor, walksOf } from '../../loop/kernel_loops.js'
import { declaring, type MappedKernel } from '../../schedule/mapped.js'
import { workParameters } from '../launch/slots.js'
import type { Scope } from '../print/expression.js'
import { printLoops } from '../print/loops.js'
import { createNames, handleText, type Names, scalarText } from '../print/names.js'
import { structTexts } from '../print/user_monoid.js'
import { render } from '../templates.js'
import { type Body, lines, newContext } from './frame.js'
import { signatureOf } from './signature.js'

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
  return { text: [...structTexts(declaring(mapped)), ...texts].join('\n'), parameters }
}

/** Kernel functions: one for each way in which threads walk over rows. */
const bodiesOf = (mapped: MappedKernel, used: Scope['used']): readonly Body[] =>
  walksOf(mapped).map(([walk]) => {
    const context = newContext(mapped, walk, createNames(mapped), used)
    printLoops(loopsFor(mapped, walk), context)
    return { ...signatureOf(mapped, walk), body: lines(context.writer) }
  })

function parameterList({ dims, attrs, tensors }: Parameters, first: readonly string[], names: Names): string {
  return [
    ...first,
    ...dims.map((dim) => `const int ${names.dim(dim)}`),
    ...attrs.map((attr) => `const ${scalarText[attr.type]} ${names.attr(attr.name)}`),
    ...tensors.map((tensor) => `const ${handleText(tensor, names)} ${names.tensor(tensor.name)}`),
  ].join(',\n    ')
}
