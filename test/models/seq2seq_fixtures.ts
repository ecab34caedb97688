/** Fixtures of the encoder-decoder tests: the number-words model, small random models, and encoders run on the CPU device. */
import { rm } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { layouts } from '../../specs/index.js'
import { memoryStates } from '../../specs/programs/seq2seq_encoder.js'
import type { FloatType } from '../../src/checkpoint/convert.js'
import type { Safetensors, StoredTensor } from '../../src/checkpoint/safetensors.js'
import type { EncoderOptions } from '../../src/models/encoder/encoder_pipeline.js'
import { firstRows, idRows } from '../../src/models/parts/token_rows.js'
import { assembleSeq2seqEncoder, seq2seqEncoderDims } from '../../src/models/seq2seq/programs.js'
import { parseSeq2seqConfig, type Seq2seqConfig } from '../../src/models/seq2seq/seq2seq_config.js'
import { loadSeq2seq, type Seq2seq } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { seq2seqShapes, seq2seqWeights } from '../../src/models/seq2seq/seq2seq_weights.js'
import { findPlan } from '../../src/program/plans.js'
import { decode } from '../../src/runtime/buffer.js'
import { packedRows } from '../../src/runtime/packed_rows.js'
import { prepareWeights } from '../../src/runtime/prepare_weights.js'
import { buildProgram, type Program } from '../../src/runtime/program.js'
import { isPacked } from '../../src/runtime/program_wiring.js'
import { openSession } from '../../src/runtime/session.js'
import { noise, writeModel } from './fixtures.js'
import type { EncodedSource } from './seq2seq_reference.js'

export const numberWords = fileURLToPath(new URL('../data/models/number-words', import.meta.url))

/** A configuration of number-words' kind, small. */
export const smallPegasus = {
  model_type: 'pegasus',
  architectures: ['PegasusForConditionalGeneration'],
  vocab_size: 50,
  d_model: 128,
  encoder_layers: 2,
  decoder_layers: 1,
  encoder_attention_heads: 2,
  decoder_attention_heads: 2,
  encoder_ffn_dim: 96,
  decoder_ffn_dim: 72,
  max_position_embeddings: 40,
  activation_function: 'relu',
  scale_embedding: true,
}

/** A Marian: post-LN, no position tables in the checkpoint, heads of 24, and more of them in the encoder than in the decoder. */
export const smallMarian = {
  ...smallPegasus,
  model_type: 'marian',
  architectures: ['MarianMTModel'],
  d_model: 96,
  encoder_attention_heads: 4,
  activation_function: 'swish',
  decoder_start_token_id: 49,
  pad_token_id: 49,
}

export interface RandomSeq2seq {
  readonly config: Seq2seqConfig
  readonly file: Safetensors
}

/** A model with random weights under a checkpoint's names. Norms are centred on 1, scaled embeddings have the size of positions. */
export function randomSeq2seq(json: Readonly<Record<string, unknown>>): RandomSeq2seq {
  const config = parseSeq2seqConfig(json, 'config.json')
  const next = noise(2)
  const tensor = (shape: readonly number[], centre: number, spread: number): StoredTensor => {
    const values = Float32Array.from({ length: shape.reduce((product, n) => product * n, 1) }, () => centre + spread * next())
    return { dtype: 'F32', shape, data: new Uint8Array(values.buffer) }
  }
  const tensors = new Map(
    Object.entries(seq2seqShapes(config)).map(([name, shape]): [string, StoredTensor] => {
      const words = /^(shared|(en|de)coder\.embed_tokens)\.weight$/.test(name)
      const spread = words
        ? 1 / (name.startsWith('encoder') ? config.encoder : config.decoder).embedScale
        : shape.length === 2
          ? 2 / Math.sqrt(shape[1] ?? 1)
          : 0.1
      return [`model.${name}`, tensor(shape, name.endsWith('layer_norm.weight') ? 1 : 0, spread)]
    }),
  )
  tensors.set('final_logits_bias', tensor([1, config.vocab], 0, 0.1))
  return { config, file: { tensors, metadata: {} } }
}

/** A model whose decoder reads and writes little. */
export const tinyPegasus = {
  ...smallPegasus,
  d_model: 32,
  encoder_layers: 1,
  encoder_ffn_dim: 32,
  decoder_ffn_dim: 32,
}

/** Its encoder, whose states the decoder attends to, is wider than the decoder, and embeds tokens itself. */
export const widePegasus = {
  ...tinyPegasus,
  cross_attention_hidden_size: 48,
  encoder_attention_heads: 3,
  share_encoder_decoder_embeddings: false,
}

/** The same as a Marian: post-LN, and a separate start token. */
export const tinyMarian = {
  ...tinyPegasus,
  model_type: 'marian',
  architectures: ['MarianMTModel'],
  activation_function: 'swish',
  decoder_start_token_id: 49,
  pad_token_id: 49,
}

/** Loads a model folder, or a random model of a configuration, for as long as it is used. */
export async function withSeq2seq<T>(
  opened: Pick<EncoderOptions, 'device' | 'library' | 'manifest'>,
  model: string | Readonly<Record<string, unknown>>,
  options: { readonly plan?: string; readonly dtype?: FloatType },
  use: (model: Seq2seq) => Promise<T>,
): Promise<T> {
  const folder = typeof model === 'string' ? model : await writeModel({ json: model, tensors: randomSeq2seq(model).file.tensors })
  try {
    const loaded = await loadSeq2seq(folder, { ...opened, ...options })
    try {
      return await use(loaded)
    } finally {
      loaded.release()
    }
  } finally {
    if (typeof model !== 'string') await rm(folder, { recursive: true })
  }
}

/** Encoder outputs per source, without padding, and the number of steps. */
export interface EncoderRun {
  readonly sources: readonly EncodedSource[]
  readonly steps: Program['steps']
}

/** Runs the encoder of a model over a batch of sources, padded to `seq`. */
export async function runEncoder(
  opened: Pick<EncoderOptions, 'device' | 'library' | 'manifest'>,
  { config, file }: RandomSeq2seq,
  { plan, dtype, seq }: { readonly plan: string; readonly dtype: FloatType; readonly seq: number },
  sequences: readonly (readonly number[])[],
): Promise<EncoderRun> {
  const { compiled, wired } = assembleSeq2seqEncoder(config, findPlan(plan, opened.manifest.plans))
  const weights = prepareWeights(wired.applications, seq2seqWeights(config, file, dtype))
  const session = await openSession({ ...opened, layouts, weights })
  try {
    const lengths = sequences.map(({ length }) => length)
    const tokens = packedRows(lengths, seq)
    const batch = sequences.length
    const dims = seq2seqEncoderDims(config, { batch, seq, tokens })
    /** Value of a state after a run, as a result. */
    const next = (state: string): string => compiled.states[state]?.next ?? ''
    const wanted = [...wired.outputs, ...Object.keys(compiled.states).map(next)]
    const program = await buildProgram({ session, ...wired, outputs: wanted, dims, types: { T: dtype } })
    const packed = isPacked(compiled, 'ids')
    const ids = idRows(sequences, { seq, rows: packed ? tokens : batch * seq, packed, filler: config.padToken })
    const bytes = (values: Int32Array): Uint8Array => new Uint8Array(values.buffer)
    const outputs = await program.run({ ids: bytes(ids), lengths: bytes(Int32Array.from(lengths)) })
    const { steps } = program
    program.release()

    const values = (name: string) => Array.from(decode(dtype, outputs[name] ?? new Uint8Array()))
    const { heads, headDim, layers } = config.decoder
    /** Rows of tokens from values stored head by head. */
    const joined = (state: string, b: number, length: number): number[][] => {
      const all = values(next(state))
      const at = (s: number, h: number): number => ((b * heads + h) * seq + s) * headDim
      return Array.from({ length }, (_, s) =>
        Array.from({ length: heads }, (_, h) => all.slice(at(s, h), at(s, h) + headDim)).flat(),
      )
    }
    const memory = values('memory')
    const first = firstRows(lengths, seq, isPacked(compiled, 'memory'))
    const sources = lengths.map((length, b) => ({
      memory: Array.from({ length }, (_, s) => {
        const row = (first[b] ?? 0) + s
        return memory.slice(row * config.encoder.hidden, (row + 1) * config.encoder.hidden)
      }),
      keys: Array.from({ length: layers }, (_, i) => joined(memoryStates(i).keys, b, length)),
      values: Array.from({ length: layers }, (_, i) => joined(memoryStates(i).values, b, length)),
    }))
    return { sources, steps }
  } finally {
    session.release()
  }
}
