/** Scales files and v3.0's lists: round trips, and refusals of everything else. */
import { describe, expect, it } from 'vitest'
import { stepOf, stepsPerUnit } from '../../src/ir/int8_scale.js'
import { formatAmaxList, parseAmaxList } from '../../src/quant/amax_list.js'
import { type ModelIdentity, modelIdentity } from '../../src/quant/identity.js'
import { formatScales, parseScales, type Scales } from '../../src/quant/scales.js'
import { perSite, sites } from '../../src/quant/sites.js'
import type { WeightTensor } from '../../src/runtime/session.js'

const model: ModelIdentity = { layers: 2, hidden: 4, heads: 2, inner: 16, digest: 'a'.repeat(64) }
const layer = (at: number) =>
  perSite((site) => (site === 'x' ? at + 1 : site === 'outputNorm' ? at + 2 : sites.indexOf(site) / 4))
const scales: Scales = {
  model,
  method: { name: 'percentile', percentile: 99.9 },
  calibration: { cases: 3, tokens: 40, dtype: 'f16' },
  layers: [layer(0), layer(1)],
}
type Json = { [key: string]: unknown; layers: Record<string, unknown>[]; model: Record<string, unknown> }
const edited = (edit: (json: Json) => void): string => {
  const json = JSON.parse(formatScales(scales)) as Json
  edit(json)
  return JSON.stringify(json)
}
const layerOf = (json: Json, at: number) => json.layers[at] ?? {}

describe('a scales file', () => {
  it('is read back unchanged', () => expect(parseScales(formatScales(scales), 's.json', model)).toEqual(scales))
  it('has one text per meaning', () => {
    const turned = { ...scales, layers: scales.layers.map((l) => Object.fromEntries(Object.entries(l).reverse()) as typeof l) }
    expect(formatScales(turned)).toBe(formatScales(scales))
  })
  it('may contain 0, which quantises to 0', () => {
    const text = edited((json) => Object.assign(layerOf(json, 0), { merged: 0 }))
    expect(parseScales(text, 's.json').layers[0]?.merged).toBe(0)
    expect([stepOf(0), stepsPerUnit(0), stepOf(1e-40), stepsPerUnit(1e-40)]).toEqual([0, 0, 0, 0])
    expect([stepOf(127), stepsPerUnit(127)]).toEqual([1, 1])
  })

  const refusals: readonly (readonly [what: string, text: string, code: string, message: string])[] = [
    ['no JSON', '{', 'scales.json', 's.json is not JSON'],
    ['another format', edited((json) => Object.assign(json, { format: 'other' })), 'scales.schema', 's.json: format: '],
    ['a later version', edited((json) => Object.assign(json, { version: 2 })), 'scales.schema', 's.json: version: '],
    ['no model', edited((json) => delete (json as Record<string, unknown>).model), 'scales.schema', 's.json: model: '],
    [
      'an unknown method',
      edited((json) => Object.assign(json, { method: { name: 'best' } })),
      'scales.schema',
      's.json: method.name: ',
    ],
    ['a missing layer', edited((json) => json.layers.pop()), 'scales.layers', 's.json: scales of 1 layers, the model has 2'],
    [
      'a missing site',
      edited((json) => delete layerOf(json, 1).merged),
      'scales.site',
      's.json: layer 1 has no scale for merged',
    ],
    [
      'NaN, which JSON writes as null',
      edited((json) => Object.assign(layerOf(json, 1), { merged: Number.NaN })),
      'scales.site',
      's.json: layer 1 has no scale for merged',
    ],
    [
      'an unknown site',
      edited((json) => Object.assign(layerOf(json, 0), { scores: 1 })),
      'scales.site',
      's.json: layer 0 has a scale for scores, which is not a site',
    ],
    [
      'a negative scale',
      edited((json) => Object.assign(layerOf(json, 0), { merged: -1 })),
      'scales.value',
      's.json: layer 0, merged: the scale is -1',
    ],
    [
      'a text',
      edited((json) => Object.assign(layerOf(json, 0), { merged: '1' })),
      'scales.value',
      's.json: layer 0, merged: the scale is "1"',
    ],
    [
      'an infinite scale',
      formatScales(scales).replace(/"merged": [\d.]+/, '"merged": 1e999'),
      'scales.value',
      's.json: layer 0, merged: the scale is ',
    ],
    [
      'two scales of one activation',
      edited((json) => Object.assign(layerOf(json, 1), { x: 7 })),
      'scales.chain',
      's.json: outputNorm of layer 0 is 2, x of layer 1 is 7: they are the same activation',
    ],
  ]
  it.each(refusals)('refuses %s', (_, text, code, message) => {
    expect(() => parseScales(text, 's.json')).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    )
  })

  it.each([
    ['layers', { layers: 3 }, 'layers 2, this model has 3'],
    ['heads', { heads: 4 }, 'heads 2, this model has 4'],
    ['weights', { digest: 'b'.repeat(64) }, 'weights aaaaaaaaaaaa, this model has bbbbbbbbbbbb'],
  ])('refuses scales of another model by its %s', (_, change, message) => {
    expect(() => parseScales(formatScales(scales), 's.json', { ...model, ...change })).toThrow(
      expect.objectContaining({ code: 'scales.model', message: `s.json: the scales belong to a model with ${message}` }),
    )
  })

  it('is not written with a scale that is not a number', () => {
    const broken = { ...scales, layers: [{ ...layer(0), merged: Number.NaN }, layer(1)] }
    expect(() => formatScales(broken)).toThrow(expect.objectContaining({ code: 'scales.value' }))
  })
})

describe("v3.0's list", () => {
  const maxima = [4, 4, 4, 4, 16, 4].map((rows, i) => new Float32Array(rows).fill(i + 1))
  const text = formatAmaxList(scales, [maxima, maxima])
  const lists = (JSON.parse(text) as { layers: number[][] }).layers
  const plain = (layers: readonly (readonly number[])[]): string => layers.map((list) => list.join(' ')).join('\n')

  it('has four slots a site, then reserved ones, then the channels of the weights', () => {
    const [first = []] = lists
    expect(first).toHaveLength(80 + 9 * 4)
    expect(first.slice(0, 4)).toEqual([1, 1 / 127, 1 / 127 / 127, 127].map(Math.fround))
    expect(first.slice(4, 8)).toEqual([0.25, 0.25 / 127, 0.25 / 127 / 127, 127 / 0.25].map(Math.fround))
    expect(first[32]).toBe(2)
    expect(first.slice(36, 80)).toEqual(Array.from({ length: 44 }, () => 0))
    expect([first[80], first[84], first[96], first[111], first[112]]).toEqual([1, 2, 5, 5, 6])
  })
  it.each([
    ['JSON', text],
    ['plain numbers', plain(lists)],
    ['numbers separated by commas', lists.flat().join(', ')],
  ])('is read back from %s', (_, given) => {
    const { layers, method } = parseAmaxList(given, 'a.txt', model)
    expect(layers).toEqual(scales.layers)
    expect(method).toEqual({ name: 'imported' })
  })
  it('has zeros for a site without magnitude, and reads the infinity that others write there', () => {
    const zero = { ...scales, layers: [{ ...layer(0), merged: 0 }, layer(1)] }
    const [first = [], second = []] = (JSON.parse(formatAmaxList(zero, [maxima, maxima])) as { layers: number[][] }).layers
    expect(first.slice(20, 24)).toEqual([0, 0, 0, 0])
    first[23] = Number.POSITIVE_INFINITY
    expect(parseAmaxList(plain([first, second]).replace('Infinity', 'inf'), 'a.txt', model).layers[0]?.merged).toBe(0)
  })

  const change = (at: number, value: number): string =>
    plain(lists.map((list, i) => (i === 0 ? list.map((number, j) => (j === at ? value : number)) : list)))
  const refusals: readonly (readonly [what: string, text: string, code: string, message: string])[] = [
    [
      'other lengths',
      plain([lists[0]?.slice(1) ?? [], lists[1] ?? []]),
      'amax.length',
      'a.txt has 231 numbers, expected 232: 116 for each layer',
    ],
    ['other layers', JSON.stringify({ layers: [lists[0]] }), 'amax.length', 'a.txt has 1 layers, the model has 2'],
    ['a short layer', JSON.stringify({ layers: [lists[0], [1]] }), 'amax.length', 'a.txt: layer 1 has 1 numbers, expected 116'],
    ['words', plain(lists).replace('0.25', 'abc'), 'amax.number', 'a.txt: "abc" is not a number'],
    ['no JSON', '{', 'amax.json', 'a.txt is not JSON'],
    ['another JSON', '{"layers":1}', 'amax.json', 'a.txt: layers: '],
    ['slots in another order', change(1, 127), 'amax.slots', 'a.txt: layer 0, x: slot 1 is 127, not amax / 127 of 1'],
    ['a negative maximum', change(20, -1), 'scales.value', 'a.txt: layer 0, merged: the scale is -1'],
    ['an infinite maximum', change(20, Number.POSITIVE_INFINITY), 'scales.value', 'a.txt: layer 0, merged: the scale is '],
  ]
  it.each(refusals)('refuses %s', (_, given, code, message) => {
    expect(() => parseAmaxList(given, 'a.txt', model)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    )
  })
  it('is not written for weights of another size', () =>
    expect(() => formatAmaxList(scales, [maxima.slice(1), maxima])).toThrow(expect.objectContaining({ code: 'amax.weights' })))
})

describe('maxima of weights', () => {
  const channels = { query: 4, key: 4, value: 4, projection: 4, fc1: 16, fc2: 4 } as const
  const drawn = (at: number) =>
    Object.fromEntries(
      Object.entries(channels).map(([name, count], i) => [
        name,
        Array.from({ length: count }, (_, c) => Math.fround(0.1 * (i + 1) + 0.01 * c + at)),
      ]),
    )
  const weights = [drawn(0), { ...drawn(1), fc1: 0.75 }]
  const own = [4, 4, 4, 4, 16, 4].map((rows) => new Float32Array(rows).fill(9))

  it('are read back unchanged, and left out for channels with their own', () => {
    const given = { ...scales, weights }
    const text = formatScales(given)
    expect(parseScales(text, 's.json', model)).toEqual(given)
    expect(formatScales(parseScales(text, 's.json'))).toBe(text)
    expect(JSON.parse(text)).toMatchObject({ weights: [{ query: drawn(0).query }, { fc1: 0.75 }] })
    const some = { ...scales, weights: [{}, { key: 2 }] }
    expect(parseScales(formatScales(some), 's.json')).toEqual(some)
    expect(formatScales(scales)).not.toContain('weights')
  })

  it('survive a round trip through a list: importing, exporting and importing again gives the same files', () => {
    const list = formatAmaxList({ ...scales, weights }, [own, own])
    const first = parseAmaxList(list, 'a.json', model)
    expect(formatAmaxList(first, [own, own])).toBe(list)
    expect(formatScales(parseAmaxList(formatAmaxList(first, [own, own]), 'a.json', model))).toBe(formatScales(first))
    expect(first.weights?.[0]).toEqual(weights[0])
    // Channels that are alike are one number; those of a layer without maxima are the weights' own.
    expect(first.weights?.[1]?.fc1).toBe(0.75)
    expect(parseAmaxList(formatAmaxList(scales, [own, own]), 'a.json', model).weights?.[0]?.key).toBe(9)
    // A list of more digits than a float32 has is the same list.
    const digits = list.replaceAll('0.10000000149011612', '0.1')
    expect(digits).not.toBe(list)
    expect(formatScales(parseAmaxList(digits, 'a.json', model))).toBe(formatScales(first))
  })

  it.each([
    ['another number of channels', { ...drawn(1), key: [1, 2] }, 's.json: layer 1: key has 2 maxima, expected 1 or 4'],
    ['a negative one', { ...drawn(1), fc2: [1, 2, -3, 4] }, 's.json: layer 1: the maximum of channel 2 of fc2 is -3'],
    ['a text', { key: 'large' }, 's.json: layer 1: the maximum of key is "large"'],
    ['one beyond float32', { key: 1e39 }, 's.json: layer 1: the maximum of key is 1e+39'],
    ['a matrix that is not there', { qkv: 1 }, 's.json: layer 1: there is no matrix qkv, expected query, key, '],
  ])('are refused with %s', (_, layer, message) => {
    const text = JSON.stringify({ ...(JSON.parse(formatScales(scales)) as Json), weights: [drawn(0), layer] })
    expect(() => parseScales(text, 's.json')).toThrow(
      expect.objectContaining({ code: 'scales.weights', message: expect.stringContaining(message) }),
    )
  })
  it('are refused for another number of layers, and in a list without numbers', () => {
    const text = JSON.stringify({ ...(JSON.parse(formatScales(scales)) as Json), weights: [drawn(0)] })
    expect(() => parseScales(text, 's.json')).toThrow(expect.objectContaining({ code: 'scales.layers' }))
    const list = formatAmaxList(scales, [own, own]).replace(/9]/, '-9]')
    expect(() => parseAmaxList(list, 'a.json', model)).toThrow(expect.objectContaining({ code: 'scales.weights' }))
  })
})

describe('the identity of a model', () => {
  const sizes = { layers: 1, hidden: 4, heads: 2, inner: 8 }
  const tensor = (...values: number[]): WeightTensor => ({
    dtype: 'f32',
    shape: [values.length],
    data: new Uint8Array(Float32Array.from(values).buffer),
  })
  const identity = modelIdentity(sizes, { a: tensor(1, 2, 3), b: tensor(4) })
  it('does not depend on the order of tensors', async () =>
    expect(modelIdentity(sizes, { b: tensor(4), a: tensor(1, 2, 3) })).resolves.toEqual(await identity))
  it.each([
    ['value', { a: tensor(1, 2, 3.5), b: tensor(4) }],
    ['shape', { a: { ...tensor(1, 2, 3), shape: [1, 3] }, b: tensor(4) }],
    ['name', { a: tensor(1, 2, 3), c: tensor(4) }],
  ])('changes with a %s', async (_, weights) =>
    expect((await modelIdentity(sizes, weights)).digest).not.toBe((await identity).digest),
  )
  it('is that of the float32 values', async () => {
    // 1, 2, 3 in bfloat16 are the upper halves of their float32.
    const halves = new Uint8Array(Uint16Array.of(0x3f80, 0x4000, 0x4040).buffer)
    expect(await modelIdentity(sizes, { a: { dtype: 'bf16', shape: [3], data: halves }, b: tensor(4) })).toEqual(await identity)
  })
})
