/**
 * Weights of LLaMA-like models: which tensor is which weight of the programs, and the tensors as they are uploaded. Two weights that are one
 * tensor, as tied embeddings and the tables of the rotation are, are one tensor on the device too.
 */

import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor, type Int8Tensor, type Weight } from '../../runtime/weight.js'
import type { LlamaConfig } from './config.js'
import { type RotaryTable, rotaryTable } from './rotary.js'
import { rotaryDims } from './rotary_config.js'
import { checkLlamaTensors, type LlamaTensor, llamaTensors, takeLlamaInt8, takeLlamaTensor } from './tensor_names.js'

/** What the session calls a tensor of the checkpoint: rows of a fused one are tensors of their own. */
const sessionName = ({ name, rows }: LlamaTensor): string => (rows === undefined ? name : `${name}[${rows.join(':')}]`)

const tables = ['cos', 'sin'] as const

/**
 * Which inverse frequencies texts are turned by. `stored` rounds them to the type that the configuration states, as a model has them that was
 * cast as a whole (`model.to(torch.bfloat16)`); the models of this project's goldens were. `float32` keeps them, as `from_pretrained` does
 * whatever type it loads. Where a text is long the two differ in logits, and in words now and then.
 */
export type Rotation = 'float32' | 'stored'
export const rotations = ['float32', 'stored'] as const satisfies readonly Rotation[]
export const usualRotation: Rotation = 'stored'

/** Longrope turns long texts by other tables than short ones. */
export type Reach = 'short' | 'long'
const tableName = (table: (typeof tables)[number], reach: Reach): string => `rotation.${reach}.${table}`
export const reachesOf = ({ rotary }: LlamaConfig): readonly Reach[] =>
  rotary.type === 'longrope' ? ['short', 'long'] : ['short']

/** Which tables a text of `length` tokens is turned by. All of it is turned by the same ones, as they are cached together. */
export const reachOf = ({ rotary }: Pick<LlamaConfig, 'rotary'>, length: number): Reach =>
  rotary.type === 'longrope' && length > rotary.originalPositions ? 'long' : 'short'

/** The session's tensors by the names that the programs have for weights. */
export const weightTensors = (config: LlamaConfig, reach: Reach): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ...Object.entries(llamaTensors(config)).map(([weight, tensor]) => [weight, sessionName(tensor)]),
    ...tables.map((table) => [`rotation.${table}`, tableName(table, reach)]),
  ])

/**
 * The model's tensors by the session's names, in `dtype` when they are read, and the tables of the rotation in float32.
 * @throws usage `config.count`, `weights.unknown`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration
 * expects and what was found
 */
export function llamaWeights(
  config: LlamaConfig,
  file: Checkpoint,
  dtype: FloatType,
  rotation: Rotation,
): Record<string, Weight> {
  checkLlamaTensors(config, file)
  const weights: Record<string, Weight> = {}
  for (const tensor of Object.values(llamaTensors(config))) weights[sessionName(tensor)] ??= takeLlamaTensor(file, tensor, dtype)
  for (const reach of reachesOf(config)) {
    const made = rotationOf(config, reach, rotation)
    for (const table of tables) weights[tableName(table, reach)] = made(table)
  }
  return weights
}

/**
 * The tensors that the checkpoint has as int8, by the session's names. A plan that multiplies int8 takes them as they are; for any other,
 * `llamaWeights` has the floats they stand for.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype`
 */
export function llamaInt8(config: LlamaConfig, file: Checkpoint): Record<string, Int8Tensor> {
  const stored: Record<string, Int8Tensor> = {}
  for (const tensor of Object.values(llamaTensors(config))) {
    const { steps } = tensor
    if (steps !== undefined) stored[sessionName(tensor)] ??= takeLlamaInt8(file, { ...tensor, steps })
  }
  return stored
}

/** Places of the tables, for texts of any length that the model has positions for. */
const placesOf = ({ rotary, positions }: LlamaConfig, reach: Reach): number =>
  rotary.type === 'longrope' && reach === 'short' ? Math.min(rotary.originalPositions, positions) : positions

/** The tables of the rotation, computed when the first is uploaded. */
function rotationOf(config: LlamaConfig, reach: Reach, rotation: Rotation): (table: (typeof tables)[number]) => DeferredTensor {
  const { rotary, headDim, positions } = config
  const shape = [positions, rotaryDims(rotary, headDim) / 2]
  const type = rotation === 'stored' ? config.dtype : undefined
  let made: RotaryTable | undefined
  return (table) =>
    computedTensor('f32', shape, async function* () {
      made ??= rotaryTable(rotary, headDim, positions, placesOf(config, reach), type)
      yield encode('f32', made[table])
    })
}
