/** Weights as a plan reads them: as they are, in a layout, or several laid one behind the other. */
import type { LayoutDecl } from '../../lang/layout.js'
import type { WeightTensor } from '../weight.js'
import type { AnyTensor } from './call_types.js'
import { DeviceTensor } from './device_tensor.js'
import { bytesIn } from './form.js'
import { refuse } from './load_checks.js'
import type { ModelSource } from './source.js'
import type { Tensor } from './tensor.js'

export /** A weight, or several laid one behind the other along their first axis. */
function stacked(
  source: ModelSource,
  name: string,
  parts: readonly (AnyTensor | undefined)[],
  layout: LayoutDecl | undefined,
  layoutName: string,
): WeightTensor {
  const tensors = parts.map((part): Tensor => {
    if (part !== undefined && !(part instanceof DeviceTensor)) return part
    throw refuse(source, 'weight', `the plan stacks ${name}, whose parts must be tensors of the host`)
  })
  const [first = tensors[0]] = tensors
  if (first === undefined) throw new Error(`internal: ${name} has no parts`)
  const [rows = 1, ...rest] = first.shape
  const odd = tensors.find(({ shape }) => shape.slice(1).join() !== rest.join())
  if (odd !== undefined) {
    throw refuse(
      source,
      'weight',
      `the plan stacks ${name}, whose parts are [${first.shape.join(', ')}] and [${odd.shape.join(', ')}]`,
    )
  }
  const all = tensors.reduce((sum, { shape }) => sum + (shape[0] ?? 0), 0)
  const shape = tensors.length === 1 ? first.shape : [all, ...rest]
  if (tensors.length === 1) return { dtype: first.dtype, shape, layout: layoutName, data: bytesIn(first, layout) }
  const pieces = tensors.map((tensor) => bytesIn(tensor, undefined))
  const data = new Uint8Array(pieces.reduce((sum, { byteLength }) => sum + byteLength, 0))
  let at = 0
  for (const piece of pieces) {
    data.set(piece, at)
    at += piece.byteLength
  }
  if (layout !== undefined || rows < 0)
    throw refuse(source, 'weight', `the plan stores the stack ${name} in layout ${layoutName}`)
  return { dtype: first.dtype, shape, layout: layoutName, data }
}
