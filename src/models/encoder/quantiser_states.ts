/**
 * Maxima that quantisation-aware training stores in a checkpoint: the `_amax` states of the quantisers that NVIDIA's pytorch-quantization
 * inserts before matmuls, named as in HF's QDQBert. A linear layer has `_input_quantizer` and `_weight_quantizer`; attention has
 * `matmul_q_input_quantizer` and three more. They are signed 8-bit quantisers, as here. The names of NVIDIA's ModelOpt are read as well: the same
 * states without the underscore in front and quantisers of attention by other names, or scales, which are maxima over 127.
 */
import { type Checkpoint, findTensor } from '../../checkpoint/checkpoint.js'
import { convertTensor } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { type Site, sites } from '../../quant/sites.js'
import { channelsOfMatrix, type Matrix, type Maxima, matrices, shortened, type WeightMaxima } from '../../quant/weight_maxima.js'
import { decode } from '../../runtime/buffer.js'
import { inMemory } from '../../runtime/weight.js'
import { checkpointNames, matrixTensor } from './bert.js'
import type { BertConfig } from './config.js'
import { families } from './families/index.js'

export interface TrainedMaxima {
  /** Per layer, the maxima of the sites that the checkpoint has them for. */
  readonly layers: readonly Readonly<Partial<Record<Site, number>>>[]
  /** The same for weights. */
  readonly weights: readonly WeightMaxima[]
}

/** Largest relative difference between maxima of one activation, the same as FasterTransformer's. */
const sameActivation = 1e-5

/** Module name of a linear layer. */
const moduleOf = (config: BertConfig, layer: number, matrix: Matrix): string =>
  matrixTensor(config, layer, matrix).replace(/\.weight$/, '')

/** The states of a site's activation. Empty if no quantiser observes it. */
export function statesOfSite(config: BertConfig, layer: number, site: Site): readonly string[] {
  const linear = (matrix: Matrix, at = layer): string => `${moduleOf(config, at, matrix)}._input_quantizer._amax`
  const query = moduleOf(config, layer, 'query')
  const matmul = (name: string): string => `${query.replace(/\.[^.]*$/, '')}.matmul_${name}_input_quantizer._amax`
  const read = (at: number): readonly string[] => (['query', 'key', 'value'] as const).map((matrix) => linear(matrix, at))
  const pre = families[config.family].norms === 'pre'
  const next = layer + 1 < config.layers ? read(layer + 1) : [`${query.split('.')[0]}.final_input_quantizer._amax`]
  const states: Readonly<Record<Site, readonly string[]>> = {
    x: pre ? [] : read(layer),
    queryBias: [matmul('q')],
    keyBias: [matmul('k')],
    valueBias: [matmul('v')],
    probabilities: [matmul('a')],
    merged: [linear('projection')],
    attentionNorm: pre ? read(layer) : [linear('fc1')],
    fc1Activation: [linear('fc2')],
    outputNorm: pre ? [linear('fc1')] : next,
  }
  return states[site]
}

/** Modules of ModelOpt's attention that pytorch-quantization names differently. */
const attentionQuantisers: Readonly<Record<string, string>> = {
  matmul_q_input_quantizer: 'q_bmm_quantizer',
  matmul_k_input_quantizer: 'k_bmm_quantizer',
  matmul_v_input_quantizer: 'v_bmm_quantizer',
  matmul_a_input_quantizer: 'softmax_quantizer',
}

/** A state that a maximum may be stored in, and the maximum of its 1. */
interface Stored {
  readonly name: string
  readonly factor: number
}

/** Every state that may have the maximum which pytorch-quantization stores under a name. */
function storedAs(name: string): readonly Stored[] {
  const scale = /^(.*)\._(input|weight)_quantizer\._amax$/.exec(name)
  const renamed = name
    .replace('._input_quantizer.', '.input_quantizer.')
    .replace('._weight_quantizer.', '.weight_quantizer.')
    .replace(/matmul_[qkva]_input_quantizer/, (found) => attentionQuantisers[found] ?? found)
  const states = [...new Set([name, renamed])].map((state) => ({ name: state, factor: 1 }))
  return scale === null ? states : [...states, { name: `${scale[1]}.${scale[2]}_scale`, factor: 127 }]
}

/**
 * Reads the quantiser maxima of a checkpoint.
 * @throws usage `calibrate.state` for a checkpoint without any, for states of another size, and for two different maxima of one
 * activation; finding `weights.value` for one that is not finite
 */
export async function trainedMaxima(config: BertConfig, file: Checkpoint, signal?: AbortSignal): Promise<TrainedMaxima> {
  const read = async (name: string, channels: number): Promise<Float32Array | undefined> => {
    const all = storedAs(name).flatMap(({ name: state, factor }) => {
      const found = findTensor(file, checkpointNames(config, state))
      return found === undefined ? [] : [{ found, factor }]
    })
    const [first] = all
    if (first === undefined) return undefined
    const [stored, tensor] = first.found
    const { data } = await inMemory(convertTensor(stored, tensor, 'f32'), signal)
    const values = decode('f32', data).map((value) => value * first.factor)
    if (values.length === 1 || values.length === channels) return Float32Array.from(values)
    const expected = channels === 1 ? '1: an activation has one scale' : `1 or ${channels}, the output channels`
    throw usageError('calibrate.state', `state ${stored} has ${values.length} numbers, expected ${expected}`)
  }
  const layers: Partial<Record<Site, number>>[] = []
  const weights: WeightMaxima[] = []
  for (let layer = 0; layer < config.layers; layer++) {
    const ofSites: Partial<Record<Site, number>> = {}
    for (const site of sites) {
      const found = await sameOf(statesOfSite(config, layer, site), async (name) => (await read(name, 1))?.[0])
      if (found !== undefined) ofSites[site] = found
    }
    const ofMatrices: Partial<Record<Matrix, Maxima>> = {}
    for (const matrix of matrices) {
      const channels = channelsOfMatrix(matrix, config)
      const found = await read(`${moduleOf(config, layer, matrix)}._weight_quantizer._amax`, channels)
      if (found !== undefined) ofMatrices[matrix] = shortened(found)
    }
    layers.push(ofSites)
    weights.push(ofMatrices)
  }
  if ([...layers, ...weights].some((found) => Object.keys(found).length > 0)) return { layers, weights }
  throw usageError('calibrate.state', 'the checkpoint has no quantiser states', {
    hint: `quantisation-aware training stores states such as ${statesOfSite(config, 0, 'merged').join()}; otherwise give --cases`,
  })
}

/** The common value of the states of one activation; undefined if there are none. @throws usage `calibrate.state` */
async function sameOf(
  names: readonly string[],
  read: (name: string) => Promise<number | undefined>,
): Promise<number | undefined> {
  let known: { readonly name: string; readonly amax: number } | undefined
  for (const name of names) {
    const amax = await read(name)
    if (amax === undefined) continue
    known ??= { name, amax }
    if (Math.abs(amax - known.amax) <= sameActivation * known.amax) continue
    throw usageError(
      'calibrate.state',
      `state ${known.name} is ${known.amax}, ${name} is ${amax}: both belong to one activation`,
      {
        hint: 'an activation is quantised once: set both states to one value before training ends, such as the larger',
      },
    )
  }
  return known?.amax
}
