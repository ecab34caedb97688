/** GGUF files of small models, written as llama.cpp's converter writes them. */

import type { StoredTensor } from '../../src/checkpoint/safetensors.js'
import { parseLlamaConfig } from '../../src/models/llama/config.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { smallCheckpoint } from './llama_fixtures.js'

/** Metadata: a number is an unsigned 32-bit integer, a `Float` a 32-bit one. */
export type Meta = string | number | boolean | Float | readonly string[] | readonly number[]

export class Float {
  readonly value: number
  constructor(value: number) {
    this.value = value
  }
}

export type WrittenType = 'F32' | 'F16' | 'BF16' | 'Q8_0' | number

export interface Written {
  readonly type: WrittenType
  /** Row-major. */
  readonly shape: readonly number[]
  readonly data: Uint8Array
}

const codes = { F32: 0, F16: 1, Q8_0: 8, BF16: 30 }

const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const u64 = (value: number): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const f32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeFloatLE(value)
  return bytes
}
export const text = (value: string): Buffer => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)])

function meta(value: Meta): Buffer {
  if (typeof value === 'string') return Buffer.concat([u32(8), text(value)])
  if (typeof value === 'boolean') return Buffer.concat([u32(7), Buffer.of(value ? 1 : 0)])
  if (typeof value === 'number') return Buffer.concat([u32(4), u32(value)])
  if (value instanceof Float) return Buffer.concat([u32(6), f32(value.value)])
  const texts = value.every((each) => typeof each === 'string')
  const items = value.map((each) => (typeof each === 'string' ? text(each) : f32(each)))
  return Buffer.concat([u32(9), u32(texts ? 8 : 6), u64(value.length), ...items])
}

/** The bytes of a file. */
export function formatGguf(
  metadata: Readonly<Record<string, Meta>>,
  tensors: Readonly<Record<string, Written>>,
  alignment = 32,
): Uint8Array {
  const fields = Object.entries(metadata).map(([key, value]) => Buffer.concat([text(key), meta(value)]))
  let end = 0
  const infos: Buffer[] = []
  const body: Buffer[] = []
  for (const [name, { type, shape, data }] of Object.entries(tensors)) {
    const dims = shape.toReversed().map(u64)
    infos.push(
      Buffer.concat([text(name), u32(shape.length), ...dims, u32(typeof type === 'number' ? type : codes[type]), u64(end)]),
    )
    const padding = (alignment - (data.byteLength % alignment)) % alignment
    body.push(Buffer.from(data), Buffer.alloc(padding))
    end += data.byteLength + padding
  }
  const header = Buffer.concat([Buffer.from('GGUF'), u32(3), u64(infos.length), u64(fields.length), ...fields, ...infos])
  const padding = Buffer.alloc((alignment - (header.byteLength % alignment)) % alignment)
  return new Uint8Array(Buffer.concat([header, padding, ...body]))
}

/** A float32 tensor in another type. */
export function writtenAs({ shape, data }: StoredTensor, type: 'F32' | 'F16' | 'BF16' | 'Q8_0'): Written {
  const values = decode('f32', data)
  if (type === 'F32') return { type, shape, data }
  if (type === 'F16' || type === 'BF16') return { type, shape, data: encode(type === 'F16' ? 'f16' : 'bf16', values) }
  const blocks = values.length / 32
  const bytes = Buffer.alloc(blocks * 34)
  for (let block = 0; block < blocks; block++) {
    const part = values.subarray(32 * block, 32 * block + 32)
    const half = encode('f16', Float32Array.of(part.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127))
    const [step = 0] = decode('f16', half)
    bytes.set(half, 34 * block)
    for (const [i, value] of part.entries())
      bytes.writeInt8(step === 0 ? 0 : Math.max(-128, Math.min(127, Math.round(value / step))), 34 * block + 2 + i)
  }
  return { type, shape, data: new Uint8Array(bytes) }
}

/** Rows of heads as llama.cpp stores them: the two that rotate together are adjacent. */
export function inPairs(tensor: StoredTensor, heads: number): StoredTensor {
  const [rows = 0] = tensor.shape
  const [headDim, row] = [rows / heads, tensor.data.byteLength / rows]
  const data = new Uint8Array(tensor.data.byteLength)
  for (let head = 0; head < heads; head++) {
    for (let half = 0; half < 2; half++) {
      for (let k = 0; k < headDim / 2; k++) {
        const from = head * headDim + half * (headDim / 2) + k
        const to = head * headDim + 2 * k + half
        data.set(tensor.data.subarray(from * row, (from + 1) * row), to * row)
      }
    }
  }
  return { ...tensor, data }
}

const parts: readonly (readonly [string, string])[] = [
  ['input_layernorm', 'attn_norm'],
  ['self_attn.q_proj', 'attn_q'],
  ['self_attn.k_proj', 'attn_k'],
  ['self_attn.v_proj', 'attn_v'],
  ['self_attn.qkv_proj', 'attn_qkv'],
  ['self_attn.o_proj', 'attn_output'],
  ['self_attn.q_norm', 'attn_q_norm'],
  ['self_attn.k_norm', 'attn_k_norm'],
  ['post_attention_layernorm', 'ffn_norm'],
  ['mlp.gate_up_proj', 'ffn_up'],
  ['mlp.gate_proj', 'ffn_gate'],
  ['mlp.up_proj', 'ffn_up'],
  ['mlp.down_proj', 'ffn_down'],
]

/** llama.cpp's name of a tensor. */
export function ggufName(name: string): string {
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? []
  if (layer !== undefined) return `blk.${layer}.${parts.find(([hf]) => hf === part)?.[1]}.${kind}`
  return { 'model.embed_tokens.weight': 'token_embd.weight', 'model.norm.weight': 'output_norm.weight' }[name] ?? 'output.weight'
}

/** Extents of which blocks of 32 can be made. */
export const even = { hidden_size: 96, intermediate_size: 64, num_attention_heads: 6, head_dim: 16 }

/** Metadata of the model that HF's fields describe. */
export function metadataOf(
  fields: Readonly<Record<string, unknown>>,
  changes: Readonly<Record<string, Meta>> = {},
): Record<string, Meta> {
  const config = parseLlamaConfig(fields, 'config.json')
  const architecture = config.modelType
  const own: Record<string, Meta> = {
    block_count: config.layers,
    context_length: config.positions,
    embedding_length: config.hidden,
    feed_forward_length: config.inner,
    'attention.head_count': config.heads,
    'attention.head_count_kv': config.kvHeads,
    'attention.key_length': config.headDim,
    'attention.value_length': config.headDim,
    'attention.layer_norm_rms_epsilon': new Float(config.eps),
    'rope.freq_base': new Float(config.rotary.theta),
    'rope.dimension_count': config.headDim,
    vocab_size: config.vocab,
  }
  return {
    'general.architecture': architecture,
    'general.name': 'small',
    ...Object.fromEntries(Object.entries(own).map(([key, value]) => [`${architecture}.${key}`, value])),
    'tokenizer.ggml.bos_token_id': 1,
    'tokenizer.ggml.eos_token_id': 2,
    ...changes,
  }
}

/** A file of a small model, and the contents of its folder. */
export function modelFile(
  fields: Readonly<Record<string, unknown>>,
  type: 'F32' | 'F16' | 'BF16' | 'Q8_0' = 'F32',
  changes: Readonly<Record<string, Meta>> = {},
) {
  const config = parseLlamaConfig(fields, 'config.json')
  const { tensors } = smallCheckpoint(fields)
  const written: Record<string, Written> = {}
  for (const [name, tensor] of tensors) {
    const heads = name.includes('q_proj') ? config.heads : name.includes('k_proj') ? config.kvHeads : undefined
    const stored = config.modelType === 'llama' && heads !== undefined ? inPairs(tensor, heads) : tensor
    written[ggufName(name)] = writtenAs(stored, tensor.shape.length === 1 ? 'F32' : type)
  }
  return { bytes: formatGguf(metadataOf(fields, changes), written), written, tensors }
}
