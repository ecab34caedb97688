/**
 * Key and value caches of a layer of the LLaMA family: the update by new tokens, and the reads of attention. Caches are floats as computed, float32,
 * or int8 with a scale per row, head and position, which take half the bytes of 16-bit floats.
 */
import { type GraphBuilder, type GraphTensor, type TensorDecl, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'
import { appendStep } from '../ops/append_step.js'
import { castF32 } from '../ops/cast_f32.js'
import { castFloat } from '../ops/cast_float.js'
import { appendPlaces, appendTokens, beamHeads, pastHeads, repeatHeads } from '../ops/past.js'
import {
  appendPlacesInt8,
  appendStepInt8,
  appendTokensInt8,
  beamHeadsInt8,
  pastHeadsInt8,
  repeatHeadsInt8,
} from '../ops/past_int8.js'

/** Storage of cached keys and values: the model's type, float32 with float32 attention, or int8 with a scale per row, head and position. */
export const cacheTypes = ['float', 'f32', 'int8'] as const
export type CacheType = (typeof cacheTypes)[number]

const floats = { keys: tensor('T', 'r u g d', splitHeads), values: tensor('T', 'r u g d', splitHeads) } as const
const f32 = { keys: tensor('f32', 'r u g d', splitHeads), values: tensor('f32', 'r u g d', splitHeads) } as const
const int8 = {
  keys: tensor('i8', 'r g u d'),
  keySteps: tensor('f32', 'r g u'),
  values: tensor('i8', 'r g u d'),
  valueSteps: tensor('f32', 'r g u'),
} as const

/** Caches of a layer, by the names of its inputs and outputs. */
export const cachesOf = (caches: CacheType): { readonly keys: TensorDecl; readonly values: TensorDecl } =>
  ({ float: floats, f32, int8 })[caches]

type Names<T> = { readonly [K in keyof T]: GraphTensor }
type Given<K extends string> = { readonly [Name in K]: GraphTensor }

/** A cache before or after a token joined it. */
export interface Cache {
  readonly cache: GraphTensor
  /** Scales of an int8 cache. */
  readonly steps?: GraphTensor | undefined
}

/** Caches from a layer's inputs. */
export const givenCaches = (inputs: Names<typeof floats> & Partial<Names<typeof int8>>) => ({
  keys: { cache: inputs.keys, steps: inputs.keySteps },
  values: { cache: inputs.values, steps: inputs.valueSteps },
})

/** Caches as a layer's outputs. */
export const madeCaches = (keys: Cache, values: Cache): Given<'keys' | 'values'> => ({
  keys: keys.cache,
  values: values.cache,
  ...(keys.steps === undefined || values.steps === undefined ? {} : { keySteps: keys.steps, valueSteps: values.steps }),
})

/** An updated cache, and its heads repeated for the heads of queries. */
interface Remembered {
  readonly after: Cache
  readonly past: GraphTensor
}

/** Update by a step: `places(r)` is the position of row `r`'s token. */
export function rememberPlace(g: GraphBuilder, { cache, steps }: Cache, x: GraphTensor, places: GraphTensor): Remembered {
  if (steps === undefined) {
    const after = g.apply(appendPlaces, { cache, x, places }).y
    return { after: { cache: after }, past: g.apply(repeatHeads, { x: after }, {}, { h: 'h' }).y }
  }
  const { y, stepsAfter } = g.apply(appendPlacesInt8, { cache, steps, x, places })
  const past = g.apply(repeatHeadsInt8, { cache: y, steps: stepsAfter }, {}, { h: 'h' }, { T: 'T' }).y
  return { after: { cache: y, steps: stepsAfter }, past }
}

/** Update by a step of beams: tokens of all rows go to position `slot`. */
export function rememberBeams(
  g: GraphBuilder,
  { cache, steps }: Cache,
  x: GraphTensor,
  { slot, beams }: Given<'slot' | 'beams'>,
): Remembered {
  if (steps === undefined) {
    const after = g.apply(appendStep, { cache, x, step: slot }).y
    return { after: { cache: after }, past: g.apply(beamHeads, { cache: after, beams }, {}, { h: 'h' }).y }
  }
  const { y, stepsAfter } = g.apply(appendStepInt8, { cache, steps, x, step: slot })
  const past = g.apply(beamHeadsInt8, { cache: y, steps: stepsAfter, beams }, {}, { h: 'h' }, { T: 'T' }).y
  return { after: { cache: y, steps: stepsAfter }, past }
}

/** Update by a prompt: runs of tokens, as in the layer. */
export function rememberTokens(
  g: GraphBuilder,
  { cache, steps }: Cache,
  x: GraphTensor,
  { slots, ...where }: Given<'slots' | 'writers' | 'starts' | 'lengths' | 'first'>,
): Remembered {
  if (steps === undefined) {
    const after = g.apply(appendTokens, { cache, x, ...where }).y
    return { after: { cache: after }, past: g.apply(pastHeads, { cache: after, slots }, {}, { h: 'h' }).y }
  }
  const { y, stepsAfter } = g.apply(appendTokensInt8, { cache, steps, x, ...where })
  const past = g.apply(pastHeadsInt8, { cache: y, steps: stepsAfter, slots }, {}, { h: 'h' }, { T: 'T' }).y
  return { after: { cache: y, steps: stepsAfter }, past }
}

/** Heads of new tokens before attention, one row per token. */
interface Heads {
  readonly query: GraphTensor
  readonly key: GraphTensor
  readonly value: GraphTensor
}

/**
 * Heads as attention reads them. With float32 caches they become float32, so that caches, scores and weights are float32.
 * @returns the heads, and the added nodes by name
 */
export function attentionHeads(g: GraphBuilder, caches: CacheType, rows: 'r' | 't', { query, key, value }: Heads) {
  if (caches !== 'f32') return { query, key, value, nodes: {} }
  const widened = (x: GraphTensor, heads: 'h' | 'g') => g.apply(castF32, { x: g.view(x, `${rows}*${heads} d`) }).y
  const nodes = { queryF32: widened(query, 'h'), keyF32: widened(key, 'g'), valueF32: widened(value, 'g') }
  const of = (x: GraphTensor, heads: 'h' | 'g') => g.view(x, `${rows} ${heads} d`)
  return { query: of(nodes.queryF32, 'h'), key: of(nodes.keyF32, 'g'), value: of(nodes.valueF32, 'g'), nodes }
}

/**
 * Result of attention in the type of activations, and its nodes by name.
 * @param made as computed
 * @param rows a view of it, one row of `h*d` per token
 */
export function attentionResult(g: GraphBuilder, caches: CacheType, made: GraphTensor, rows: GraphTensor) {
  if (caches !== 'f32') return { context: rows, nodes: { context: made } }
  const context = g.apply(castFloat, { x: rows }, {}, {}, { T: 'T' }).y
  return { context, nodes: { contextF32: made, context } }
}
