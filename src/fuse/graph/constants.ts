/**
 * Marks the inputs of a derived kernel that are weights. A kernel reads those as constants: through the read-only path, and before the preceding
 * launches are complete. Every program that runs the kernel must guarantee that. So an input is marked only if it is a weight in each use of the
 * kernel's name, and a program in which a step writes it is refused (runtime/program_constants.ts).
 */
import type { Graph } from '../../ir/graph.js'
import type { Kernel, TensorParam } from '../../ir/kernel.js'
import { factorsOf, type MatmulFactor } from '../../ir/product.js'
import { isTemplate, type TemplateKernel } from '../../ir/template.js'
import type { Derived } from '../rows/derive.js'

type AnyKernel = Kernel | TemplateKernel

/** Marks the inputs that are bound to weights of the graph. */
export function markConstants(graph: Graph, derived: Derived<AnyKernel>): Derived<AnyKernel> {
  const weights = new Set(Object.values(graph.weights))
  const bound = new Set(derived.inputs.filter(({ value }) => weights.has(value)).map(({ param }) => param))
  const { kernel } = derived
  const updated = new Set(kernel.tensors.flatMap(({ updates }) => updates ?? []))
  return {
    ...derived,
    kernel: withConstants(kernel, ({ name }) => bound.has(name) && !updated.has(name) && isRead(kernel, name)),
  }
}

/** A kernel that two uses of its name share: an input is constant if it is constant in both. */
export function commonConstants<K extends AnyKernel>(a: K, b: K): K {
  const both = new Set(a.tensors.flatMap(({ name, constant }, i) => (constant && b.tensors[i]?.constant ? [name] : [])))
  return withConstants(a, ({ name }) => both.has(name))
}

/**
 * True if a kernel's source reads the input itself. Main loops copy the operands of matmuls to shared memory, and check at each launch whether
 * they are constant. The operands of attention are usually computed.
 */
function isRead(kernel: AnyKernel, name: string): boolean {
  if (!isTemplate(kernel)) return true
  return kernel.kind === 'matmul' && !factorsOf(kernel).some((factor) => readsOf(factor).includes(name))
}

/** Tensors that a factor is loaded from. */
const readsOf = ({ tensor, prologue }: MatmulFactor): readonly string[] =>
  prologue === undefined ? [tensor] : prologue.tensors.map(({ name }) => name)

function withConstants<K extends AnyKernel>(kernel: K, isConstant: (tensor: TensorParam) => boolean): K {
  const mark = ({ constant: _, ...tensor }: TensorParam): TensorParam =>
    isConstant(tensor) ? { ...tensor, constant: true } : tensor
  const marked = { ...kernel, tensors: kernel.tensors.map(mark) }
  if (!('epilogue' in marked)) return marked
  return { ...marked, epilogue: { ...marked.epilogue, tensors: marked.epilogue.tensors.map(mark) } }
}
