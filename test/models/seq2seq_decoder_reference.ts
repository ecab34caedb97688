/**
 * Pegasus' and Marian's decoder written out in double precision, which reads the whole text so far again for every token: no caches, no steps. It
 * shares nothing with the code under test except the written-out encoder.
 */
import type { Safetensors } from '../../src/checkpoint/safetensors.js'
import type { Seq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import type { Model } from './beam_search.js'
import { attention, causal, encodeSource, type Matrix, partsOf, type ReferenceConfig, sum, wordsOf } from './seq2seq_reference.js'

const activations: Readonly<Partial<Record<Seq2seqConfig['activation'], (x: number) => number>>> = {
  relu: (x) => Math.max(x, 0),
  silu: (x) => x / (1 + Math.exp(-x)),
}

/** The logits after a start token and the ids so far, for one source, under a mask of pairs of its tokens. */
export function referenceModel(config: Seq2seqConfig, file: Safetensors, source: readonly number[], mask?: Matrix): Model {
  const { preNorm, encoder, decoder, vocab, eps } = config
  const { hidden } = decoder
  const activation = activations[config.activation]
  if (activation === undefined) throw new Error(`no reference of ${config.activation}`)
  const sizes: Omit<ReferenceConfig, 'hidden' | 'embedScale'> = {
    preNorm,
    eps,
    activation,
    layers: encoder.layers,
    heads: encoder.heads,
    decoderLayers: decoder.layers,
  }
  const { keys, values } = encodeSource({ ...sizes, hidden: encoder.hidden, embedScale: encoder.embedScale }, file, source, mask)
  const { vector, linear, norm, embed } = partsOf({ ...sizes, hidden, embedScale: decoder.embedScale }, file)
  const [words, bias] = [config.tied ? wordsOf(file, 'decoder') : vector('model.lm_head.weight'), vector('final_logits_bias')]

  const layer = (i: number, x: Matrix): Matrix => {
    const at = `model.decoder.layers.${i}`
    const self = (y: Matrix): Matrix => {
      const [q, k, v] = ['q', 'k', 'v'].map((part) => linear(`${at}.self_attn.${part}_proj`, y))
      return linear(`${at}.self_attn.out_proj`, attention(q ?? [], k ?? [], v ?? [], decoder.heads, causal(y)))
    }
    const cross = (y: Matrix): Matrix => {
      const q = linear(`${at}.encoder_attn.q_proj`, y)
      return linear(`${at}.encoder_attn.out_proj`, attention(q, keys[i] ?? [], values[i] ?? [], decoder.heads))
    }
    const inner = (y: Matrix): Matrix =>
      linear(
        `${at}.fc2`,
        linear(`${at}.fc1`, y).map((row) => row.map(activation)),
      )
    let y = x
    for (const [name, part] of [
      ['self_attn', self],
      ['encoder_attn', cross],
      ['final', inner],
    ] as const) {
      const of = `${at}.${name}_layer_norm`
      y = preNorm ? sum(y, part(norm(of, y))) : norm(of, sum(y, part(y)))
    }
    return y
  }

  const known = new Map<string, readonly number[]>()
  return (ids) => {
    const found = known.get(ids.join(' '))
    if (found !== undefined) return found
    let x = embed('decoder', [config.startToken, ...ids])
    for (let i = 0; i < decoder.layers; i++) x = layer(i, x)
    if (config.finalNorm) x = norm('model.decoder.layer_norm', x)
    const last = x.at(-1) ?? []
    const logits = Array.from({ length: vocab }, (_, id) =>
      last.reduce((total, value, j) => total + value * (words[id * hidden + j] ?? 0), bias[id] ?? 0),
    )
    known.set(ids.join(' '), logits)
    return logits
  }
}
