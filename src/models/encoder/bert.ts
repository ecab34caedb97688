/**
 * BERT as a sequence of graphs: which checkpoint tensor is which graph weight, and how the graphs are wired. The weights are
 * checked against the configuration here, before any of them reaches a device.
 */
import { embeddings } from '../../../specs/graphs/embeddings.js'
import { encoderLayerGelu, encoderLayerGeluTanh, encoderLayerRelu } from '../../../specs/graphs/encoder_layer.js'
import { hiddenStates, pooler, tokenClassifier } from '../../../specs/graphs/heads.js'
import { usageError } from '../../errors.js'
import type { GraphDecl } from '../../lang/graph.js'
import { defaultPlan, type ModelPlan } from '../../program/plans.js'
import type { WeightTensor } from '../../runtime/session.js'
import { type Assembly, Wiring } from '../assembly/wiring.js'
import { findTensor, takeTensor } from '../files/checkpoint.js'
import type { BertConfig } from '../files/config.js'
import type { FloatType } from '../files/convert.js'
import type { Safetensors } from '../files/safetensors.js'

const layerGraphs: Readonly<Record<BertConfig['activation'], GraphDecl>> = {
  gelu: encoderLayerGelu,
  gelu_tanh: encoderLayerGeluTanh,
  relu: encoderLayerRelu,
}

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

/** The shape the configuration gives each tensor, by checkpoint name without prefix. */
export function bertShapes(config: BertConfig): Readonly<Record<string, readonly number[]>> {
  const { hidden, inner } = config
  const shapes: Record<string, readonly number[]> = {
    [embeddingNames.words]: [config.vocab, hidden],
    [embeddingNames.types]: [config.tokenTypes, hidden],
    [embeddingNames.positions]: [config.positions, hidden],
    [embeddingNames.gamma]: [hidden],
    [embeddingNames.beta]: [hidden],
  }
  for (let layer = 0; layer < config.layers; layer++) {
    for (const [weight, name] of Object.entries(layerNames(layer))) {
      if (weight === 'fc1Weight') shapes[name] = [inner, hidden]
      else if (weight === 'fc2Weight') shapes[name] = [hidden, inner]
      else if (weight === 'fc1Bias') shapes[name] = [inner]
      else shapes[name] = weight.endsWith('Weight') ? [hidden, hidden] : [hidden]
    }
  }
  if (config.kind === 'token-classifier') {
    shapes[classifierNames.weight] = [config.labels.length, hidden]
    shapes[classifierNames.bias] = [config.labels.length]
  }
  return shapes
}

/** Names of a tensor with and without the `bert.` prefix; layer norms of old checkpoints call their weights gamma and beta. */
function namesOf(name: string): string[] {
  const old = name.replace(/LayerNorm\.weight$/, 'LayerNorm.gamma').replace(/LayerNorm\.bias$/, 'LayerNorm.beta')
  return [name, `bert.${name}`, old, `bert.${old}`]
}

/**
 * The model's weights by checkpoint name without prefix, converted to `dtype`. The pooler is taken if the file has one.
 * @throws usage `weights.missing`, `weights.shape`, `weights.dtype` naming the tensor, what the configuration expects and what was found
 */
export function bertWeights(config: BertConfig, file: Safetensors, dtype: FloatType): Record<string, WeightTensor> {
  const shapes: Record<string, readonly number[]> = { ...bertShapes(config) }
  if (config.kind === 'encoder' && findTensor(file, namesOf(poolerNames.weight)) !== undefined) {
    shapes[poolerNames.weight] = [config.hidden, config.hidden]
    shapes[poolerNames.bias] = [config.hidden]
  }
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
  c: config.labels.length,
})

/** Values the caller supplies: i32, `ids` and `typeIds` of batch*seq or, where the embeddings are packed, of the packed rows; `lengths` of batch. */
export const bertInputs = ['ids', 'typeIds', 'lengths'] as const

/** For each layer, the magnitude of each quantised value that becomes 127. */
export type LayerScales = readonly Readonly<Record<string, number>>[]

/**
 * Wires the graphs of a whole model under a plan. A token classifier yields `logits` and `labels`; an encoder `states`, and
 * `pooled` if it has a pooler. `hidden` holds every layer's input: `hidden0` are the embeddings. Between a graph the plan packs and
 * one it does not, padding is removed or restored; likewise where their values differ in storage type or layout.
 * @param scales what a quantised plan needs
 * @throws usage `plan.model` for a plan without the model's layers, `run.scales` for a quantised plan without scales for each of its values
 */
export function assembleBert(config: BertConfig, plan: ModelPlan, hasPooler: boolean, scales?: LayerScales): Assembly {
  const { eps, layers } = config
  if (scales !== undefined && scales.length !== layers) {
    throw usageError('run.scales', `there are scales of ${scales.length} layers, the model has ${layers}`)
  }
  const wiring = new Wiring(plan)
  const amax = (at: number, site: string): number | undefined => scales?.[at]?.[site]
  /** A layer's input is the result of the one before. */
  const hidden = (at: number) => (): number | undefined => (at < layers ? amax(at, 'x') : amax(at - 1, 'outputNorm'))
  const first = { hidden: { name: 'hidden0', amax: hidden(0) } }
  wiring.apply('embeddings', embeddings, { ids: 'ids', typeIds: 'typeIds' }, embeddingNames, first, { eps }, hidden(0))
  const layer = layerGraphs[config.activation]
  if (!plan.covers(layer.name)) {
    throw usageError('plan.model', `plan ${plan.name} has nothing to say about ${layer.name}, the layers of this model`, {
      hint: `its activation is ${config.activation}; choose a plan made for it, such as ${defaultPlan}`,
    })
  }
  for (let i = 0; i < layers; i++) {
    const attrs = { eps, scale: 1 / Math.sqrt(config.headDim) }
    const result = { hidden: { name: `hidden${i + 1}`, amax: hidden(i + 1) } }
    const of = (site: string) => amax(i, site)
    wiring.apply(`layer${i}`, layer, { x: `hidden${i}`, lengths: 'lengths' }, layerNames(i), result, attrs, of)
  }
  const last = { x: `hidden${layers}` }
  const result = (name: string) => ({ name })
  if (config.kind === 'token-classifier') {
    const outputs = { logits: result('logits'), labels: result('labels') }
    wiring.apply('classifier', tokenClassifier, last, classifierNames, outputs)
    return wiring.assembly(['logits', 'labels'])
  }
  wiring.apply('states', hiddenStates, last, {}, { states: result('states') })
  if (!hasPooler) return wiring.assembly(['states'])
  wiring.apply('pooler', pooler, last, poolerNames, { pooled: result('pooled') })
  return wiring.assembly(['states', 'pooled'])
}

/** Whether converted weights hold a pooler. */
export const hasPooler = (weights: Readonly<Record<string, WeightTensor>>): boolean => Object.hasOwn(weights, poolerNames.weight)
