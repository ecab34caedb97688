/** Common parts of the LLaMA family's programs for prompts and steps: configuration, caches, and weights. */
import { type Programming, type ProgramTensor, type ProgramWeights, tensor } from 'heddle'
import type { CacheType } from '../graphs/llama_caches.js'
import { type LlamaFlags, llamaLayer } from '../graphs/llama_layer.js'
import { splitHeads } from '../layouts/split_heads.js'

export interface LlamaProgram {
  readonly layers: number
  readonly bias: LlamaFlags['bias']
  readonly norm: boolean
  /** Positions that a token attends at most in layers with a window. */
  readonly window: number
  /** Numbers of the layers with a window. */
  readonly windowLayers: readonly number[]
  readonly eps: number
  readonly caches: CacheType
  /** Factor of scores: 1/sqrt(headDim). */
  readonly scale: number
}

export const llamaConfig: LlamaProgram = {
  layers: 32,
  bias: 'none',
  norm: false,
  window: 1,
  windowLayers: [],
  caches: 'float',
  eps: 1e-5,
  scale: 1 / Math.sqrt(128),
}

/** Sizes of LLaMA-3 8B. */
export const llamaSizes = { r: 8, u: 1024, n: 4096, h: 32, g: 8, d: 128, i: 14_336, v: 128_256, p: 8192, e: 64 } as const

/** The caches of a layer: their names in its graph, and their states. */
const cacheNames = (layer: number, caches: CacheType) => [
  ['keys', `keys${layer}`] as const,
  ['values', `values${layer}`] as const,
  ...(caches === 'int8' ? [['keySteps', `keySteps${layer}`] as const, ['valueSteps', `valueSteps${layer}`] as const] : []),
]

/**
 * The caches of all layers, as states. Positions without a token are read too, with weight zero, and must be numbers.
 * @param rows dimension of their rows
 */
export function cacheStates(
  p: Programming,
  { layers, caches }: LlamaProgram,
  rows: 'r' | 'b*w' = 'r',
): Readonly<Record<string, ProgramTensor>> {
  const floats = tensor(caches === 'f32' ? 'f32' : 'T', `${rows} u g d`, splitHeads)
  const int8 = tensor('i8', `${rows} g u d`)
  const steps = tensor('f32', `${rows} g u`)
  const declOf = (part: string) => (caches !== 'int8' ? floats : part.endsWith('Steps') ? steps : int8)
  const names = Array.from({ length: layers }, (_, layer) => cacheNames(layer, caches)).flat()
  return Object.fromEntries(names.map(([part, name]) => [name, p.state(name, declOf(part), { cleared: true })]))
}

function stateOf(caches: Readonly<Record<string, ProgramTensor>>, name: string): ProgramTensor {
  const found = caches[name]
  if (found === undefined) throw new Error(`there is no cache ${name}`)
  return found
}

const layerWeights = [
  'attentionGamma',
  'queryWeight',
  'keyWeight',
  'valueWeight',
  'projectionWeight',
  'innerGamma',
  'gateWeight',
  'upWeight',
  'downWeight',
] as const
const biases = ['queryBias', 'keyBias', 'valueBias'] as const
const headNorms = ['queryGamma', 'keyGamma'] as const

/** Weights of a layer by name; all layers share the rotation's tables. */
function weightsOf({ prefix }: ProgramWeights, { bias, norm }: LlamaFlags): Readonly<Record<string, string>> {
  const own = [
    ...layerWeights,
    ...(bias === 'none' ? [] : biases),
    ...(bias === 'all' ? ['projectionBias'] : []),
    ...(norm ? headNorms : []),
  ]
  const shared = ['cos', 'sin']
  return Object.fromEntries([
    ...own.map((name) => [name, `${prefix}.${name}`]),
    ...shared.map((name) => [name, `rotation.${name}`]),
  ])
}

/**
 * All layers, and the caches after them.
 * @param inputs further inputs of every layer
 */
export function llamaStack(
  p: Programming,
  form: 'step' | 'beams' | 'prompt',
  x: ProgramTensor,
  caches: Readonly<Record<string, ProgramTensor>>,
  inputs: Readonly<Record<string, ProgramTensor>>,
  settings: LlamaProgram,
) {
  const { bias, norm, window, windowLayers, caches: cacheType, eps, scale } = settings
  const next: Record<string, ProgramTensor> = {}
  const hidden = p.repeat('layer', settings.layers, x, (before, { index, weights }) => {
    const flags = { bias, norm, window: windowLayers.includes(index), caches: cacheType }
    const names = cacheNames(index, cacheType)
    const own = Object.fromEntries(names.map(([part, name]) => [part, stateOf(caches, name)]))
    const made = p.apply(
      llamaLayer(form, flags),
      { x: before, ...own, ...inputs },
      weightsOf(weights, flags),
      { eps, scale, ...(flags.window ? { window } : {}) },
      { label: `layer${index}` },
    )
    for (const [part, name] of names) next[name] = made[part]
    return made.hidden
  })
  return { hidden, caches: next }
}
