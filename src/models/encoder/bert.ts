/**
 * Files of BERT and its family: the mapping from checkpoint tensors to program weights, and from configurations to programs. The weights
 * are checked against the configuration here, before any of them reaches a device.
 */
import { conversions } from '../../../specs/conversions.js'
import { type BertProgram, bert, bertAdded, bertPairs } from '../../../specs/programs/bert.js'
import { type Checkpoint, expectCount, findTensor, takeTensor, tokenRows } from '../../checkpoint/checkpoint.js'
import type { FloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import { compileProgram, type ModelPlan } from '../../program/index.js'
import { type Matrix, type Maxima, matrices, type WeightMaxima } from '../../quant/weight_maxima.js'
import { isPacked, type WiredProgram, wireProgram } from '../../runtime/program_wiring.js'
import { type DeferredTensor, type Weight, withoutFirstRows } from '../../runtime/weight.js'
import { type BatchShape, batchDims } from '../parts/token_rows.js'
import { below, belowEach, shapesOf, type TensorNames } from '../parts/weight_names.js'
import type { BertConfig } from './config.js'
import type { EncoderFamily } from './families/family.js'
import { families } from './families/index.js'

const familyOf = ({ family }: BertConfig): EncoderFamily => families[family]

/** Tensor name of a layer's matrix. */
export const matrixTensor = (config: BertConfig, layer: number, matrix: Matrix): string =>
  familyOf(config).layer(layer)[`${matrix}Weight`] ?? ''

/** Magnitudes of weights that map to 127, by tensor; absent for matrices scaled by their own channels. */
export const weightMaxima = (config: BertConfig, layers: readonly WeightMaxima[] = []): Readonly<Record<string, Maxima>> =>
  Object.fromEntries(
    layers.flatMap((maxima, layer) =>
      matrices.flatMap((matrix) => {
        const given = maxima[matrix]
        return given === undefined ? [] : [[matrixTensor(config, layer, matrix), given] as const]
      }),
    ),
  )

/** Checkpoint tensor names, by the program's weight names. */
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

/** Names of the tensors that determine the layers' activations: those of the encoder, without heads. */
export const encoderTensors = (config: BertConfig): string[] =>
  Object.entries(tensorNames(config)).flatMap(([weight, tensor]) => (/^(embeddings|layer\d+)\./.test(weight) ? [tensor] : []))

const heads = { 'token-classifier': 'tokens', 'sequence-classifier': 'sequence', 'question-answering': 'span' } as const

/** Pooling of a sequence to one row: the mean of its tokens, or the first or last of them, optionally normalised to length one. */
export interface Pooling {
  readonly head: 'mean' | 'first' | 'last'
  readonly normalize: boolean
}

/** Top of the network: pooled rows if requested, otherwise the head of the checkpoint's task. */
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

/** Arithmetic of FasterTransformer's masks: a number that is added to scores of removed pairs, and one to the denominator of the softmax. */
export interface Masking {
  readonly maskValue: number
  readonly softmaxEps: number
}

const programUnder = (config: BertConfig, top: Top, decl: typeof bert | typeof bertPairs = bert): Program =>
  decl.of(settingsUnder(config, top))

/** Settings of a model's program, all from its files. */
export const bertSettings = (config: BertConfig, pooler: boolean) => settingsUnder(config, usualTop(config, pooler))

/** Program of a configuration, with the head of its task. */
export const programOf = (config: BertConfig, pooler: boolean): Program => programUnder(config, usualTop(config, pooler))

/** The program with FasterTransformer's arithmetic. @throws usage `run.masking` for a model whose norms precede attention */
function addedProgram(config: BertConfig, top: Top, masking: Masking): Program {
  const { norms, ...settings } = settingsUnder(config, top)
  if (norms === 'post') return bertAdded.of({ ...settings, ...masking })
  throw usageError(
    'run.masking',
    `FasterTransformer's arithmetic of masks is that of layers with norms after attention, not of ${config.family}`,
    {
      hint: 'omit maskValue and softmaxEps',
    },
  )
}

/** The same program with an attention mask over pairs of tokens. */
export const pairProgramOf = (config: BertConfig, pooler: boolean): Program =>
  programUnder(config, usualTop(config, pooler), bertPairs)

/** Shape of each tensor by the configuration, by checkpoint name without prefix. */
export const bertShapes = (config: BertConfig, pooler = false): Readonly<Record<string, readonly number[]>> =>
  shapesOf(programOf(config, pooler), tensorNames(config), bertDims(config, { batch: 1, seq: 1 }))

/** Names of a tensor with and without the family's prefix; old checkpoints name layer-norm weights gamma and beta. */
function namesOf(name: string, { prefix }: EncoderFamily): string[] {
  const old = name.replace(/LayerNorm\.weight$/, 'LayerNorm.gamma').replace(/LayerNorm\.bias$/, 'LayerNorm.beta')
  return [name, `${prefix}${name}`, old, `${prefix}${old}`]
}

/** Names that a checkpoint may use for a tensor or state. */
export const checkpointNames = (config: BertConfig, name: string): readonly string[] => namesOf(name, familyOf(config))

/** Possible names of the token embeddings, which every checkpoint has. */
export const embeddingNames = (config: BertConfig): readonly string[] => {
  const family = familyOf(config)
  return namesOf(family.embeddings.words ?? '', family).toSorted((a, b) => b.length - a.length)
}

/**
 * The model's weights by checkpoint name without prefix, converted to `dtype` on reading. Includes the pooler if the checkpoint has one.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, the expected and the found value
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
      return [name, withoutFirstRows(takeTensor(find(name), name, [firstPosition + rows, ...rest], dtype), firstPosition)]
    }),
  )
}

/** Extents of the open dimensions of BERT's graphs. */
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

/** Inputs, all i32: `ids` and `typeIds` of batch*seq or, if the embeddings are packed, of the packed rows; `lengths` of batch. */
export const bertInputs = ['ids', 'typeIds', 'lengths'] as const

/** Per layer, the magnitude of each quantised value that maps to 127. */
export type LayerScales = readonly Readonly<Record<string, number>>[]

/** A model compiled under a plan. */
export interface Assembly extends WiredProgram {
  /** True if ids are supplied, and per-token results returned, in packed rows. */
  readonly packed: { readonly inputs: boolean; readonly outputs: boolean }
}

/**
 * A whole model under a plan. Classifiers yield `logits` and `labels`, question answering `logits` alone; an encoder yields `states`, and
 * `pooled` if it has a pooler.
 * @param scales needed by a quantised plan
 * @throws usage `plan.model` for a plan without the model's layers, `run.scales` for a quantised plan without scales for each of its values
 */
export const assembleBert = (config: BertConfig, plan: ModelPlan, hasPooler: boolean, scales?: LayerScales): Assembly =>
  assembled(programOf(config, hasPooler), config, plan, scales)

/** The same model with an attention mask over pairs of tokens. @throws like `assembleBert`; usage `run.masking` */
export const assemblePairs = (
  config: BertConfig,
  plan: ModelPlan,
  hasPooler: boolean,
  scales?: LayerScales,
  masking?: Masking,
): Assembly =>
  assembled(
    masking === undefined ? pairProgramOf(config, hasPooler) : addedProgram(config, usualTop(config, hasPooler), masking),
    config,
    plan,
    scales,
  )

/** A model's layers under a plan, without its task's head, pooled to one row per sequence: `embeddings`. @param masked: with a mask over pairs. @throws like `assembleBert` */
export const assemblePooled = (
  config: BertConfig,
  plan: ModelPlan,
  { masked = false, masking, ...pooling }: Pooling & { readonly masked?: boolean; readonly masking?: Masking | undefined },
  scales?: LayerScales,
): Assembly =>
  assembled(
    masking === undefined ? programUnder(config, pooling, masked ? bertPairs : bert) : addedProgram(config, pooling, masking),
    config,
    plan,
    scales,
  )

function assembled(program: Program, config: BertConfig, plan: ModelPlan, scales: LayerScales | undefined): Assembly {
  const { layers } = config
  if (scales !== undefined && scales.length !== layers) {
    throw usageError('run.scales', `got scales of ${scales.length} layers, expected ${layers}`)
  }
  const compiled = compileProgram(program, plan, { conversions })
  const sites = new Map(scales?.map((layer, i) => [`layer${i}`, layer]))
  const wired = wireProgram(compiled, { amax: (at, site) => sites.get(at)?.[site], tensors: tensorNames(config) })
  const [first = ''] = wired.outputs
  return { ...wired, packed: { inputs: isPacked(compiled, 'ids'), outputs: isPacked(compiled, first) } }
}

/** True if the weights include a pooler. */
export function hasPooler(config: BertConfig, weights: Readonly<Record<string, Weight>>): boolean {
  const { pooler } = familyOf(config)
  return pooler?.weight !== undefined && Object.hasOwn(weights, pooler.weight)
}
