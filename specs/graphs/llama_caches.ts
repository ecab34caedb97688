/**
 * Key and value caches of a layer of the LLaMA family: the update by new tokens, and the reads of attention. Caches are floats as computed, or int8
 * with a scale per row, head and position, which take half the bytes of 16-bit floats.
 */
import { type GraphBuilder, type GraphTensor, type TensorDecl, tensor } from 'heddle'
import { splitHeads } from '../layouts/split_heads.js'
import { appendStep } from '../ops/append_step.js'
import { appendPlaces, appendTokens, beamHeads, pastHeads, repeatHeads } from '../ops/past.js'
import {
  appendPlacesInt8,
  appendStepInt8,
  appendTokensInt8,
  beamHeadsInt8,
  pastHeadsInt8,
  repeatHeadsInt8,
} from '../ops/past_int8.js'

const floats = { keys: tensor('T', 'r u g d', splitHeads), values: tensor('T', 'r u g d', splitHeads) } as const
const int8 = {
  keys: tensor('i8', 'r g u d'),
  keySteps: tensor('f32', 'r g u'),
  values: tensor('i8', 'r g u d'),
  valueSteps: tensor('f32', 'r g u'),
} as const

/** Caches of a layer, by the names of its inputs and outputs. `rows` is the dimension of their rows. */
export const cachesOf = (isInt8: boolean): { readonly keys: TensorDecl; readonly values: TensorDecl } => (isInt8 ? int8 : floats)

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
