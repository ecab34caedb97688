/**
 * Weights of encoder-decoder models, Pegasus, Marian and OpenNMT: their shapes, and what a checkpoint may leave out. Names are without the
 * checkpoint's `model.` prefix.
 */

import { type Checkpoint, expectCount, findTensor, takeTensor, tokenRows } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { encode } from '../../runtime/buffer.js'
import { computedTensor, type DeferredTensor, type Weight } from '../../runtime/weight.js'
import { anyGeneration } from '../decoding/generation_options.js'
import { shapesOf } from '../parts/weight_names.js'
import { expectOnly, opennmtNames } from './opennmt_names.js'
import { decoderProgram, decoderSizes, encoderProgram, seq2seqEncoderDims } from './programs.js'
import type { Seq2seqConfig } from './seq2seq_config.js'
import { sinusoids } from './sinusoids.js'
import { decoderTensors, encoderTensors, logitsBias, ownHead, positionsOf, wordsOf } from './tensor_names.js'

type Shapes = Readonly<Record<string, readonly number[]>>

/** True if the logits of a model have a bias, by its weights. */
export const hasLogitsBias = (weights: Readonly<Record<string, Weight>>): boolean => Object.hasOwn(weights, logitsBias)

/** The shape the configuration gives each tensor; position tables may be left out of a checkpoint. */
export function seq2seqShapes(config: Seq2seqConfig): Shapes {
  return {
    ...shapesOf(encoderProgram(config), encoderTensors(config), seq2seqEncoderDims(config, { batch: 1, seq: 1 })),
    ...shapesOf(decoderProgram(config, false, anyGeneration, 1), decoderTensors(config), decoderSizes(config)),
  }
}

/** Names a checkpoint may have for a tensor. Of tied embeddings it may hold any one. */
function namesOf(name: string, config: Seq2seqConfig): readonly string[] {
  if (config.kind === 'opennmt') return opennmtNames(name)
  const sides = (['encoder', 'decoder'] as const).filter((side) => wordsOf(side, config) === name)
  const copies = sides.map((side) => `${side}.embed_tokens.weight`)
  const head = config.tied && sides.includes('decoder') ? [ownHead] : []
  return [...new Set([name, ...copies, ...head])].flatMap((copy) => [`model.${copy}`, copy])
}

/** Names that the encoder's embeddings may have: every checkpoint has one of them. */
export const embeddingNames = (config: Seq2seqConfig): readonly string[] => namesOf(wordsOf('encoder', config), config)

/**
 * The model's weights by name, in `dtype` when they are read. Position tables that the checkpoint leaves out are computed; the bias of the
 * logits is taken if there is one.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype`, `weights.unknown` naming the tensor, what the configuration expects and what was found
 */
export function seq2seqWeights(config: Seq2seqConfig, file: Checkpoint, dtype: FloatType): Record<string, DeferredTensor> {
  expectCount(file, 'encoder_layers', config.encoder.layers)
  expectCount(file, 'decoder_layers', config.decoder.layers)
  const find: Find = (name) => findTensor(file, namesOf(name, config))
  const weights = Object.fromEntries(
    Object.entries(seq2seqShapes(config)).map(([name, shape]) => [name, weightOf(name, shape, { config, dtype, find })]),
  )
  const ofOpennmt = config.kind === 'opennmt'
  if (ofOpennmt) {
    const names = [...Object.keys(weights), logitsBias, ownHead]
    expectOnly(file, new Set(names.flatMap((name) => namesOf(name, config))))
  }
  const bias = find(logitsBias)
  if (bias !== undefined) {
    const shape = ofOpennmt ? [config.vocab] : [1, config.vocab]
    const taken = takeTensor(bias, logitsBias, shape, dtype, { allowed: 'finite or -Infinity' })
    weights[logitsBias] = { ...taken, shape: [config.vocab] }
  }
  return weights
}

/** Tensor of a checkpoint under any of its names. */
type Find = (name: string) => ReturnType<typeof findTensor>

interface Reading {
  readonly config: Seq2seqConfig
  readonly dtype: FloatType
  readonly find: Find
}

/** A tensor of the checkpoint, or what is computed in its place. @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` */
function weightOf(name: string, shape: readonly number[], { config, dtype, find }: Reading): DeferredTensor {
  const sides = ['encoder', 'decoder'] as const
  const found = find(name)
  const side = sides.find((each) => positionsOf(each) === name)
  if (found === undefined && side !== undefined) return sinusoids(config, config[side].hidden, dtype)
  const ofOpennmt = config.kind === 'opennmt'
  if (found === undefined && ofOpennmt && hasNoBias(name, find)) return zeros(shape, dtype)
  const isTable = [...sides.map((each) => wordsOf(each, config)), ownHead].includes(name)
  // OpenNMT keeps a batch of one in its tables of positions.
  const stored = ofOpennmt && side !== undefined ? shape.toSpliced(1, 0, 1) : shape
  return { ...takeTensor(found, name, stored, dtype, { hints: isTable ? tokenRows : undefined }), shape }
}

/** True if a linear layer of OpenNMT has a weight and no bias, which it may be made without. */
const hasNoBias = (name: string, find: Find): boolean =>
  /\.(?:\w+_proj|fc\d)\.bias$/.test(name) && find(name.replace(/bias$/, 'weight')) !== undefined

const zeros = (shape: readonly number[], dtype: FloatType): DeferredTensor =>
  computedTensor(dtype, shape, async function* () {
    yield encode(dtype, new Float32Array(shape.reduce((product, extent) => product * extent, 1)))
  })
