/**
 * Smoothing (SmoothQuant, Xiao et al. 2023): outlier channels of activations are divided by factors, and the weights that multiply them are
 * multiplied, so that int8 rows preserve the other channels too. A channel's factor is `max|x|^alpha / max|w|^(1 - alpha)`. Runs when a
 * model is loaded. Only activations that a plan can scale through weights alone (`Graph.folds`) are smoothed, at no runtime cost.
 */
import { usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import { emptyEnv, evaluateExpr } from '../ir/evaluate_expr.js'
import { foldChannel, type ScaleFolding } from '../ir/graph.js'
import { evaluateExtent } from '../ir/shape.js'
import type { GraphApplication } from '../runtime/application.js'
import { decode, encode } from '../runtime/buffer.js'
import { inMemory, type Weight } from '../runtime/weight.js'
import type { ChannelMaxima } from './channels.js'

type Weights = Readonly<Record<string, Weight>>
type Dims = Readonly<Record<string, number>>

/** Default share of the difference between channels that moves into the weights. */
export const usualAlpha = 0.5

/** A tensor, one of its axes, and the element along it that each channel belongs to. */
interface Place {
  readonly tensor: string
  readonly axis: number
  readonly elements: readonly number[]
}

/** A place with the factor of each channel. */
type Scaling = Place & { readonly factors: readonly number[] }

/** A scale folding over the tensors of a model. */
interface ModelFolding {
  /** Name of the activation, such as `layer0.gated`. */
  readonly name: string
  readonly readers: readonly Place[]
  readonly makers: readonly Place[]
  readonly channels: number
}

export interface Smoothing {
  /** The model's applications under its plan. */
  readonly applications: readonly GraphApplication[]
  readonly plan: string
  readonly dims: Dims
  /** Storage type of the model. */
  readonly dtype: DType
  readonly channels: ChannelMaxima
  /** Strength from 0, which equalises the channels of weights, to 1, which equalises those of activations. */
  readonly alpha: number
}

/**
 * Multiplies factors into the weights: `weights` in the type of the model, `exact` in float32. Scaled tensors are computed from `exact`.
 * @throws usage `smooth.alpha`, `smooth.plan` for a plan that has nothing to smooth, `smooth.channels` for an activation that was not
 * calibrated or has other channels; what reading a weight throws
 */
export async function smoothWeights(
  { applications, plan, dims, dtype, channels, alpha }: Smoothing,
  weights: Weights,
  exact: Weights,
  signal?: AbortSignal,
): Promise<{ readonly weights: Weights; readonly exact: Weights }> {
  if (!(alpha >= 0 && alpha <= 1)) throw usageError('smooth.alpha', `alpha is ${alpha}, expected a number from 0 to 1`)
  const foldings = fromTheEnd(foldingsOfModel(applications, plan, dims))
  const scalings = new Map<string, Scaling[]>()
  const add = (place: Place, factors: readonly number[]): void => {
    scalings.set(place.tensor, [...(scalings.get(place.tensor) ?? []), { ...place, factors }])
  }
  const soFar = (name: string): Weight => times(existing(exact, name), scalings.get(name) ?? [], 'f32')
  for (const folding of foldings) {
    const factors = await factorsOf(folding, soFar, maximaOf(folding, channels), alpha, signal)
    for (const reader of folding.readers) add(reader, factors)
    const inverse = factors.map((factor) => 1 / factor)
    for (const maker of folding.makers) add(maker, inverse)
  }
  const scaled = { weights: { ...weights }, exact: { ...exact } }
  for (const [name, places] of scalings) {
    const weight = existing(exact, name)
    scaled.exact[name] = times(weight, places, 'f32')
    scaled.weights[name] = times(weight, places, dtype)
  }
  return scaled
}

/**
 * Orders foldings so that a weight that one multiplies and another divides is divided first: its channels are then compared at their final
 * magnitudes.
 */
function fromTheEnd(foldings: readonly ModelFolding[]): ModelFolding[] {
  const rest = [...foldings]
  const ordered: ModelFolding[] = []
  while (rest.length > 0) {
    const made = (folding: ModelFolding): boolean =>
      rest.some(
        (other) =>
          other !== folding && other.makers.some(({ tensor }) => folding.readers.some((reader) => reader.tensor === tensor)),
      )
    const next = rest.findIndex((folding) => !made(folding))
    ordered.push(...rest.splice(Math.max(next, 0), 1))
  }
  return ordered
}

function existing(weights: Weights, name: string): Weight {
  const found = weights[name]
  if (found === undefined) throw new Error(`internal: there is no tensor ${name}`)
  return found
}

/** A weight multiplied by factors along axes, computed when it is read. */
function times(weight: Weight, places: readonly Scaling[], dtype: DType): Weight {
  const { shape } = weight
  const count = shape.reduce((product, extent) => product * extent, 1)
  return {
    ...{ dtype, shape, bytes: encode(dtype, new Float32Array(1)).byteLength * count },
    async *pieces(signal) {
      const values = Float64Array.from(decode('f32', (await inMemory(weight, signal)).data))
      for (const { axis, elements, factors } of places) {
        const along = new Float64Array(shape[axis] ?? 0).fill(1)
        for (const [channel, element] of elements.entries()) along[element] = factors[channel] ?? 1
        const stride = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
        for (let at = 0; at < values.length; at++)
          values[at] = (values[at] ?? 0) * (along[Math.floor(at / stride) % along.length] ?? 1)
      }
      yield encode(dtype, Float32Array.from(values))
    },
  }
}

/** Calibrated maxima of a folding's channels. @throws usage `smooth.channels` */
function maximaOf({ name, channels }: ModelFolding, { values }: ChannelMaxima): readonly number[] {
  const found = values[name]
  if (found?.length === channels) return found
  const what = found === undefined ? 'was not calibrated' : `was calibrated with ${found.length} channels, and has ${channels}`
  throw usageError('smooth.channels', `activation ${name} ${what}`, { hint: 'calibrate this model with `heddle calibrate`' })
}

/** Factor of each channel; 1 if all its weights or activations are 0. Channels made by the same element share a factor. */
async function factorsOf(
  { readers, makers, channels }: ModelFolding,
  weightOf: (tensor: string) => Weight,
  maxima: readonly number[],
  alpha: number,
  signal: AbortSignal | undefined,
): Promise<readonly number[]> {
  const weights = new Float64Array(channels)
  for (const { tensor, axis } of readers) {
    const { data, shape } = await inMemory(weightOf(tensor), signal)
    const stride = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
    for (const [at, value] of decode('f32', data).entries()) {
      const channel = Math.floor(at / stride) % channels
      weights[channel] = Math.max(weights[channel] ?? 0, Math.abs(value))
    }
  }
  const group = groupsOf(makers, channels)
  const most = (of: ArrayLike<number>): Map<number, number> => {
    const found = new Map<number, number>()
    for (const [channel, key] of group.entries()) found.set(key, Math.max(found.get(key) ?? 0, of[channel] ?? 0))
    return found
  }
  const [activation, weight] = [most(maxima), most(weights)]
  return group.map((key) => {
    const factor = (activation.get(key) ?? 0) ** alpha / (weight.get(key) ?? 0) ** (1 - alpha)
    return Number.isFinite(factor) && factor > 0 ? factor : 1
  })
}

/** Group number of each channel. Two channels are in one group if some weight makes both from one element. */
function groupsOf(makers: readonly Place[], channels: number): number[] {
  const group = Array.from({ length: channels }, (_, channel) => channel)
  for (const { elements } of makers) {
    const first = new Map<number, number>()
    for (const [channel, element] of elements.entries()) {
      const [key = channel, own = channel] = [group[first.get(element) ?? channel], group[channel]]
      if (!first.has(element)) first.set(element, channel)
      if (key !== own) for (const [other, found] of group.entries()) if (found === own) group[other] = key
    }
  }
  return group
}

/**
 * Scale foldings over a model's tensors. Programs share tensors and caches, so all applications that read a folded tensor must fold it too.
 * @throws usage `smooth.plan`
 */
function foldingsOfModel(applications: readonly GraphApplication[], plan: string, dims: Dims): ModelFolding[] {
  const foldings = new Map<string, ModelFolding>()
  const ofTensor = new Map<string, Set<string>>()
  const own = applications.map((application) => {
    const found = (application.graph.folds ?? []).map((folding): [string, ModelFolding] => {
      const made = overTensors(folding, application, dims)
      return [JSON.stringify([made.readers, made.makers]), made]
    })
    for (const [key, folding] of found) {
      if (!foldings.has(key)) foldings.set(key, folding)
      for (const { tensor } of [...folding.readers, ...folding.makers])
        ofTensor.set(tensor, (ofTensor.get(tensor) ?? new Set()).add(key))
    }
    return new Set(found.map(([key]) => key))
  })
  if (foldings.size === 0) {
    throw usageError('smooth.plan', `plan ${plan} quantises no rows of activations, so there is nothing to smooth`, {
      hint: 'best-llama-w8a8 and fasterllama-v1 do',
    })
  }
  for (const [i, { label, weights }] of applications.entries()) {
    for (const tensor of Object.values(weights)) {
      if ([...(ofTensor.get(tensor) ?? [])].every((key) => own[i]?.has(key) === true)) continue
      throw usageError('smooth.plan', `plan ${plan}: ${label} reads ${tensor}, whose channels are scaled only for other graphs`, {
        hint: 'smooth models whose plan quantises the same activations everywhere',
      })
    }
  }
  return [...foldings.values()]
}

function overTensors({ value, shape, readers, makers }: ScaleFolding, application: GraphApplication, dims: Dims): ModelFolding {
  const { label, weights, dims: renamed = {} } = application
  const sizes = {
    ...dims,
    ...Object.fromEntries(Object.entries(renamed).map(([name, extent]) => [name, evaluateExtent(extent, dims)])),
  }
  const channels = evaluateExtent(shape[1] ?? { factor: 1, dims: [] }, sizes)
  const all = Array.from({ length: channels }, (_, channel) => channel)
  const tensorOf = (weight: string): string => weights[weight] ?? weight
  return {
    name: `${label}.${value}`,
    channels,
    readers: readers.map(({ weight, axis }) => ({ tensor: tensorOf(weight), axis, elements: all })),
    makers: makers.map(({ weight, axis, element }) => ({
      ...{ tensor: tensorOf(weight), axis },
      elements: all.map((channel) =>
        Number(evaluateExpr(element, { ...emptyEnv(sizes), values: new Map([[foldChannel, channel]]) })),
      ),
    })),
  }
}
