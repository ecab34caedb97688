/**
 * Minimal work and memory of a LLaMA-like model: bytes of weights and caches, and arithmetic, for one step and for prompts. Computed from the
 * configuration alone, independent of plans.
 */

import type { FloatType } from '../../checkpoint/convert.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { LlamaConfig } from '../../models/llama/config.js'
import { rotaryDims } from '../../models/llama/rotary_config.js'
import { type LlamaTensor, layerTensors } from '../../models/llama/tensor_names.js'
import type { Ceilings, Floor } from '../floor.js'

/** Storage and arithmetic of the matmuls of layers. */
export type Products = 'float' | 'int8 weights' | 'int8'

const count = (shape: readonly number[]): number => shape.reduce((product, extent) => product * extent, 1)
const f32 = dtypeInfo.f32.bytes

/** Tensors of all layers. */
const ofLayers = (config: LlamaConfig): readonly LlamaTensor[] =>
  Array.from({ length: config.layers }, (_, layer) => Object.values(layerTensors(config, layer))).flat()

/** Number of elements and rows of the matrices of all layers; in int8, each row has its own scale. */
function layerMatrices(config: LlamaConfig): { readonly elements: number; readonly rows: number } {
  const matrices = ofLayers({ ...config, quantization: undefined, fusedRows: false }).filter(({ shape }) => shape.length === 2)
  return {
    elements: matrices.reduce((sum, { shape }) => sum + count(shape), 0),
    rows: matrices.reduce((sum, { shape: [rows = 0] }) => sum + rows, 0),
  }
}

const matrixBytes = (config: LlamaConfig, dtype: FloatType, products: Products): number => {
  const { elements, rows } = layerMatrices(config)
  return products === 'float' ? elements * dtypeInfo[dtype].bytes : elements + rows * f32
}

/** Device memory of all weights: every tensor once, tied ones too, and the tables of the rotation. */
export function weightBytes(config: LlamaConfig, dtype: FloatType, products: Products): number {
  const { vocab, hidden, tied, positions, rotary, headDim } = config
  const size = dtypeInfo[dtype].bytes
  const vectors = ofLayers(config)
    .filter(({ shape }) => shape.length === 1)
    .reduce((sum, { shape }) => sum + count(shape), 0)
  const words = (tied ? 1 : 2) * vocab * hidden
  const reaches = rotary.type === 'longrope' ? 2 : 1
  const tables = reaches * positions * rotaryDims(rotary, headDim) * f32
  return matrixBytes(config, dtype, products) + (vectors + hidden + words) * size + tables
}

/** Bytes of a head of keys or values at one position; with int8, one integer per channel and a scale. */
const headBytes = ({ headDim, caches = 'float' }: LlamaConfig, dtype: FloatType): number =>
  caches === 'int8' ? headDim * dtypeInfo.i8.bytes + f32 : headDim * dtypeInfo[caches === 'f32' ? 'f32' : dtype].bytes

/** Device memory of the caches: 2 x layers x heads of keys x channels of a head x positions x rows elements, or integers and scales. */
export const cacheBytes = (
  config: LlamaConfig,
  dtype: FloatType,
  { rows, capacity }: { readonly rows: number; readonly capacity: number },
): number => 2 * config.layers * config.kvHeads * capacity * rows * headBytes(config, dtype)

/** Positions that all layers of a step read, where each row attends to `context` of them. */
const placesRead = ({ windowLayers, window }: LlamaConfig, context: number): number =>
  windowLayers.reduce((sum, has) => sum + Math.min(context, has && window !== undefined ? window : context), 0)

/** Total keys attended by the tokens of a text, over all layers: its own and earlier ones, limited by the window. */
function pairsSeen({ windowLayers, window }: LlamaConfig, length: number): number {
  return windowLayers.reduce((sum, has) => {
    const most = has && window !== undefined ? Math.min(window, length) : length
    return sum + (most * (most + 1)) / 2 + (length - most) * most
  }, 0)
}

/** Bytes and arithmetic of a step or a prompt. */
interface Work {
  readonly bytes: number
  /** Multiplications and additions of matmuls with layer weights, of the head matmul, and of attention. */
  readonly flops: { readonly layers: number; readonly head: number; readonly attention: number }
}

/** One step of `rows` texts, each attending to `context` positions. */
export function stepWork(config: LlamaConfig, dtype: FloatType, products: Products, rows: number, context: number): Work {
  const { vocab, hidden, heads, kvHeads, headDim } = config
  const size = dtypeInfo[dtype].bytes
  const places = placesRead(config, context)
  return {
    bytes: matrixBytes(config, dtype, products) + vocab * hidden * size + 2 * rows * places * kvHeads * headBytes(config, dtype),
    flops: {
      layers: 2 * rows * layerMatrices(config).elements,
      head: 2 * rows * vocab * hidden,
      attention: 4 * rows * places * heads * headDim,
    },
  }
}

/** Processing of `rows` prompts of `length` tokens. Excludes logits: the first step computes those of the last token. */
export function promptWork(config: LlamaConfig, dtype: FloatType, products: Products, rows: number, length: number): Work {
  const { heads, headDim } = config
  const written = cacheBytes(config, dtype, { rows, capacity: length })
  return {
    bytes: matrixBytes(config, dtype, products) + written,
    flops: {
      layers: 2 * rows * length * layerMatrices(config).elements,
      head: 0,
      attention: 4 * rows * pairsSeen(config, length) * heads * headDim,
    },
  }
}

/**
 * Shortest time of some work: its bytes at the device's bandwidth, or its matmuls at the peaks of their types, whichever takes
 * longer. Arithmetic with an unknown peak is ignored.
 */
export function floorOf({ bytes, flops }: Work, { peak, bandwidth }: Ceilings, dtype: FloatType, products: Products): Floor {
  const at = (type: FloatType | 'i8', operations: number): number => (1e3 * operations) / (peak[type] ?? Number.POSITIVE_INFINITY)
  const arithmetic = at(products === 'int8' ? 'i8' : dtype, flops.layers) + at(dtype, flops.head + flops.attention)
  const memory = (1e3 * bytes) / bandwidth
  return arithmetic >= memory ? { milliseconds: arithmetic, bound: 'arithmetic' } : { milliseconds: memory, bound: 'bandwidth' }
}
