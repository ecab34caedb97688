/** BERT for calibration: unfused, in a float type, one sequence at a time. Also the identity that scales are bound to. */
import { join } from 'node:path'
import { layouts } from '../../../specs/index.js'
import { openModelCheckpoint } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { findPlan } from '../../program/plans.js'
import type { CalibrationModel } from '../../quant/collect.js'
import { type ModelIdentity, modelIdentity } from '../../quant/identity.js'
import { matrices, type WeightMaxima } from '../../quant/weight_maxima.js'
import { decode, encode } from '../../runtime/buffer.js'
import { channelMaxima } from '../../runtime/quantise_weights.js'
import { openSession, type Session } from '../../runtime/session.js'
import { inMemory, type Weight } from '../../runtime/weight.js'
import { batchMask } from '../parts/masks.js'
import type { ModelOptions } from '../parts/options.js'
import {
  assembleBert,
  assemblePairs,
  bertDims,
  bertInputs,
  bertWeights,
  embeddingNames,
  encoderTensors,
  matrixTensor,
} from './bert.js'
import { type BertConfig, readBertConfig } from './config.js'
import { families } from './families/index.js'
import { type TrainedMaxima, trainedMaxima } from './quantiser_states.js'

type Weights = Readonly<Record<string, Weight>>

/** A checkpoint in float32, for the model's identity and for quantising its weights. */
export interface BertCheckpoint {
  readonly config: BertConfig
  readonly identity: ModelIdentity
  weights(dtype: FloatType): Weights
  /** Per layer, the largest magnitude of each output channel: query, key, value, projection, FC1, FC2. */
  weightMaxima(): Promise<Float32Array[][]>
  /** Maxima from quantisation-aware training. @throws usage `calibrate.state` if there are none */
  trainedMaxima(): Promise<TrainedMaxima>
}

/** Identity of a BERT, from its encoder and embeddings, which determine every activation of its layers. Expects float32 weights. */
export function bertIdentity(config: BertConfig, weights: Weights, signal?: AbortSignal): Promise<ModelIdentity> {
  const { layers, hidden, heads, inner } = config
  const deciding = encoderTensors(config).flatMap((name) => {
    const weight = weights[name]
    return weight === undefined ? [] : [[name, weight] as const]
  })
  const norms = families[config.family].norms === 'pre' ? 'pre' : undefined
  return modelIdentity({ layers, hidden, heads, inner, norms }, Object.fromEntries(deciding), signal)
}

/** Opens `config.json` and the weights of a folder. @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*` */
export async function readCheckpoint(dir: string, signal?: AbortSignal): Promise<BertCheckpoint> {
  const config = await readBertConfig(join(dir, 'config.json'))
  const file = await openModelCheckpoint(dir, embeddingNames(config), signal)
  const floats = bertWeights(config, file, 'f32')
  return {
    config,
    identity: await bertIdentity(config, floats, signal),
    weights: (dtype) => (dtype === 'f32' ? floats : bertWeights(config, file, dtype)),
    trainedMaxima: () => trainedMaxima(config, file, signal),
    async weightMaxima() {
      const maxima: Float32Array[][] = []
      for (let layer = 0; layer < config.layers; layer++) {
        const ofLayer: Float32Array[] = []
        for (const name of matrices.map((matrix) => matrixTensor(config, layer, matrix)))
          ofLayer.push(await maximaOf(name, floats[name]))
        maxima.push(ofLayer)
      }
      return maxima
    },
  }
}

/** One magnitude per matrix: the largest of its weights. */
export async function largestWeights(checkpoint: Pick<BertCheckpoint, 'weightMaxima'>): Promise<WeightMaxima[]> {
  const own = await checkpoint.weightMaxima()
  const largest = (maxima: Float32Array = new Float32Array()): number => maxima.reduce((a, b) => Math.max(a, b), 0)
  return own.map((layer) => Object.fromEntries(matrices.map((matrix, i) => [matrix, largest(layer[i])])))
}

/** Channel maxima of a matrix, which is in host memory only while they are computed. */
async function maximaOf(name: string, weight: Weight | undefined): Promise<Float32Array> {
  if (weight === undefined) throw new Error(`internal: there is no tensor ${name}`)
  const { shape, data } = await inMemory(weight)
  const [rows = 0, columns = 0] = shape
  return channelMaxima({ name, values: decode('f32', data), rows, columns })
}

/** Uploads a checkpoint's weights. Release the session when done. @throws what the device rejects with */
export async function openCalibration(
  { config, weights }: BertCheckpoint,
  { device, library, manifest, dtype, masked = false }: CalibrationOptions,
): Promise<CalibrationModel> {
  const session = await openSession({ device, library, manifest, layouts, weights: weights(dtype) })
  return calibrationModel(config, session, dtype, masked)
}

export interface CalibrationOptions extends Pick<ModelOptions, 'device' | 'library' | 'manifest'> {
  readonly dtype: FloatType
  /** True if cases may have masks over pairs of tokens. */
  readonly masked?: boolean
}

/**
 * A BERT whose weights are in a session, for collecting activations.
 * @param masked true for the form of the model that takes a mask over pairs of tokens
 */
export function calibrationModel(config: BertConfig, session: Session, dtype: FloatType, masked = false): CalibrationModel {
  const int32 = (values: readonly number[]): Uint8Array => encode('i32', Int32Array.from(values))
  return {
    session,
    applications: (masked ? assemblePairs : assembleBert)(config, findPlan('unfused'), false).applications,
    layers: Array.from({ length: config.layers }, (_, layer) => `layer${layer}`),
    norms: families[config.family].norms,
    inputs: masked ? [...bertInputs, 'mask'] : bertInputs,
    types: { T: dtype },
    dims: (length) => bertDims(config, { batch: 1, seq: length }),
    feed: ({ inputIds, typeIds = inputIds.map(() => 0), pairs }) => ({
      ids: int32(inputIds),
      typeIds: int32(typeIds),
      lengths: int32([inputIds.length]),
      ...(masked ? { mask: batchMask([{ item: { inputIds }, pairs }], inputIds.length) } : {}),
    }),
  }
}
