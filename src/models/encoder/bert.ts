/**
 * BERT's files: which checkpoint tensor is which weight of the program, and which program a configuration is. The weights are checked
 * against the configuration here, before any of them reaches a device.
 */
import { conversions } from '../../../specs/conversions.js'
import { bert } from '../../../specs/programs/bert.js'
import { usageError } from '../../errors.js'
import type { Program } from '../../ir/program.js'
import { compileProgram, type ModelPlan } from '../../program/index.js'
import { isPacked, tensorOf, type WiredProgram, wireProgram } from '../../runtime/program_wiring.js'
import type { DeferredTensor, Weight } from '../../runtime/weight.js'
import { type Checkpoint, expectCount, findTensor, takeTensor } from '../files/checkpoint.js'
import type { BertConfig } from '../files/config.js'
import type { FloatType } from '../files/convert.js'

/** Checkpoint names of each graph's weights, without the `bert.` prefix. */
const embeddingNames = {
  words: 'embeddings.word_embeddings.weight',
  types: 'embeddings.token_type_embeddings.weight',
  positions: 'embeddings.position_embeddings.weight',
  gamma: 'embeddings.LayerNorm.weight',
  beta: 'embeddings.LayerNorm.bias',
}

const layerNames = (layer: number) => {
  const at = `encoder.layer.${layer}`
  return {
    queryWeight: `${at}.attention.self.query.weight`,
    queryBias: `${at}.attention.self.query.bias`,
    keyWeight: `${at}.attention.self.key.weight`,
    keyBias: `${at}.attention.self.key.bias`,
    valueWeight: `${at}.attention.self.value.weight`,
    valueBias: `${at}.attention.self.value.bias`,
    projectionWeight: `${at}.attention.output.dense.weight`,
    projectionBias: `${at}.attention.output.dense.bias`,
    attentionGamma: `${at}.attention.output.LayerNorm.weight`,
    attentionBeta: `${at}.attention.output.LayerNorm.bias`,
    fc1Weight: `${at}.intermediate.dense.weight`,
    fc1Bias: `${at}.intermediate.dense.bias`,
    fc2Weight: `${at}.output.dense.weight`,
    fc2Bias: `${at}.output.dense.bias`,
    outputGamma: `${at}.output.LayerNorm.weight`,
    outputBeta: `${at}.output.LayerNorm.bias`,
  }
}

/** Tensors of a layer's matmuls by the weights in them: query, key, value, projection, FC1, FC2. */
export function layerMatrices(layer: number): string[] {
  const names = layerNames(layer)
  return [names.queryWeight, names.keyWeight, names.valueWeight, names.projectionWeight, names.fc1Weight, names.fc2Weight]
}

const poolerNames = { weight: 'pooler.dense.weight', bias: 'pooler.dense.bias' }
const classifierNames = { weight: 'classifier.weight', bias: 'classifier.bias' }

/** Checkpoint names by the program's names of weights. */
const tensorNames = ({ layers }: BertConfig): Readonly<Record<string, string>> =>
  Object.fromEntries([
    ...below('embeddings', embeddingNames),
    ...Array.from({ length: layers }, (_, layer) => below(`layer${layer}`, layerNames(layer))).flat(),
    ...below('pooler', poolerNames),
    ...below('classifier', classifierNames),
  ])

const below = (prefix: string, names: Readonly<Record<string, string>>): [string, string][] =>
  Object.entries(names).map(([weight, tensor]) => [`${prefix}.${weight}`, tensor])

/** The program of a configuration. */
function programOf({ kind, layers, activation, eps, headDim }: BertConfig, pooler: boolean): Program {
  const head = kind === 'token-classifier' ? 'tokens' : pooler ? 'pooled' : 'states'
  return bert.of({ layers, activation, eps, scale: 1 / Math.sqrt(headDim), head })
}

/** The shape the configuration gives each tensor, by checkpoint name without prefix. */
export function bertShapes(config: BertConfig, pooler = false): Readonly<Record<string, readonly number[]>> {
  const names = tensorNames(config)
  const sizes = bertDims(config, { batch: 1, seq: 1 })
  return Object.fromEntries(
    Object.entries(programOf(config, pooler).weights).map(([weight, value]) => [
      names[weight] ?? weight,
      tensorOf(value, weight, sizes, { T: 'f32' }).shape,
    ]),
  )
}

/** Names of a tensor with and without the `bert.` prefix; layer norms of old checkpoints call their weights gamma and beta. */
function namesOf(name: string): string[] {
  const old = name.replace(/LayerNorm\.weight$/, 'LayerNorm.gamma').replace(/LayerNorm\.bias$/, 'LayerNorm.beta')
  return [name, `bert.${name}`, old, `bert.${old}`]
}

/**
 * The model's weights by checkpoint name without prefix, in `dtype` when they are read. The pooler is taken if the checkpoint has one.
 * @throws usage `config.count`, `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function bertWeights(config: BertConfig, file: Checkpoint, dtype: FloatType): Record<string, DeferredTensor> {
  expectCount(file, 'num_hidden_layers', config.layers)
  const shapes = bertShapes(config, findTensor(file, namesOf(poolerNames.weight)) !== undefined)
  return Object.fromEntries(
    Object.entries(shapes).map(([name, shape]) => [name, takeTensor(findTensor(file, namesOf(name)), name, shape, dtype)]),
  )
}

export interface BertShape {
  readonly batch: number
  readonly seq: number
  /** Rows of packed tensors: at least the number of tokens. `batch * seq`, room for full sequences, by default. */
  readonly tokens?: number
}

/** Extents of the dimensions BERT's graphs leave open. */
export const bertDims = (config: BertConfig, { batch, seq, tokens }: BertShape): Record<string, number> => ({
  b: batch,
  s: seq,
  t: tokens ?? batch * seq,
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
  /** Whether ids are supplied, and results of tokens returned, in packed rows. */
  readonly packed: { readonly inputs: boolean; readonly outputs: boolean }
}

/**
 * A whole model under a plan. A token classifier yields `logits` and `labels`; an encoder `states`, and `pooled` if it has a pooler.
 * @param scales what a quantised plan needs
 * @throws usage `plan.model` for a plan without the model's layers, `run.scales` for a quantised plan without scales for each of its values
 */
export function assembleBert(config: BertConfig, plan: ModelPlan, hasPooler: boolean, scales?: LayerScales): Assembly {
  const { layers } = config
  if (scales !== undefined && scales.length !== layers) {
    throw usageError('run.scales', `there are scales of ${scales.length} layers, the model has ${layers}`)
  }
  const compiled = compileProgram(programOf(config, hasPooler), plan, { conversions })
  const sites = new Map(scales?.map((layer, i) => [`layer${i}`, layer]))
  const wired = wireProgram(compiled, { amax: (at, site) => sites.get(at)?.[site], tensors: tensorNames(config) })
  const [first = ''] = wired.outputs
  return { ...wired, packed: { inputs: isPacked(compiled, 'ids'), outputs: isPacked(compiled, first) } }
}

/** Whether converted weights hold a pooler. */
export const hasPooler = (weights: Readonly<Record<string, Weight>>): boolean => Object.hasOwn(weights, poolerNames.weight)
