/** LLaMA-like models on simt as their checkpoints are and with tensors changed, and how far their scores lie from each other. */
import { readFile, rm } from 'node:fs/promises'
import { openCheckpoint } from '../../src/checkpoint/checkpoint.js'
import { convertTensor } from '../../src/checkpoint/convert.js'
import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama, LlamaOptions } from '../../src/models/llama/llama_types.js'
import type { Score } from '../../src/models/llama/score.js'
import { decode } from '../../src/runtime/buffer.js'
import { inMemory } from '../../src/runtime/weight.js'
import { writeModel } from './fixtures.js'
import { type FamilyName, farthest, folderOf, goldenOf } from './llama_host.js'
import { openSimtKernels } from './simt.js'

/** One library for all models: a process can load only so many. */
export const kernels = openSimtKernels()

export async function withFolder<T>(
  dir: string,
  plan: string,
  use: (model: Llama) => Promise<T>,
  smooth?: LlamaOptions['smooth'],
): Promise<T> {
  const model = await loadLlama(dir, {
    rotation: 'float32',
    ...(await kernels),
    plan,
    ...(smooth === undefined ? {} : { smooth }),
  })
  try {
    return await use(model)
  } finally {
    model.release()
  }
}

/** Change of a matrix or a vector of a checkpoint, by its name. */
export type Change = (name: string, values: Float32Array, shape: readonly number[]) => Float32Array

type Json = Readonly<Record<string, unknown>>
/** Change of a whole folder: its tensors in place, and its configuration. */
export type Folder = (json: Json, tensors: Map<string, StoredTensor>) => Json

/** Writes a model whose tensors were changed in float32. */
export async function changedFolder(family: FamilyName, change: Change, folder: Folder = (json) => json): Promise<string> {
  const file = await openCheckpoint(folderOf(family))
  const tensors = new Map<string, StoredTensor>()
  for (const [name, tensor] of file.tensors) {
    const { data } = await inMemory(convertTensor(name, tensor, 'f32'))
    const changed = change(name, decode('f32', data), tensor.shape)
    tensors.set(name, { dtype: 'F32', shape: tensor.shape, data: new Uint8Array(Float32Array.from(changed).buffer) })
  }
  const json = JSON.parse(await readFile(`${folderOf(family)}/config.json`, 'utf8')) as Json
  return writeModel({ json: folder(json, tensors), tensors })
}

/** Loads such a model, and uses it. */
export async function withChanged<T>(
  family: FamilyName,
  change: Change,
  plan: string,
  use: (model: Llama) => Promise<T>,
): Promise<T> {
  const dir = await changedFolder(family, change)
  try {
    return await withFolder(dir, plan, use)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const places = [3, 40, 63]
export const textOf = (family: FamilyName) => ({ inputIds: goldenOf(family).text.input_ids.slice(0, 64) })
export const scoreOf =
  (family: FamilyName) =>
  async (model: Llama): Promise<Score> => {
    const [score] = await model.score([textOf(family)], { places })
    if (score === undefined) throw new Error('no score')
    return score
  }
export const underPlan = (family: FamilyName, plan: string): Promise<Score> => withFolder(folderOf(family), plan, scoreOf(family))

export const distance = (found: Score, wanted: Score): number =>
  Math.max(...wanted.logits.map((row, i) => farthest(found.logits[i] ?? [], Array.from(row))))
/** Root mean square of the differences between the likelihoods of single tokens. */
export const spread = ({ losses: found }: Score, { losses }: Score): number =>
  Math.sqrt(losses.reduce((sum, loss, i) => sum + (loss - (found[i] ?? Number.NaN)) ** 2, 0) / losses.length)
