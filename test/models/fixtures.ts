/** Fixtures of the model tests: the example model's files, small random models, and interpreter inputs. */
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Checkpoint } from '../../src/checkpoint/checkpoint.js'
import { formatSafetensors, readSafetensors, type StoredTensor } from '../../src/checkpoint/safetensors.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { assembleBert, bertDims, bertShapes, bertWeights, hasPooler } from '../../src/models/encoder/bert.js'
import { type BertConfig, parseBertConfig } from '../../src/models/encoder/config.js'
import { findPlan } from '../../src/program/plans.js'
import { decode } from '../../src/runtime/buffer.js'
import type { WeightTensor } from '../../src/runtime/session.js'
import { inMemory, type Weight } from '../../src/runtime/weight.js'
import { interpret } from './interpreter.js'

export const exampleModel = fileURLToPath(new URL('../data/models/kjv-punct-bert', import.meta.url))

/** Weights read into host memory. */
export async function held(weights: Readonly<Record<string, Weight>>): Promise<Record<string, WeightTensor>> {
  const tensors: Record<string, WeightTensor> = {}
  for (const [name, weight] of Object.entries(weights)) tensors[name] = await inMemory(weight)
  return tensors
}

/** Host values of float32 weights. */
export const asHost = async (weights: Readonly<Record<string, Weight>>): Promise<Record<string, HostTensor>> =>
  Object.fromEntries(
    Object.entries(await held(weights)).map(([name, { shape, data }]) => [name, { shape, data: decode('f32', data) }]),
  )

/** Runs a model by the interpreter: every program value, for sequences padded to the longest. */
export async function interpretBert(
  config: BertConfig,
  file: Checkpoint,
  sequences: readonly (readonly number[])[],
  types: readonly (readonly number[])[] = [],
): Promise<Map<string, HostTensor>> {
  const weights = bertWeights(config, file, 'f32')
  const [batch, seq] = [sequences.length, Math.max(...sequences.map((sequence) => sequence.length))]
  const ids = sequences.flatMap((sequence) => Array.from({ length: seq }, (_, i) => sequence[i] ?? config.padToken))
  return interpret(
    assembleBert(config, findPlan('unfused'), hasPooler(config, weights)).applications,
    {
      ids: { shape: [batch * seq], data: ids },
      typeIds: {
        shape: [batch * seq],
        data: ids.map((_, at) => types[Math.floor(at / seq)]?.[at % seq] ?? 0),
      },
      lengths: { shape: [batch], data: sequences.map((sequence) => sequence.length) },
    },
    await asHost(weights),
    bertDims(config, { batch, seq }),
  )
}

/** Values of a golden tensor. */
export async function golden(): Promise<(name: string) => HostTensor> {
  const { tensors } = await readSafetensors(join(exampleModel, 'golden.safetensors'))
  return (name) => {
    const tensor = tensors.get(name)
    if (tensor === undefined) throw new Error(`no golden ${name}`)
    return { shape: tensor.shape, data: decode(tensor.dtype === 'I32' ? 'i32' : 'f32', tensor.data) }
  }
}

/** The valid tokens of the golden sentences. */
export async function goldenSentences(): Promise<number[][]> {
  const tensor = await golden()
  const [ids, mask] = [tensor('input_ids'), tensor('attention_mask')]
  const seq = ids.shape[1] ?? 0
  return Array.from({ length: ids.shape[0] ?? 0 }, (_, b) =>
    Array.from({ length: seq }, (_, s) => b * seq + s)
      .filter((at) => mask.data[at] === 1)
      .map((at) => ids.data[at] ?? -1),
  )
}

/** A generator of reproducible numbers in [-1, 1): a linear congruential one (Numerical Recipes' constants). */
export function noise(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 31 - 1
  }
}

export interface RandomModel {
  readonly config: BertConfig
  readonly json: Record<string, unknown>
  readonly tensors: Map<string, StoredTensor>
}

/** A BERT of the given size with random weights. Norms are centred on 1 so that values stay of order one. */
export function randomBert(changes: Readonly<Record<string, unknown>>, pooler = false): RandomModel {
  const json = {
    model_type: 'bert',
    architectures: ['BertModel'],
    vocab_size: 50,
    hidden_size: 128,
    num_hidden_layers: 1,
    num_attention_heads: 2,
    intermediate_size: 96,
    max_position_embeddings: 32,
    hidden_act: 'gelu',
    ...changes,
  }
  const config = parseBertConfig(json, 'config.json')
  const next = noise(1)
  const shapes = bertShapes(config, pooler)
  const tensors = new Map(
    Object.entries(shapes).map(([name, shape]): [string, StoredTensor] => {
      const spread = shape.length === 2 ? 2 / Math.sqrt(shape[1] ?? 1) : 0.1
      const centre = name.endsWith('LayerNorm.weight') ? 1 : 0
      const values = Float32Array.from({ length: shape.reduce((product, n) => product * n, 1) }, () => centre + spread * next())
      return [name, { dtype: 'F32', shape, data: new Uint8Array(values.buffer) }]
    }),
  )
  return { config, json, tensors }
}

/** Writes a model folder and returns its path. */
export async function writeModel({
  json,
  tensors,
}: {
  readonly json: Readonly<Record<string, unknown>>
  readonly tensors: ReadonlyMap<string, StoredTensor>
}): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'heddle-model-'))
  await writeFile(join(dir, 'config.json'), JSON.stringify(json))
  await writeFile(join(dir, 'model.safetensors'), formatSafetensors(tensors))
  return dir
}
