/**
 * Weights of encoder-decoder models, Pegasus and Marian: their shapes, and what a checkpoint may leave out. Names are without the
 * checkpoint's `model.` prefix.
 */

import { type Checkpoint, expectCount, findTensor, takeTensor, tokenRows } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { decode, encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor, inMemory, type Weight } from '../../runtime/weight.js'
import { anyGeneration } from '../decoding/generation_options.js'
import { shapesOf } from '../parts/weight_names.js'
import { decoderProgram, decoderSizes, encoderProgram, seq2seqEncoderDims } from './programs.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import { decoderTensors, encoderTensors, logitsBias, ownHead, positionsOf, wordsOf } from './tensor_names.js'

type Shapes = Readonly<Record<string, readonly number[]>>

/** Whether the logits of a model have a bias, by its weights. */
export const hasLogitsBias = (weights: Readonly<Record<string, Weight>>): boolean => Object.hasOwn(weights, logitsBias)

/** The shape the configuration gives each tensor; position tables may be left out of a checkpoint. */
export function seq2seqShapes(config: Seq2seqConfig): Shapes {
  return {
    ...shapesOf(encoderProgram(config), encoderTensors(config), seq2seqEncoderDims(config, { batch: 1, seq: 1 })),
    ...shapesOf(decoderProgram(config, false, anyGeneration, 1), decoderTensors(config), decoderSizes(config)),
  }
}

/** Names a checkpoint may have for a tensor. Of tied embeddings it may hold any one. */
function namesOf(name: string, config: Seq2seqConfig): string[] {
  const sides = (['encoder', 'decoder'] as const).filter((side) => wordsOf(side, config) === name)
  const copies = sides.map((side) => `${side}.embed_tokens.weight`)
  const head = config.tied && sides.includes('decoder') ? [ownHead] : []
  return [...new Set([name, ...copies, ...head])].flatMap((copy) => [`model.${copy}`, copy])
}

/** Names that the encoder's embeddings may have: every checkpoint has one of them. */
export const embeddingNames = (config: Seq2seqConfig): readonly string[] => namesOf(wordsOf('encoder', config), config)

/**
 * The model's weights by name, in `dtype` when they are read. Position tables that the checkpoint leaves out are computed; the bias of the
 * logits is taken if there is one, and rules out the tokens that the configuration does.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function seq2seqWeights(config: Seq2seqConfig, file: Checkpoint, dtype: FloatType): Record<string, DeferredTensor> {
  expectCount(file, 'encoder_layers', config.encoder.layers)
  expectCount(file, 'decoder_layers', config.decoder.layers)
  const find = (name: string) => findTensor(file, namesOf(name, config))
  const weights: Record<string, DeferredTensor> = {}
  const sides = ['encoder', 'decoder'] as const
  const tables = [...sides.map((side) => wordsOf(side, config)), ownHead]
  for (const [name, shape] of Object.entries(seq2seqShapes(config))) {
    const found = find(name)
    const side = found === undefined ? sides.find((each) => positionsOf(each) === name) : undefined
    weights[name] =
      side === undefined
        ? takeTensor(found, name, shape, dtype, { hints: tables.includes(name) ? tokenRows : undefined })
        : sinusoids({ positions: config.positions, hidden: config[side].hidden }, dtype)
  }
  const bias = find(logitsBias)
  if (bias !== undefined) {
    const taken = takeTensor(bias, logitsBias, [1, config.vocab], dtype, { allowed: 'finite or -Infinity' })
    weights[logitsBias] = { ...taken, shape: [config.vocab] }
  }
  if (config.badTokens.length > 0) weights[logitsBias] = withoutTokens(config, weights[logitsBias], dtype)
  return weights
}

/** The bias of the logits, by which tokens that a result never has get no probability. */
function withoutTokens({ vocab, badTokens }: Seq2seqConfig, bias: DeferredTensor | undefined, dtype: FloatType): DeferredTensor {
  return computedTensor(dtype, [vocab], async function* (signal) {
    const values =
      bias === undefined ? new Float32Array(vocab) : Float32Array.from(decode(dtype, (await inMemory(bias, signal)).data))
    for (const token of badTokens) values[token] = Number.NEGATIVE_INFINITY
    yield encode(dtype, values)
  })
}

/** Rows of a table that is computed at most: nothing in a checkpoint holds the count of positions against a table that it leaves out. */
const mostPositions = 2 ** 17

/**
 * Sines and cosines of the position times 10000^(-2k/hidden) (Vaswani et al. 2017), as HF lays them out: a row holds the sines for every
 * k, one more of them where `hidden` is odd, and then the cosines.
 * @throws usage `config.count` for more positions than any model has
 */
function sinusoids(
  { positions, hidden }: { readonly positions: number; readonly hidden: number },
  dtype: FloatType,
): DeferredTensor {
  if (positions > mostPositions) {
    throw usageError('config.count', `max_position_embeddings is ${positions}, and the checkpoint has no table of positions`, {
      hint: `tables of at most ${mostPositions} positions are computed`,
    })
  }
  const sines = Math.ceil(hidden / 2)
  const value = (position: number, column: number): number => {
    const k = column < sines ? column : column - sines
    const angle = position / 10_000 ** ((2 * k) / hidden)
    return column < sines ? Math.sin(angle) : Math.cos(angle)
  }
  return computedTensor(dtype, [positions, hidden], async function* (signal) {
    for (let first = 0; first < positions; first += rowsAtOnce) {
      signal?.throwIfAborted()
      const length = Math.min(rowsAtOnce, positions - first) * hidden
      const values = Float32Array.from({ length }, (_, i) => value(first + Math.floor(i / hidden), i % hidden))
      yield encode(dtype, values)
    }
  })
}

/** Rows of a computed table that are made between two looks at whether loading was cancelled. */
const rowsAtOnce = 512
