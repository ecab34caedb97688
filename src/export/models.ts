/**
 * Model folders as input of an export: the program of a configuration, its sizes, and its weights by the program's names. Values that a pipeline
 * computes on the host, such as rotation tables and int8 weights, are among the weights.
 */
import { join } from 'node:path'
import { openModelCheckpoint } from '../checkpoint/checkpoint.js'
import type { FloatType } from '../checkpoint/convert.js'
import { usageError } from '../errors.js'
import type { Program } from '../ir/program.js'
import {
  bertDims,
  programOf as bertProgram,
  bertSettings,
  bertWeights,
  embeddingNames,
  hasPooler,
  pairProgramOf,
  tensorNames,
  weightMaxima,
} from '../models/encoder/bert.js'
import { bertIdentity } from '../models/encoder/calibration.js'
import { readBertConfig } from '../models/encoder/config.js'
import { expectOneRotation } from '../models/llama/generator.js'
import { openLlamaFiles } from '../models/llama/open_files.js'
import { llamaProgram, modelDims } from '../models/llama/programs.js'
import { llamaInt8, llamaWeights, type RopeRange, usualRotation, weightTensors } from '../models/llama/weights.js'
import { type Given, type ModelProgram, openSettings, settingsOf } from '../models/parts/open_settings.js'
import { decoderSizes, modelEncoderDims, type Seq2seqName, seq2seqProgram } from '../models/seq2seq/programs.js'
import { readSeq2seqConfig } from '../models/seq2seq/seq2seq_config.js'
import { hasLogitsBias, embeddingNames as seq2seqEmbeddings, seq2seqWeights } from '../models/seq2seq/seq2seq_weights.js'
import { decoderTensors, encoderTensors } from '../models/seq2seq/tensor_names.js'
import { readScales } from '../quant/index.js'
import type { Layouts } from '../runtime/layouts.js'
import { type KnownInt8, prepareWeights } from '../runtime/prepare_weights.js'
import type { AmaxLookup } from '../runtime/program_wiring.js'
import type { Int8Tensor, Weight } from '../runtime/weight.js'
import type { LowerOptions } from './lower.js'
import { compiledUnder, type ResolveOptions } from './resolve.js'

interface ModelFiles {
  readonly program: Program
  /** Sizes from the configuration. */
  readonly dims: Readonly<Record<string, number>>
  readonly weights: Readonly<Record<string, Weight>>
  /** The weights in float32, for values that are computed from exact numbers. */
  readonly exact: Readonly<Record<string, Weight>>
  readonly stored: Readonly<Record<string, Int8Tensor>>
  /** Weight maxima of the scales file. */
  readonly maxima?: KnownInt8['maxima']
  /** Activation maxima of the scales file. */
  readonly amax?: AmaxLookup
}

export interface ModelOptions extends Omit<ResolveOptions, 'dtype'> {
  readonly dtype: FloatType
  /** A file of `heddle calibrate`, for a plan that needs scales. */
  readonly scales?: string | undefined
}

type SingleProgram = Exclude<ModelProgram, 'llama' | 'seq2seq'>

const isModelProgram = (name: string): name is SingleProgram =>
  Object.hasOwn(openSettings, name) && name !== 'llama' && name !== 'seq2seq'

export interface ExportedModel extends Pick<LowerOptions, 'compiled' | 'wired' | 'dims'> {
  /** The weights, prepared for a plan, by the names of the exported program. */
  prepared(layouts: Layouts): Readonly<Record<string, Weight>>
}

/** @throws usage `export.model`, `export.config`, `export.scales` for another program, `scales.*` for another model's; what reading the folder throws */
export async function exportModel(
  name: string,
  folder: string,
  options: ModelOptions,
  signal?: AbortSignal,
): Promise<ExportedModel> {
  const { program, dims, weights, exact, stored, maxima, amax } = await filesOf(name, folder, options, signal)
  const { compiled, wired } = compiledUnder(program, options, { amax })
  const prepared = (layouts: Layouts) => prepareWeights(wired.applications, weights, layouts, exact, { stored, maxima })
  return { compiled, wired, dims, prepared }
}

async function filesOf(
  name: string,
  folder: string,
  { dtype, scales, config = {} }: ModelOptions,
  signal: AbortSignal | undefined,
): Promise<ModelFiles> {
  if (!isModelProgram(name))
    throw usageError('export.model', `expected a program of a model for --model, got ${name}`, {
      hint: `programs of models: ${Object.keys(openSettings).join(', ')}`,
    })
  if (name === 'bert' || name === 'bert_pairs') return bertModel(name, folder, dtype, { scales, given: config }, signal)
  if (scales !== undefined)
    throw usageError('export.scales', `expected a quantised encoder for --scales, got ${name}`, {
      hint: 'its plans quantise rows at run time: omit --scales',
    })
  return name === 'seq2seq_encoder' || name === 'seq2seq_encoder_pairs' || name === 'seq2seq_decoder'
    ? seq2seqModel(name, folder, dtype, config, signal)
    : llamaModel(name, folder, dtype, config, signal)
}

/** Weights by the program's names. */
const renamed = <T>(weights: Readonly<Record<string, T>>, names: Readonly<Record<string, string>>): Record<string, T> =>
  Object.fromEntries(
    Object.entries(names).flatMap(([weight, tensor]) => {
      const found = weights[tensor]
      return found === undefined ? [] : [[weight, found]]
    }),
  )

async function bertModel(
  name: 'bert' | 'bert_pairs',
  folder: string,
  dtype: FloatType,
  { scales, given }: { readonly scales: string | undefined; readonly given: Given },
  signal: AbortSignal | undefined,
): Promise<ModelFiles> {
  const config = await readBertConfig(join(folder, 'config.json'))
  const file = await openModelCheckpoint(folder, embeddingNames(config), signal)
  const weights = bertWeights(config, file, dtype)
  const exact = dtype === 'f32' ? weights : bertWeights(config, file, 'f32')
  const pooler = hasPooler(config, weights)
  settingsOf(name, given, bertSettings(config, pooler))
  const found = scales === undefined ? undefined : await readScales(scales, await bertIdentity(config, exact, signal))
  const sites = new Map(found?.layers.map((layer, i): [string, Readonly<Record<string, number>>] => [`layer${i}`, layer]))
  const names = tensorNames(config)
  const { b: _, s: __, t: ___, ...dims } = bertDims(config, { batch: 1, seq: 1 })
  return {
    program: name === 'bert' ? bertProgram(config, pooler) : pairProgramOf(config, pooler),
    dims: Object.fromEntries(Object.entries(dims).filter(([, size]) => size > 0)),
    weights: renamed(weights, names),
    exact: renamed(exact, names),
    stored: {},
    maxima: renamed(weightMaxima(config, found?.weights), names),
    amax: (at, site) => sites.get(at)?.[site],
  }
}

/** Rotation tables of a longrope model: those of short texts. */
const ropeRange: RopeRange = 'short'

async function llamaModel(
  name: 'llama_step' | 'llama_beams' | 'llama_prompt',
  folder: string,
  dtype: FloatType,
  given: Given,
  signal: AbortSignal | undefined,
): Promise<ModelFiles> {
  const { config, checkpoint } = await openLlamaFiles(folder, signal)
  expectOneRotation(config)
  const names = weightTensors(config, ropeRange)
  const weights = llamaWeights(config, checkpoint, dtype, usualRotation)
  return {
    program: llamaProgram(name, config, given),
    dims: modelDims(config),
    weights: renamed(weights, names),
    exact: renamed(dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', usualRotation), names),
    stored: renamed(llamaInt8(config, checkpoint), names),
  }
}

async function seq2seqModel(
  name: Seq2seqName,
  folder: string,
  dtype: FloatType,
  given: Given,
  signal: AbortSignal | undefined,
): Promise<ModelFiles> {
  const config = await readSeq2seqConfig(folder)
  const file = await openModelCheckpoint(folder, seq2seqEmbeddings(config), signal)
  const weights = seq2seqWeights(config, file, dtype)
  const exact = dtype === 'f32' ? weights : seq2seqWeights(config, file, 'f32')
  const names = name === 'seq2seq_decoder' ? decoderTensors(config) : encoderTensors(config)
  return {
    program: seq2seqProgram(name, config, hasLogitsBias(weights), given),
    dims: name === 'seq2seq_decoder' ? decoderSizes(config) : modelEncoderDims(config),
    weights: renamed(weights, names),
    exact: renamed(exact, names),
    stored: {},
  }
}
