/**
 * FasterTransformer v3.0's list of maxima, to exchange scales with it. A layer has 80 activation slots. Each site has four of them in the
 * order of `sites`: amax, amax / 127, amax / 127^2, 127 / amax; the rest is reserved and 0. After the slots come the largest magnitudes of
 * every output channel of the weights: query, key, value, projection, FC1, FC2. That is 9 x hidden if inner is 4 x hidden. Two forms are
 * read: JSON `{"layers":[[...],...]}`, which is also written, and the plain concatenated numbers of all layers, separated by blanks, commas
 * or lines.
 */
import { z } from 'zod'
import { usageError } from '../errors.js'
import { negligible } from '../ir/int8_scale.js'
import type { ModelIdentity, ModelSizes } from './identity.js'
import { checkScales, type Scales } from './scales.js'
import { type PerSite, perSite, sites } from './sites.js'
import { channelsOfMatrix, eachChannel, matrices, shortened, type WeightMaxima } from './weight_maxima.js'

const slots = 80
const perSlot = 4
const largest = 127

const listSchema = z.strictObject({ layers: z.array(z.array(z.number())).min(1) })

/** Length of one layer's list. */
const layerLength = ({ hidden, inner }: ModelSizes): number => slots + 5 * hidden + inner

/** Contents of a site's four slots. */
const slotsOf = (amax: number): readonly number[] =>
  amax < negligible ? [0, 0, 0, 0] : [amax, amax / largest, amax / largest / largest, largest / amax]

/**
 * Formats a list, with the weight maxima of the scales. `own` holds, per layer, the channel maxima of the weights themselves, in the order
 * query, key, value, projection, FC1, FC2.
 * @throws usage `amax.weights` for maxima whose number of channels differs from the model's
 */
export function formatAmaxList(scales: Scales, own: readonly (readonly Float32Array[])[]): string {
  const wanted = layerLength(scales.model)
  const layers = scales.layers.map((layer, at) => {
    const activations = sites.flatMap((site) => slotsOf(layer[site]))
    const reserved = Array.from({ length: slots - activations.length }, () => 0)
    const weights = matrices.flatMap((matrix, i) => {
      const given = scales.weights?.[at]?.[matrix]
      return [...(given === undefined ? (own[at]?.[i] ?? []) : eachChannel(given, channelsOfMatrix(matrix, scales.model)))]
    })
    const numbers = [...activations, ...reserved, ...weights]
    if (numbers.length !== wanted) {
      throw usageError(
        'amax.weights',
        `layer ${at} has ${numbers.length - slots} channels of weights, expected ${wanted - slots}`,
      )
    }
    return numbers.map(Math.fround)
  })
  return `${JSON.stringify({ layers })}\n`
}

/**
 * Parses the scales of a list, in float32: those of activations, and of every output channel of the weights.
 * @throws usage `amax.json`, `amax.number`, `amax.length`, `amax.slots`, and what `checkScales` throws
 */
export function parseAmaxList(text: string, file: string, model: ModelIdentity): Scales {
  const wanted = layerLength(model)
  const lists = text.trimStart().startsWith('{') ? fromJson(text, file) : fromNumbers(text, file, wanted, model.layers)
  if (lists.length !== model.layers) {
    throw usageError('amax.length', `${file} has ${lists.length} layers, the model has ${model.layers}`)
  }
  const read = lists.map((numbers, at) => {
    if (numbers.length !== wanted) {
      throw usageError('amax.length', `${file}: layer ${at} has ${numbers.length} numbers, expected ${wanted}`, {
        hint: `80 for activations, then one for each output channel of the weights: ${wanted - slots}`,
      })
    }
    return { sites: layerOf(numbers, at, file), weights: weightsOf(numbers.slice(slots), model) }
  })
  const [layers, weights] = [read.map((layer) => layer.sites), read.map((layer) => layer.weights)]
  return checkScales({ model, method: { name: 'imported' }, layers, weights }, file)
}

/** Relative tolerance of the three slots derived from the first: they are rounded to float32, or printed with few digits. */
const derivedError = 1e-3

function layerOf(numbers: readonly number[], at: number, file: string): PerSite<number> {
  return perSite((site) => {
    const first = perSlot * sites.indexOf(site)
    const amax = numbers[first] ?? Number.NaN
    const wrong = slotsOf(amax).findIndex((expected, i) => {
      const found = numbers[first + i] ?? Number.NaN
      return !(Math.abs(found - expected) <= derivedError * Math.abs(expected))
    })
    // If the largest magnitude is 0, other writers' reciprocals are not comparable.
    if (wrong > 0 && amax >= negligible) {
      const names = ['amax', 'amax / 127', 'amax / 127^2', '127 / amax']
      throw usageError(
        'amax.slots',
        `${file}: layer ${at}, ${site}: slot ${first + wrong} is ${numbers[first + wrong]}, not ${names[wrong]} of ${amax}`,
        { hint: `each site has four slots: ${names.join(', ')}; the sites are ${sites.join(', ')}` },
      )
    }
    return Math.fround(amax)
  })
}

/** Channel maxima by matrix; the matrices' maxima are concatenated. */
function weightsOf(numbers: readonly number[], model: ModelSizes): WeightMaxima {
  let from = 0
  return Object.fromEntries(
    matrices.map((matrix) => {
      const to = from + channelsOfMatrix(matrix, model)
      const maxima = shortened(numbers.slice(from, to))
      from = to
      return [matrix, maxima]
    }),
  )
}

function fromJson(text: string, file: string): readonly (readonly number[])[] {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw usageError('amax.json', `${file} is not JSON`, { hint: 'write {"layers":[[...],...]}, or plain numbers', cause })
  }
  const parsed = listSchema.safeParse(value)
  if (parsed.success) return parsed.data.layers
  const issue = parsed.error.issues[0]
  throw usageError('amax.json', `${file}: ${issue?.path.map(String).join('.') || 'the file'}: ${issue?.message ?? 'no list'}`, {
    hint: 'write {"layers":[[...],...]}, or plain numbers',
  })
}

function fromNumbers(text: string, file: string, wanted: number, layers: number): readonly (readonly number[])[] {
  const words = text.split(/[\s,]+/).filter((word) => word !== '')
  const numbers = words.map((word) => (/^[+-]?inf(inity)?$/i.test(word) ? Number.POSITIVE_INFINITY : Number(word)))
  const wrong = numbers.findIndex(Number.isNaN)
  if (wrong >= 0) {
    throw usageError('amax.number', `${file}: ${JSON.stringify(words[wrong])} is not a number`, {
      hint: 'write {"layers":[[...],...]}, or plain numbers',
    })
  }
  if (numbers.length !== wanted * layers) {
    throw usageError(
      'amax.length',
      `${file} has ${numbers.length} numbers, expected ${wanted * layers}: ${wanted} for each layer`,
    )
  }
  return Array.from({ length: layers }, (_, at) => numbers.slice(at * wanted, (at + 1) * wanted))
}
