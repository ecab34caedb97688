/** Models without files: named configurations and random weights. Times do not depend on the values of weights. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import type { FloatType } from '../checkpoint/convert.js'
import { usageError } from '../errors.js'
import { bertShapes } from '../models/encoder/bert.js'
import { type BertConfig, parseBertConfig, readBertConfig } from '../models/encoder/config.js'
import { encode } from '../runtime/buffer.js'
import { tensorBytes, type WeightTensor } from '../runtime/weight.js'
import { normal, random } from '../verify/random.js'

const base = {
  model_type: 'bert',
  vocab_size: 30_522,
  hidden_size: 768,
  num_hidden_layers: 12,
  num_attention_heads: 12,
  intermediate_size: 3072,
  max_position_embeddings: 512,
  hidden_act: 'gelu',
}

/** Configurations by name, in HF's form. */
const named: Readonly<Record<string, Record<string, unknown>>> = {
  'bert-base': base,
  'bert-large': { ...base, hidden_size: 1024, num_hidden_layers: 24, num_attention_heads: 16, intermediate_size: 4096 },
}

/**
 * Configuration of a name, or of a model folder below `root`.
 * @throws usage `bench.config` for neither, and errors of `readBertConfig`
 */
export async function benchConfig(nameOrDir: string, root: string): Promise<BertConfig> {
  const known = Object.hasOwn(named, nameOrDir) ? named[nameOrDir] : undefined
  if (known !== undefined) return parseBertConfig(known, nameOrDir)
  const path = resolve(root, nameOrDir, 'config.json')
  if (!existsSync(path)) {
    throw usageError('bench.config', `${nameOrDir} is neither a known configuration nor a folder with config.json`, {
      hint: `known: ${Object.keys(named).join(', ')}`,
    })
  }
  return readBertConfig(path)
}

/** Number of heads and elements per head, instead of those of a named configuration. */
export interface HeadSizes {
  readonly heads?: number | undefined
  readonly size?: number | undefined
}

/**
 * Configuration of a name or a folder. For a name with other heads, the hidden size follows from them, and the inner size is four times that.
 * @throws usage `bench.config` for other heads of a folder, and as `benchConfig`
 */
export async function sizedConfig(nameOrDir: string, root: string, { heads, size }: HeadSizes): Promise<BertConfig> {
  if (heads === undefined && size === undefined) return benchConfig(nameOrDir, root)
  if (!Object.hasOwn(named, nameOrDir)) {
    throw usageError('bench.config', `heads cannot be changed for the configuration of a folder: ${nameOrDir}`, {
      hint: `leave --heads and --size out, or name one of: ${Object.keys(named).join(', ')}`,
    })
  }
  const usual = await benchConfig(nameOrDir, root)
  const [count, elements] = [heads ?? usual.heads, size ?? usual.headDim]
  const hidden = count * elements
  const given = { num_attention_heads: count, hidden_size: hidden, intermediate_size: 4 * hidden }
  return parseBertConfig({ ...named[nameOrDir], ...given }, nameOrDir)
}

/** Number of random values, which are repeated: a model has a hundred million, and only their spread matters. */
const drawn = 65_521

/** HF's initial spread of weights. */
const spread = 0.02

/** Random weights of every tensor of the configuration. */
export const syntheticWeights = (config: BertConfig, dtype: FloatType): Record<string, WeightTensor> =>
  syntheticTensors(bertShapes(config), dtype)

/** Random weights of the given shapes. */
export function syntheticTensors(
  shapes: Readonly<Record<string, readonly number[]>>,
  dtype: FloatType,
): Record<string, WeightTensor> {
  const next = random('synthetic weights')
  const block = encode(
    dtype,
    Float32Array.from({ length: drawn }, () => spread * normal(next)),
  )
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const data = new Uint8Array(tensorBytes(dtype, shape))
      for (let at = 0; at < data.byteLength; at += block.byteLength) data.set(block.subarray(0, data.byteLength - at), at)
      return [name, { dtype, shape, data }]
    }),
  )
}
