/**
 * Reads GGUF files of LLaMA-like models like the folders they were made from: metadata become configuration fields, and tensor names become
 * HF's. Files of architecture `llama` store query and key rows in pairs that are rotated together; they are reordered into halves.
 */
import { basename } from 'node:path'
import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import type { CheckpointTensor } from '../../checkpoint/convert.js'
import type { Gguf } from '../../checkpoint/gguf.js'
import { ggufFields } from '../../checkpoint/gguf_fields.js'
import type { GgufValue } from '../../checkpoint/gguf_header.js'
import { openGgufModel } from '../../checkpoint/gguf_parts.js'
import type { FileTensor } from '../../checkpoint/safetensors.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import { decode } from '../../runtime/buffer.js'
import { wholeOf } from '../../runtime/weight.js'
import { type LlamaConfig, parseLlamaConfig } from './config.js'
import { inHalves } from './paired_heads.js'
import { rotaryDims } from './rotary_config.js'

export interface LlamaFiles {
  readonly config: LlamaConfig
  readonly checkpoint: Checkpoint
}

export interface LlamaGguf extends LlamaFiles {
  readonly metadata: ReadonlyMap<string, GgufValue>
}

/**
 * Opens a model in one file, or in several of which one is named. Reads the headers and the few RoPE factors that are stored as tensors;
 * weights are read later, at their file offsets.
 * @throws usage `gguf.*`, and what `parseLlamaConfig` throws
 */
export async function openLlamaGguf(path: string, signal?: AbortSignal): Promise<LlamaGguf> {
  const file = await openGgufModel(path, signal)
  const name = basename(path)
  const parsed = parseLlamaConfig(ggufFields(file, name), name)
  const config = await withFactors(parsed, file, name, signal)
  const inPairs = file.metadata.get('general.architecture') === 'llama'
  const factors: readonly string[] = Object.values(factorTensors)
  const tensors = new Map<string, CheckpointTensor>()
  for (const [found, stored] of file.tensors) {
    if (factors.includes(found)) continue
    const tensor = hfName(found, config.fusedRows)
    const heads = inPairs ? headsOf(tensor, config) : undefined
    tensors.set(tensor, heads === undefined ? stored : wholeInHalves(stored, heads, config.headDim, name, tensor))
  }
  return { config, checkpoint: { tensors }, metadata: file.metadata }
}

const layerNames: Readonly<Record<string, string>> = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj',
  attn_k: 'self_attn.k_proj',
  attn_v: 'self_attn.v_proj',
  attn_qkv: 'self_attn.qkv_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
}

const modelNames: Readonly<Record<string, string>> = {
  'token_embd.weight': 'model.embed_tokens.weight',
  'output_norm.weight': 'model.norm.weight',
  'output.weight': 'lm_head.weight',
}

/** HF's name of a tensor, or its own name if HF has none, which is then refused. Phi-3's fused gate is called `ffn_up` in GGUF. */
function hfName(name: string, fused: boolean): string {
  const [, layer, part = '', kind] = /^blk\.(\d+)\.(\w+)\.(weight|bias)$/.exec(name) ?? []
  const hf = getOwn(layerNames, part)
  if (hf === undefined) return getOwn(modelNames, name) ?? name
  return `model.layers.${layer}.${fused && part === 'ffn_up' ? 'mlp.gate_up_proj' : hf}.${kind}`
}

/** Tensors of divisors of the RoPE frequencies. */
const factorTensors = { one: 'rope_freqs.weight', short: 'rope_factors_short.weight', long: 'rope_factors_long.weight' }

/**
 * A configuration with the RoPE factors that the file stores as tensors: those of `llama3` for every length, those of `longrope` for short
 * and long texts.
 */
async function withFactors(config: LlamaConfig, { tensors }: Gguf, name: string, signal?: AbortSignal): Promise<LlamaConfig> {
  const pairs = rotaryDims(config.rotary, config.headDim) / 2
  const read = async (tensor: string): Promise<number[] | undefined> => {
    const stored = tensors.get(tensor)
    if (stored === undefined) return undefined
    if (stored.dtype !== 'F32' || stored.shape.join() !== String(pairs)) {
      throw usageError(
        'gguf.tensor',
        `${name}: tensor ${tensor} is ${stored.dtype} [${stored.shape.join(', ')}], expected F32 [${pairs}]`,
      )
    }
    const values = [...decode('f32', await wholeOf(stored, signal))]
    if (values.every((value) => Number.isFinite(value) && value > 0)) return values
    throw usageError('gguf.tensor', `${name}: tensor ${tensor} divides frequencies, expected positive numbers`)
  }
  const [one, short, long] = [await read(factorTensors.one), await read(factorTensors.short), await read(factorTensors.long)]
  if (one === undefined && short === undefined && long === undefined) return config
  const { rotary, positions } = config
  const { theta, fraction } = rotary
  if (one !== undefined && short === undefined && long === undefined && rotary.type === 'default') {
    const factors = { originalPositions: positions, attentionFactor: 1, shortFactors: one, longFactors: one }
    return { ...config, rotary: { type: 'longrope', theta, fraction, ...factors } }
  }
  if (one === undefined && short !== undefined && long !== undefined && rotary.type === 'longrope') {
    return { ...config, rotary: { ...rotary, shortFactors: short, longFactors: long } }
  }
  throw usageError('config.rope', `${name}: its tensors of RoPE factors do not match RoPE type ${rotary.type}`)
}

/** Number of heads of a query or key tensor; undefined for all others. */
function headsOf(name: string, { heads, kvHeads }: LlamaConfig): number | undefined {
  if (/\.self_attn\.q_proj\./.test(name)) return heads
  return /\.self_attn\.k_proj\./.test(name) ? kvHeads : undefined
}

/**
 * A tensor with its heads reordered into halves.
 * @throws usage `weights.shape` for rows that are not whole heads
 */
function wholeInHalves(tensor: FileTensor, heads: number, headDim: number, file: string, name: string): CheckpointTensor {
  const [rows = 0] = tensor.shape
  if (rows === heads * headDim) return inHalves(tensor, { heads, headDim, rotated: headDim })
  throw usageError(
    'weights.shape',
    `${file}: tensor ${shown(name)} has shape [${tensor.shape.join(', ')}], expected ${heads * headDim} rows`,
  )
}
