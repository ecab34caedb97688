/**
 * Tensor names of OpenNMT-py's transformer (onmt/encoders/transformer.py, onmt/decoders/transformer.py) in a state dict, by the names that
 * encoder-decoder models have here. The generator's tensors are prefixed with `generator`, or with its former index in a sequence.
 */
import type { Checkpoint } from '../../checkpoint/checkpoint.js'
import { shown } from '../../checkpoint/safetensors_header.js'
import { usageError } from '../../errors.js'

/** Module names of a layer, common to encoder and decoder. */
const modules: Readonly<Record<string, string>> = {
  q_proj: 'linear_query',
  k_proj: 'linear_keys',
  v_proj: 'linear_values',
  out_proj: 'final_linear',
  self_attn: 'self_attn',
  encoder_attn: 'context_attn',
  fc1: 'feed_forward.w_1',
  fc2: 'feed_forward.w_2',
  final_layer_norm: 'feed_forward.layer_norm',
  encoder_attn_layer_norm: 'layer_norm_2',
}
/** Differences between the stacks: the list of layers, and the norm before a layer's self-attention. */
const stacks = {
  encoder: { layers: 'transformer', self_attn_layer_norm: 'layer_norm' },
  decoder: { layers: 'transformer_layers', self_attn_layer_norm: 'layer_norm_1' },
} as const

/** Parameter names of norms in older files. */
const oldParts: Readonly<Record<string, string>> = { weight: 'a_2', bias: 'b_2' }

/** Possible names of a tensor. */
export function opennmtNames(name: string): readonly string[] {
  if (name === 'lm_head.weight' || name === 'final_logits_bias') {
    const part = name === 'lm_head.weight' ? 'weight' : 'bias'
    return [`generator.${part}`, `generator.0.${part}`]
  }
  if (name === 'shared.weight')
    return (['encoder', 'decoder'] as const).flatMap((side) => opennmtNames(`${side}.embed_tokens.weight`))
  const [side, ...path] = name.split('.')
  if (side !== 'encoder' && side !== 'decoder') return []
  if (path[0] === 'embed_tokens') return [`${side}.embeddings.make_embedding.emb_luts.0.weight`]
  if (path[0] === 'embed_positions') return [`${side}.embeddings.make_embedding.pe.pe`]
  const stack = stacks[side]
  const renamed = path.map((part) => {
    if (part === 'layers' || part === 'self_attn_layer_norm') return stack[part]
    return modules[part] ?? part
  })
  const last = renamed.at(-1) ?? ''
  const old = path.at(-2)?.endsWith('layer_norm') === true ? oldParts[last] : undefined
  const whole = (end: string): string => [side, ...renamed.slice(0, -1), end].join('.')
  return old === undefined ? [whole(last)] : [whole(last), whole(old)]
}

/** Buffers that are determined by the configuration. */
const buffers = /\.(?:mask|pe)$/

/**
 * Refuses tensors that the model does not use: relative positions, a copying generator, a gate.
 * @param used names of the tensors that it uses
 * @throws usage `weights.unknown`
 */
export function expectOnly(file: Checkpoint, used: ReadonlySet<string>): void {
  const other = [...file.tensors.keys()].find((name) => !used.has(name) && !buffers.test(name))
  if (other === undefined) return
  throw usageError('weights.unknown', `tensor ${shown(other)} is not a weight of the model in config.json`, {
    hint: 'supported OpenNMT models are plain transformers: no relative positions, copying or gated feed-forward networks, and as many layers as stated',
  })
}
