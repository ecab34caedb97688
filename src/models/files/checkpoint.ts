/** Tensors of a checkpoint as a model's weights: found by name, held against the shapes its configuration gives, converted. */
import { usageError } from '../../errors.js'
import type { WeightTensor } from '../../runtime/session.js'
import { convertTensor, type FloatType } from './convert.js'
import type { Safetensors, StoredTensor } from './safetensors.js'

/** The first tensor a file has under any of these names, and the name it has. */
export function findTensor(file: Safetensors, names: readonly string[]): readonly [string, StoredTensor] | undefined {
  for (const name of names) {
    const tensor = file.tensors.get(name)
    if (tensor !== undefined) return [name, tensor]
  }
  return undefined
}

/**
 * A tensor in storage type `dtype`.
 * @param found what the file has for it
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function takeTensor(
  found: readonly [string, StoredTensor] | undefined,
  name: string,
  shape: readonly number[],
  dtype: FloatType,
): WeightTensor {
  if (found === undefined) {
    throw usageError('weights.missing', `tensor ${name} [${shape.join(', ')}] is missing`, {
      hint: 'the weights may belong to another architecture than config.json states',
    })
  }
  const [stored, tensor] = found
  if (tensor.shape.join() !== shape.join()) {
    throw usageError(
      'weights.shape',
      `tensor ${stored} has shape [${tensor.shape.join(', ')}], the configuration expects [${shape.join(', ')}]`,
    )
  }
  return convertTensor(stored, tensor, dtype)
}
