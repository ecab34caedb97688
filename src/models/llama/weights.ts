/**
 * Weights of LLaMA-like models: the mapping from program weights to tensors, and the tensors as they are uploaded. Two weights that share
 * one tensor, such as tied embeddings and the RoPE tables, share it on the device too.
 */

import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor, type Int8Tensor, type Weight } from '../../runtime/weight.js'
import type { LlamaConfig } from './config.js'
import { type RotaryTable, rotaryTable } from './rotary.js'
import { rotaryDims } from './rotary_config.js'
import { checkLlamaTensors, type LlamaTensor, llamaTensors, takeLlamaInt8, takeLlamaTensor } from './tensor_names.js'

/** Session name of a checkpoint tensor; rows of a fused tensor are separate tensors. */
const sessionName = ({ name, rows }: LlamaTensor): string => (rows === undefined ? name : `${name}[${rows.join(':')}]`)

const tables = ['cos', 'sin'] as const

/**
 * Precision of RoPE's inverse frequencies. `stored` rounds them to the type that the configuration states, as in a model that was cast as a
 * whole (`model.to(torch.bfloat16)`), like the models of this project's goldens. `float32` does not round them, like `from_pretrained` with
 * any type. For long texts the two differ in logits, and occasionally in tokens.
 */
export type Rotation = 'float32' | 'stored'
export const rotations = ['float32', 'stored'] as const satisfies readonly Rotation[]
export const usualRotation: Rotation = 'stored'

/** Range of text lengths that a RoPE table applies to: longrope rotates long texts by other tables than short ones. */
export type RopeRange = 'short' | 'long'
const tableName = (table: (typeof tables)[number], ropeRange: RopeRange): string => `rotation.${ropeRange}.${table}`
export const ropeRangesOf = ({ rotary }: LlamaConfig): readonly RopeRange[] =>
  rotary.type === 'longrope' ? ['short', 'long'] : ['short']

/** Range of a text of `length` tokens. All of a text is rotated by the same tables, because its keys are cached together. */
export const ropeRangeOf = ({ rotary }: Pick<LlamaConfig, 'rotary'>, length: number): RopeRange =>
  rotary.type === 'longrope' && length > rotary.originalPositions ? 'long' : 'short'

/** RoPE tables of long texts, by the names of those of short texts. */
export const longTables: Readonly<Record<string, string>> = Object.fromEntries(
  tables.map((table) => [tableName(table, 'short'), tableName(table, 'long')]),
)

/** Session tensors by the programs' weight names. */
export const weightTensors = (config: LlamaConfig, ropeRange: RopeRange): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ...Object.entries(llamaTensors(config)).map(([weight, tensor]) => [weight, sessionName(tensor)]),
    ...tables.map((table) => [`rotation.${table}`, tableName(table, ropeRange)]),
  ])

/**
 * The model's tensors by session name, converted to `dtype` on reading, and the RoPE tables in float32.
 * @throws usage `config.count`, `weights.unknown`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, the expected and
 * the found value
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
  for (const ropeRange of ropeRangesOf(config)) {
    const made = rotationOf(config, ropeRange, rotation)
    for (const table of tables) weights[tableName(table, ropeRange)] = made(table)
  }
  return weights
}

/**
 * The checkpoint's int8 tensors, by session name. A plan that multiplies int8 takes them unchanged; for any other, `llamaWeights` has the
 * dequantised floats.
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

/** Length of the longest text that a table is for, within the model's positions. */
const placesOf = ({ rotary, positions }: LlamaConfig, ropeRange: RopeRange): number =>
  rotary.type === 'longrope' && ropeRange === 'short' ? Math.min(rotary.originalPositions, positions) : positions

/** The RoPE tables, computed when the first is uploaded. */
function rotationOf(
  config: LlamaConfig,
  ropeRange: RopeRange,
  rotation: Rotation,
): (table: (typeof tables)[number]) => DeferredTensor {
  const { rotary, headDim, positions } = config
  const shape = [positions, rotaryDims(rotary, headDim) / 2]
  const type = rotation === 'stored' ? config.dtype : undefined
  let made: RotaryTable | undefined
  return (table) =>
    computedTensor('f32', shape, async function* () {
      made ??= rotaryTable(rotary, headDim, positions, placesOf(config, ropeRange), type)
      yield encode('f32', made[table])
    })
}
