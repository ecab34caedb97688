/**
 * Shipped encoder layers, loaded on their own under their plans without explicit layouts: self-attention under a mask, and attention to another
 * sequence, against the layer written out in double precision.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addedLayers, encoderLayerGelu, memoryLayers, pairLayers } from '../../../specs/graphs/encoder_layer.js'
import type { encoderWeights } from '../../../specs/graphs/encoder_parts.js'
import { type Device, openDevice, type Tensor, tensor, toNumbers } from '../../../src/runtime/api/index.js'
import { compare } from '../../../src/verify/compare.js'
import { modelTolerance } from '../../../src/verify/tolerance.js'
import { root } from '../../conformance/simt.js'
import { layerBy, type Masking } from '../../models/bert_reference.js'
import { noise } from '../../models/fixtures.js'

let device: Device
beforeAll(async () => {
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device?.close()
})

const [heads, headDim, inner, eps] = [3, 10, 44, 1e-12]
const hidden = heads * headDim
const [batch, seq, places] = [8, 5, 7]
const next = noise(3)
const draw = (count: number, spread: number, centre = 0): number[] =>
  Array.from({ length: count }, () => centre + spread * next())

/** Weights of a layer by the graph's names, and those of the reference. */
const shapes: Readonly<Record<string, readonly [name: string, rows: number, columns: number]>> = {
  query: ['attention.self.query', hidden, hidden],
  key: ['attention.self.key', hidden, hidden],
  value: ['attention.self.value', hidden, hidden],
  projection: ['attention.output.dense', hidden, hidden],
  fc1: ['intermediate.dense', inner, hidden],
  fc2: ['output.dense', hidden, inner],
}
const norms = { attention: 'attention.output.LayerNorm', output: 'output.LayerNorm' }
const drawn = [
  ...Object.entries(shapes).flatMap(([name, [of, rows, columns]]) => [
    { name: `${name}Weight`, of: `${of}.weight`, shape: [rows, columns], values: draw(rows * columns, 2 / Math.sqrt(columns)) },
    { name: `${name}Bias`, of: `${of}.bias`, shape: [rows], values: draw(rows, 0.1) },
  ]),
  ...Object.entries(norms).flatMap(([name, of]) => [
    { name: `${name}Gamma`, of: `${of}.weight`, shape: [hidden], values: draw(hidden, 0.1, 1) },
    { name: `${name}Beta`, of: `${of}.bias`, shape: [hidden], values: draw(hidden, 0.1) },
  ]),
].map((each) => ({ ...each, values: Float32Array.from(each.values) }))
const weights = Object.fromEntries(drawn.map(({ name, shape, values }) => [name, tensor('f32', shape, values)])) as Record<
  keyof typeof encoderWeights,
  Tensor<'f32'>
>
const valuesOf = (name: string): ArrayLike<number> => drawn.find(({ of }) => of === name)?.values ?? []
const attrs = { scale: 1 / Math.sqrt(headDim), eps }

const rowsOf = (values: ArrayLike<number>, b: number, length: number): number[][] =>
  Array.from({ length }, (_, s) => Array.from(values).slice((b * length + s) * hidden, (b * length + s + 1) * hidden))
const x = Float32Array.from(draw(batch * seq * hidden, 1))
const memory = Float32Array.from(draw(batch * places * hidden, 1))
const lengths = Array.from({ length: batch }, (_, b) => 1 + ((b * 3) % seq))

/** A mask with rows that keep nothing, whose pairs beyond the lengths say nothing. */
const masked = (keys: number): number[] =>
  Array.from({ length: batch * seq }, (_, row) => Array.from({ length: keys }, () => (row % 4 > 0 && next() > 0 ? 1 : 0))).flat()

/** Result of a layer for the tokens that are not padding. */
const expected = (
  keys: number,
  rows: ArrayLike<number>,
  mask: readonly number[],
  valid: readonly number[],
  masking?: Masking,
): number[] =>
  valid.flatMap((length, b) => {
    const own = Array.from({ length: seq }, (_, s) => mask.slice((b * seq + s) * keys, (b * seq + s) * keys + length))
    const made = layerBy({ heads, eps }, valuesOf, rowsOf(x, b, seq), rowsOf(rows, b, keys).slice(0, length), own, masking)
    return made.slice(0, rows === x ? length : seq).flat()
  })

/** Values of the tokens of sequences in padded rows. */
const valid = (values: ArrayLike<number>): number[] =>
  lengths.flatMap((length, b) => rowsOf(values, b, seq).slice(0, length).flat())
const bound = { absolute: modelTolerance('f32', 1).absolute, relative: 0 }
const tokens = tensor('f32', [batch * seq, hidden], x)

describe('over their own tokens', () => {
  it.each(['unfused', 'ft-v1', 'ft-v2.1', 'best-encoder'])('under %s, by lengths and by a mask', async (plan) => {
    const options = { plan, weights, attrs, dims: { h: heads, d: headDim } }
    const layer = await device.load(encoderLayerGelu, options)
    const pairs = await device.load(pairLayers.gelu, options)
    const given = { x: tokens, lengths: tensor('i32', [batch], lengths) }
    const whole = Array<number>(batch * seq * seq).fill(1)
    const found = compare(valid(toNumbers((await layer.run(given)).hidden)), expected(seq, x, whole, lengths), bound)
    expect(found.passed, found.summary).toBe(true)
    const mask = masked(seq)
    const run = await pairs.run({ ...given, mask: tensor('bool', [batch, seq, seq], mask) })
    const hiddenStates = valid(toNumbers(run.hidden))
    const result = compare(hiddenStates, expected(seq, x, mask, lengths), bound)
    expect(result.passed, result.summary).toBe(true)
    expect(compare(hiddenStates, expected(seq, x, whole, lengths), bound).passed).toBe(false)
    for (const model of [layer, pairs]) model.close()
  })
})

describe('with the masks of FasterTransformer', () => {
  const mask = masked(seq)
  /** Scores near the mask's value have few bits after the point in float32. */
  const masking = (maskValue: number, softmaxEps: number): Masking => ({
    masked: (score) => Math.fround(score + maskValue),
    eps: softmaxEps,
  })

  it.each(['unfused', 'ft-v1', 'ft-v2.1'].flatMap((plan) => [[plan, -10_000, 1e-6] as const, [plan, -2, 0.25] as const]))(
    'under %s, %d is added to scores and %d to the denominator',
    async (plan, maskValue, softmaxEps) => {
      const options = { plan, weights, attrs: { ...attrs, maskValue, softmaxEps }, dims: { h: heads, d: headDim } }
      const layer = await device.load(addedLayers.gelu, options)
      const given = { x: tokens, lengths: tensor('i32', [batch], lengths), mask: tensor('bool', [batch, seq, seq], mask) }
      const found = valid(toNumbers((await layer.run(given)).hidden))
      const result = compare(found, expected(seq, x, mask, lengths, masking(maskValue, softmaxEps)), bound)
      expect(result.passed, result.summary).toBe(true)
      // Removed pairs would give the mean where no pair is left.
      expect(compare(found, expected(seq, x, mask, lengths), bound).passed).toBe(false)
      layer.close()
    },
  )
})

describe('over those of another sequence', () => {
  it.each(['unfused', 'ft-v1', 'best-encoder'])('under %s', async (plan) => {
    const of = Array.from({ length: batch }, (_, b) => 1 + ((b * 5) % places))
    const mask = masked(places)
    const layer = await device.load(memoryLayers.gelu, { plan, weights, attrs, dims: { h: heads, d: headDim } })
    const given = { x: tokens, memory: tensor('f32', [batch * places, hidden], memory), lengths: tensor('i32', [batch], of) }
    const { hidden: found } = await layer.run({ ...given, mask: tensor('bool', [batch, seq, places], mask) })
    const result = compare(toNumbers(found), expected(places, memory, mask, of), bound)
    expect(result.passed, result.summary).toBe(true)
    const flipped = mask.map((kept, at) => (at === (seq + 1) * places ? 1 - kept : kept))
    expect(compare(toNumbers(found), expected(places, memory, flipped, of), bound).passed).toBe(false)
    layer.close()
  })
})
