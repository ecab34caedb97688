/**
 * Files of BERT and its family: which checkpoint tensor is which weight of the program, and which program a configuration is. The weights
 * are checked against the configuration here, before any of them reaches a device.
 */
import { conversions } from '../../../specs/conversions.js'
import { type BertProgram, bert, bertPairs } from '../../../specs/programs/bert.js'
import { type Checkpoint, expectCount, findTensor, takeTensor, tokenRows } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import { compileProgram, type ModelPlan } from '../../program/index.js'
import { type Matrix, type Maxima, matrices, type WeightMaxima } from '../../quant/weight_maxima.js'
import { isPacked, type WiredProgram, wireProgram } from '../../runtime/program_wiring.js'
import { concatenatedRows, type DeferredTensor, type Weight } from '../../runtime/weight.js'
import { type BatchShape, batchDims } from '../parts/token_rows.js'
import { below, belowEach, shapesOf, type TensorNames } from '../parts/weight_names.js'
import type { BertConfig } from './config.js'
import type { EncoderFamily } from './families/family.js'
import { families } from './families/index.js'

const familyOf = ({ family }: BertConfig): EncoderFamily => families[family]

/** The tensor of a matrix of a layer. */
export const matrixTensor = (config: BertConfig, layer: number, matrix: Matrix): string =>
  familyOf(config).layer(layer)[`${matrix}Weight`] ?? ''

/** The magnitudes of weights that become 127, by tensor; none for those that go by their own channels. */
export const weightMaxima = (config: BertConfig, layers: readonly WeightMaxima[] = []): Readonly<Record<string, Maxima>> =>
  Object.fromEntries(
    layers.flatMap((maxima, layer) =>
      matrices.flatMap((matrix) => {
        const given = maxima[matrix]
        return given === undefined ? [] : [[matrixTensor(config, layer, matrix), given] as const]
      }),
    ),
  )

/** Checkpoint names by the program's names of weights. */
export function tensorNames(config: BertConfig): TensorNames {
  const { embeddings, layer, norm = {}, pooler = {}, sequence, tokens, span } = familyOf(config)
  return Object.fromEntries([
    ...below('embeddings', embeddings),
    ...belowEach('layer', config.layers, layer),
    ...below('norm', norm),
    ...below('pooler', pooler),
    ...below('classifier', config.kind === 'sequence-classifier' ? sequence : tokens),
    ...below('span', span),
  ])
}

/** Names of the tensors that activations of a model's layers follow from: those of the encoder alone. */
export const encoderTensors = (config: BertConfig): string[] =>
  Object.entries(tensorNames(config)).flatMap(([weight, tensor]) => (/^(embeddings|layer\d+)\./.test(weight) ? [tensor] : []))

const heads = { 'token-classifier': 'tokens', 'sequence-classifier': 'sequence', 'question-answering': 'span' } as const

/** Which row a sequence has: the mean of its tokens, the first or the last of them, divided by its length or not. */
export interface Pooling {
  readonly head: 'mean' | 'first' | 'last'
  readonly normalize: boolean
}

/** What stands on a configuration's layers: rows of sequences where they are asked for, or what the checkpoint is used as. */
type Top = Pick<BertProgram, 'head' | 'normalize'>

const usualTop = ({ kind }: BertConfig, pooler: boolean): Top => ({
  head: kind === 'encoder' ? (pooler ? 'pooled' : 'states') : heads[kind],
  normalize: false,
})

function settingsUnder(config: BertConfig, top: Top) {
  const { layers, activation, eps, headDim, tokenTypes } = config
  const { norms, pooling } = familyOf(config)
  return { layers, activation, norms, eps, scale: 1 / Math.sqrt(headDim), typed: tokenTypes > 0, pooling, ...top }
}

const programUnder = (config: BertConfig, top: Top, decl: typeof bert | typeof bertPairs = bert): Program =>
  decl.of(settingsUnder(config, top))

/** Settings of a model's program, all from its files. */
export const bertSettings = (config: BertConfig, pooler: boolean) => settingsUnder(config, usualTop(config, pooler))

/** The program of a configuration, as what it is used as. */
export const programOf = (config: BertConfig, pooler: boolean): Program => programUnder(config, usualTop(config, pooler))

/** The same with a mask over pairs of tokens. */
export const pairProgramOf = (config: BertConfig, pooler: boolean): Program =>
  programUnder(config, usualTop(config, pooler), bertPairs)

/** The shape the configuration gives each tensor, by checkpoint name without prefix. */
export const bertShapes = (config: BertConfig, pooler = false): Readonly<Record<string, readonly number[]>> =>
  shapesOf(programOf(config, pooler), tensorNames(config), bertDims(config, { batch: 1, seq: 1 }))

/** Names of a tensor with and without the family's prefix; layer norms of old checkpoints call their weights gamma and beta. */
function namesOf(name: string, { prefix }: EncoderFamily): string[] {
  const old = name.replace(/LayerNorm\.weight$/, 'LayerNorm.gamma').replace(/LayerNorm\.bias$/, 'LayerNorm.beta')
  return [name, `${prefix}${name}`, old, `${prefix}${old}`]
}

/** Names that a checkpoint may have for a tensor or a state. */
export const checkpointNames = (config: BertConfig, name: string): readonly string[] => namesOf(name, familyOf(config))

/** Names that the embeddings of tokens may have: every checkpoint has them. */
export const embeddingNames = (config: BertConfig): readonly string[] => {
  const family = familyOf(config)
  return namesOf(family.embeddings.words ?? '', family).toSorted((a, b) => b.length - a.length)
}

/**
 * The model's weights by checkpoint name without prefix, in `dtype` when they are read. The pooler is taken if the checkpoint has one.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function bertWeights(config: BertConfig, file: Checkpoint, dtype: FloatType): Record<string, DeferredTensor> {
  expectCount(file, 'the number of layers', config.layers)
  const family = familyOf(config)
  const find = (name: string) => findTensor(file, namesOf(name, family))
  const pooler = family.pooler?.weight
  const shapes = bertShapes(config, pooler !== undefined && find(pooler) !== undefined)
  const { firstPosition } = config
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => {
      const hints = name === family.embeddings.words ? tokenRows : undefined
      if (name !== family.embeddings.positions) return [name, takeTensor(find(name), name, shape, dtype, { hints })]
      const [rows = 0, ...rest] = shape
      return [name, concatenatedRows(takeTensor(find(name), name, [firstPosition + rows, ...rest], dtype), firstPosition)]
    }),
  )
}

/** Extents of the dimensions BERT's graphs leave open. */
export const bertDims = (config: BertConfig, shape: BatchShape): Record<string, number> => ({
  ...batchDims(shape),
  h: config.heads,
  d: config.headDim,
  i: config.inner,
  v: config.vocab,
  u: config.tokenTypes,
  p: config.positions,
  c: config.classes,
})

/** Values the caller supplies: i32, `ids` and `typeIds` of batch*seq or, where the embeddings are packed, of the packed rows; `lengths` of batch. */
export const bertInputs = ['ids', 'typeIds', 'lengths'] as const

/** For each layer, the magnitude of each quantised value that becomes 127. */
export type LayerScales = readonly Readonly<Record<string, number>>[]

/** A model under a plan. */
export interface Assembly extends WiredProgram {
  /** True if ids are supplied, and results of tokens returned, in packed rows. */
  readonly packed: { readonly inputs: boolean; readonly outputs: boolean }
}

/**
 * A whole model under a plan. Classifiers yield `logits` and `labels`, of answers `logits` alone; an encoder `states`, and `pooled` if it
 * has a pooler.
 * @param scales what a quantised plan needs
 * @throws usage `plan.model` for a plan without the model's layers, `run.scales` for a quantised plan without scales for each of its values
 */
export const assembleBert = (config: BertConfig, plan: ModelPlan, hasPooler: boolean, scales?: LayerScales): Assembly =>
  assembled(programOf(config, hasPooler), config, plan, scales)

/** The same with a mask over pairs of tokens. @throws like `assembleBert` */
export const assemblePairs = (config: BertConfig, plan: ModelPlan, hasPooler: boolean, scales?: LayerScales): Assembly =>
  assembled(pairProgramOf(config, hasPooler), config, plan, scales)

/** The layers of a model under a plan, whatever it is used as, and one row of each sequence: `embeddings`. @throws like `assembleBert` */
export const assemblePooled = (config: BertConfig, plan: ModelPlan, pooling: Pooling, scales?: LayerScales): Assembly =>
  assembled(programUnder(config, pooling), config, plan, scales)

function assembled(program: Program, config: BertConfig, plan: ModelPlan, scales: LayerScales | undefined): Assembly {
  const { layers } = config
  if (scales !== undefined && scales.length !== layers) {
    throw usageError('run.scales', `there are scales of ${scales.length} layers, the model has ${layers}`)
  }
  const compiled = compileProgram(program, plan, { conversions })
  const sites = new Map(scales?.map((layer, i) => [`layer${i}`, layer]))
  const wired = wireProgram(compiled, { amax: (at, site) => sites.get(at)?.[site], tensors: tensorNames(config) })
  const [first = ''] = wired.outputs
  return { ...wired, packed: { inputs: isPacked(compiled, 'ids'), outputs: isPacked(compiled, first) } }
}

/** True if converted weights hold a pooler. */
export function hasPooler(config: BertConfig, weights: Readonly<Record<string, Weight>>): boolean {
  const { pooler } = familyOf(config)
  return pooler?.weight !== undefined && Object.hasOwn(weights, pooler.weight)
}
