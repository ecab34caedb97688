/**
 * Weights of encoder-decoder models, Pegasus, Marian and OpenNMT: their shapes, and the tensors that a checkpoint may omit. Names are
 * without the checkpoint's `model.` prefix.
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

/** True if the weights include a bias of the logits. */
export const hasLogitsBias = (weights: Readonly<Record<string, Weight>>): boolean => Object.hasOwn(weights, logitsBias)

/** Shape of each tensor by the configuration; a checkpoint may omit position tables. */
export function seq2seqShapes(config: Seq2seqConfig): Shapes {
  return {
    ...shapesOf(encoderProgram(config), encoderTensors(config), seq2seqEncoderDims(config, { batch: 1, seq: 1 })),
    ...shapesOf(decoderProgram(config, false, anyGeneration, 1), decoderTensors(config), decoderSizes(config)),
  }
}

/** Names that a checkpoint may use for a tensor. Of tied embeddings it may hold any one. */
function namesOf(name: string, config: Seq2seqConfig): readonly string[] {
  if (config.kind === 'opennmt') return opennmtNames(name)
  const sides = (['encoder', 'decoder'] as const).filter((side) => wordsOf(side, config) === name)
  const copies = sides.map((side) => `${side}.embed_tokens.weight`)
  const head = config.tied && sides.includes('decoder') ? [ownHead] : []
  return [...new Set([name, ...copies, ...head])].flatMap((copy) => [`model.${copy}`, copy])
}

/** Possible names of the encoder's embeddings; every checkpoint has one of them. */
export const embeddingNames = (config: Seq2seqConfig): readonly string[] => namesOf(wordsOf('encoder', config), config)

/**
 * The model's weights by name, converted to `dtype` on reading. Missing position tables are computed; the bias of the logits is included
 * if there is one.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype`, `weights.unknown` naming the tensor, the expected and
 * the found value
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

/** Finds a checkpoint tensor under any of its names. */
type Find = (name: string) => ReturnType<typeof findTensor>

interface Reading {
  readonly config: Seq2seqConfig
  readonly dtype: FloatType
  readonly find: Find
}

/** A tensor of the checkpoint, or its computed replacement. @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` */
function weightOf(name: string, shape: readonly number[], { config, dtype, find }: Reading): DeferredTensor {
  const sides = ['encoder', 'decoder'] as const
  const found = find(name)
  const side = sides.find((each) => positionsOf(each) === name)
  if (found === undefined && side !== undefined) return sinusoids(config, config[side].hidden, dtype)
  const ofOpennmt = config.kind === 'opennmt'
  if (found === undefined && ofOpennmt && hasNoBias(name, find)) return zeros(shape, dtype)
  const isTable = [...sides.map((each) => wordsOf(each, config)), ownHead].includes(name)
  // OpenNMT's position tables have a batch dimension of one.
  const stored = ofOpennmt && side !== undefined ? shape.toSpliced(1, 0, 1) : shape
  return { ...takeTensor(found, name, stored, dtype, { hints: isTable ? tokenRows : undefined }), shape }
}

/** True if a linear layer of OpenNMT has a weight but no bias, which is optional there. */
const hasNoBias = (name: string, find: Find): boolean =>
  /\.(?:\w+_proj|fc\d)\.bias$/.test(name) && find(name.replace(/bias$/, 'weight')) !== undefined

const zeros = (shape: readonly number[], dtype: FloatType): DeferredTensor =>
  computedTensor(dtype, shape, async function* () {
    yield encode(dtype, new Float32Array(shape.reduce((product, extent) => product * extent, 1)))
  })
