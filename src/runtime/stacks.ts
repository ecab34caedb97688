/** Weights that a plan stacks: tensors laid one behind the other in host memory before they are uploaded, instead of their parts. */
import { usageError } from '../errors.js'
import { type GraphApplication, weightTensors } from './program_flatten.js'
import type { WeightTensor } from './session.js'

/**
 * The weights the applications read: their stacks in place of the parts, and nothing that none of them reads.
 * @throws usage `program.weight` for a part that does not exist or differs in type or shape from the others
 */
export function stackWeights(
  applications: readonly GraphApplication[],
  weights: Readonly<Record<string, WeightTensor>>,
): Record<string, WeightTensor> {
  const made: Record<string, WeightTensor> = {}
  for (const { name, parts } of applications.flatMap(weightTensors)) {
    if (made[name] !== undefined) continue
    const tensor = parts === undefined ? weights[name] : stack(name, parts, weights)
    if (tensor !== undefined) made[name] = tensor
  }
  return made
}

/** Concatenates tensors along their first axis. */
function stack(name: string, parts: readonly string[], weights: Readonly<Record<string, WeightTensor>>): WeightTensor {
  const tensors = parts.map((part) => {
    const tensor = weights[part]
    if (tensor === undefined) throw usageError('program.weight', `stack ${name}: there is no tensor ${part}`)
    return tensor
  })
  const [first] = tensors
  if (first === undefined) throw new Error(`internal: stack ${name} is empty`)
  const describe = ({ dtype, shape }: WeightTensor): string => `${dtype} [${shape.join(', ')}]`
  const other = tensors.find((tensor) => describe(tensor) !== describe(first))
  if (other !== undefined)
    throw usageError('program.weight', `stack ${name}: its parts are ${describe(first)} and ${describe(other)}`)
  const data = new Uint8Array(tensors.reduce((bytes, tensor) => bytes + tensor.data.byteLength, 0))
  let at = 0
  for (const tensor of tensors) {
    data.set(tensor.data, at)
    at += tensor.data.byteLength
  }
  const [rows = 1, ...rest] = first.shape
  return { dtype: first.dtype, shape: [rows * tensors.length, ...rest], data }
}
