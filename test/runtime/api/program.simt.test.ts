/** Programs of a user, loaded as their author would: equal to their bodies under every plan, run after run, padded and without padding. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { DType } from '../../../src/ir/dtype.js'
import type { ProgramDecl } from '../../../src/lang/program/program.js'
import {
  type Device,
  openDevice,
  type ProgramLoadOptions,
  type Tensor,
  tensor,
  toNumbers,
  zeros,
} from '../../../src/runtime/api/index.js'
import { compare } from '../../../src/verify/compare.js'
import { normal, random } from '../../../src/verify/random.js'
import { tolerance } from '../../../src/verify/tolerance.js'
import { layerOf, sumOf } from '../../program/project.js'
import { graphs, mixers, tagger } from '../../projects/program/specs/index.js'
import { type GeneratedProject, generateProject } from './project.js'

let project: GeneratedProject
let device: Device
beforeAll(async () => {
  project = await generateProject('program')
  device = await openDevice('simt', { root: project.root })
})
afterAll(async () => {
  await device?.close()
  await project?.remove()
})

type FloatType = 'f32' | 'f16'
const [b, s, n, v] = [3, 7, 33, 11]
const drawn = (name: string, shape: readonly number[], dtype: FloatType = 'f32', spread = 1): Tensor<FloatType> => {
  const next = random(name)
  const count = shape.reduce((size, extent) => size * extent, 1)
  return tensor(
    dtype,
    shape,
    Float32Array.from({ length: count }, () => spread * normal(next)),
  )
}
const weightsOf = (layers: number, dtype: FloatType = 'f32'): Record<string, Tensor> =>
  Object.fromEntries(
    Array.from({ length: layers }, (_, layer) => [
      [`layer${layer}.weight`, drawn(`weight${layer}`, [n, n], dtype, 1 / Math.sqrt(n))] as const,
      [`layer${layer}.bias`, drawn(`bias${layer}`, [n], dtype)] as const,
    ]).flat(),
  )
const lengths = tensor('i32', [b], [5, 1, 7])
/** Rows of tokens in their padded places. */
const valid = [5, 1, 7].flatMap((length, sequence) => Array.from({ length }, (_, place) => sequence * s + place))
const rowsAt = (values: ArrayLike<number>, rows: readonly number[]): number[] =>
  rows.flatMap((row) => Array.from({ length: n }, (_, c) => values[row * n + c] ?? Number.NaN))

const layersOf = (x: ArrayLike<number>, weights: Readonly<Record<string, Tensor>>, count: number): ArrayLike<number> => {
  const numbers = (name: string): ArrayLike<number> => toNumbers(weights[name] ?? zeros('f32', [0]))
  let hidden = x
  for (let i = 0; i < count; i++) hidden = layerOf(hidden, numbers(`layer${i}.weight`), numbers(`layer${i}.bias`), n)
  return hidden
}
const near = (found: ArrayLike<number>, wanted: ArrayLike<number>, dtype: FloatType, length = 4) => {
  const scale = Math.sqrt(Array.from(wanted).reduce((sum, each) => sum + each * each, 0) / wanted.length)
  return compare(found, wanted, tolerance({ dtype, class: 'model', length, scale })).passed
}

describe.each(['unfused', 'fused', 'sized', 'ragged'])('under %s', (plan) => {
  test.each(['f32', 'f16'] as const)('four layers and a state equal their bodies in %s', async (dtype) => {
    const weights = weightsOf(4, dtype)
    const model = await device.load(mixers, { plan, weights, dims: { b, s } })
    expect([model.name, model.plan, model.types]).toEqual(['mixers', plan, { T: dtype }])
    const x = drawn('x', [b, s, n], dtype)
    const wanted = layersOf(rowsAt(toNumbers(x), valid), weights, 4)
    let total: ArrayLike<number> = new Float64Array(wanted.length)
    for (let run = 0; run < 3; run++) {
      const { hidden, result } = await model.run({ x, lengths })
      expect([hidden.shape, hidden.dtype]).toEqual([[b * s, n], dtype])
      total = sumOf(total, wanted, n)
      expect(near(rowsAt(toNumbers(hidden), valid), wanted, dtype)).toBe(true)
      expect(near(rowsAt(toNumbers(result), valid), total, dtype)).toBe(true)
      expect(near(rowsAt(toNumbers(result), valid).with(5, 99), total, dtype)).toBe(false)
      expect((await model.states.total?.read())?.data).toEqual(result.data)
    }
    await model.states.total?.write(zeros(dtype, [b * s, n]))
    const { result } = await model.run({ x, lengths })
    expect(near(rowsAt(toNumbers(result), valid), wanted, dtype)).toBe(true)
    model.close()
    await expect(model.run({ x, lengths })).rejects.toMatchObject({ code: 'model.closed' })
  })

  test('ids are inputs and flags outputs, padded as declared', async () => {
    const weights = { ...weightsOf(2), 'words.table': drawn('table', [v, n]) }
    const model = await device.load(tagger, { plan, weights, dims: { b, s }, states: { seen: zeros('f32', [b * s, n]) } })
    // Ids beyond a sequence are not tokens: a plan without padding never reads them.
    const ids = tensor(
      'i32',
      [b, s],
      Array.from({ length: b * s }, (_, i) => (i * 5) % v),
    )
    const { hidden, marks } = await model.run({ ids, lengths })
    const table = toNumbers(weights['words.table'])
    const embedded = valid.flatMap((row) => Array.from({ length: n }, (_, c) => table[(ids.data[row] ?? 0) * n + c] ?? 0))
    const wanted = layersOf(embedded, weights, 2)
    expect(near(rowsAt(toNumbers(hidden), valid), wanted, 'f32')).toBe(true)
    expect(rowsAt(toNumbers(marks), valid)).toEqual(rowsAt(toNumbers(hidden), valid).map((each) => (each > 0 ? 1 : 2)))
    expect([marks.dtype, (await model.states.flags.read()).data]).toEqual(['i32', marks.data])
    if (plan === 'ragged') expect(marks.data.filter((each) => each === 0)).toHaveLength((b * s - valid.length) * n)
    model.close()
  })
})

test('a plan by rows runs the plan for few rows at few, with its bits', async () => {
  const weights = {
    weight: drawn('weight0', [n, n], 'f32', 1 / Math.sqrt(n)),
    bias: drawn('bias0', [n]),
  }
  const plans = ['sized', 'fused', 'unfused'] as const
  const models = await Promise.all(plans.map((plan) => device.load(graphs.mixer, { plan, weights })))
  for (const rows of [14, 15]) {
    const x = drawn('x', [rows, n])
    const [sized, few, many] = await Promise.all(models.map(async (model) => (await model.run({ x })).hidden.data))
    expect(sized).toEqual(rows === 14 ? few : many)
    expect(few).not.toEqual(many)
  }
  for (const model of models) model.close()
})

test('results do not depend on their storage form, and sizes change from run to run if no state has them', async () => {
  const weights = weightsOf(1)
  const graphWeights = {
    weight: weights['layer0.weight'] ?? zeros('f32', [0]),
    bias: weights['layer0.bias'] ?? zeros('f32', [0]),
  }
  const padded = await device.load(graphs.mixer, { plan: 'unfused', weights: graphWeights })
  const packed = await device.load(graphs.mixer, { plan: 'ragged', weights: graphWeights, dims: { s } })
  for (const counts of [[5, 1, 7], [7], [0, 2]]) {
    const x = drawn('x', [counts.length * s, n])
    const [all, held] = [await padded.run({ x }), await packed.run({ x, lengths: tensor('i32', [counts.length], counts) })]
    const rows = counts.flatMap((length, i) => Array.from({ length }, (_, place) => i * s + place))
    expect(rowsAt(toNumbers(held.hidden), rows)).toEqual(rowsAt(toNumbers(all.hidden), rows))
    const rest = Array.from({ length: counts.length * s }, (_, row) => row).filter((row) => !rows.includes(row))
    expect(rowsAt(toNumbers(held.hidden), rest).every((each) => each === 0)).toBe(true)
  }
  padded.close()
  packed.close()
})

test('rows without padding are inputs and outputs on request', async () => {
  const weights = weightsOf(4)
  const padded = await device.load(mixers, { plan: 'ragged', weights, dims: { b, s } })
  const packed = await device.load(mixers, { plan: 'ragged', weights, dims: { b, s }, packed: true })
  const x = drawn('x', [b, s, n])
  const rows = tensor('f32', [valid.length, n], rowsAt(toNumbers(x), valid))
  const [one, two] = [await padded.run({ x, lengths }), await packed.run({ x: rows, lengths })]
  expect(two.hidden.shape).toEqual([valid.length, n])
  expect(Array.from(toNumbers(two.hidden))).toEqual(rowsAt(toNumbers(one.hidden), valid))
  await expect(packed.run({ x: drawn('y', [12, n]), lengths })).rejects.toMatchObject({
    code: 'run.lengths',
    message: 'mixers: sequences of 13 tokens, according to lengths, do not fit into 12 rows',
  })
  await expect(packed.run({ x: drawn('y', [22, n]), lengths })).rejects.toMatchObject({ code: 'run.lengths' })
  padded.close()
  packed.close()
})

test('int8 uses the given scales, and no others', async () => {
  const weights = weightsOf(2)
  const x = drawn('x', [b, s, n])
  const config = { layers: 2 }
  const exact = layersOf(toNumbers(x), weights, 2)
  const error = async (amax: number): Promise<number> => {
    const scales = { layer0: { x: amax }, layer1: { x: amax } }
    const model = await device.load(mixers, { plan: 'int8', config, weights, dims: { b, s }, scales })
    const { hidden } = await model.run({ x, lengths })
    model.close()
    const values = toNumbers(hidden)
    return Math.sqrt(Array.from(exact).reduce((sum, each, i) => sum + (each - (values[i] ?? 0)) ** 2, 0) / exact.length)
  }
  // A step of 6/127 moves an element by a quarter of one at most, and sums of 33 of them by little more.
  expect(await error(6)).toBeLessThan(0.1)
  expect(await error(0.5)).toBeGreaterThan(0.3)
  const loading = device.load(mixers, { plan: 'int8', config, weights, dims: { b, s }, scales: { layer0: { x: 6 } } })
  await expect(loading).rejects.toMatchObject({
    code: 'load.scales',
    message: 'mixers: plan int8 stores x of layer1 as int8 and needs its scale',
  })
  const graph = { weight: weights['layer0.weight'] ?? zeros('f32', [0]), bias: weights['layer0.bias'] ?? zeros('f32', [0]) }
  const one = await device.load(graphs.mixer, { plan: 'int8', weights: graph, scales: { x: 6 } })
  const two = await device.load(mixers, {
    plan: 'int8',
    config: { layers: 1 },
    weights: weightsOf(1),
    dims: { b, s },
    scales: { layer0: { x: 6 } },
  })
  const [first, second] = [await one.run({ x: tensor('f32', [b * s, n], toNumbers(x)) }), await two.run({ x, lengths })]
  expect(first.hidden.data).toEqual(second.hidden.data)
})

test('a stream continues with the state, and without a plan one is chosen and named', async () => {
  const model = await device.load(mixers, { weights: weightsOf(4), dims: { b, s } })
  expect([model.plan, model.planReason]).toEqual(['unfused', 'the device has its own matmul'])
  const x = drawn('x', [b, s, n])
  const seen: Tensor[] = []
  for await (const { result } of model.stream([
    { x, lengths },
    { x, lengths },
  ]))
    seen.push(result)
  const [one, two] = seen.map((each) => toNumbers(each as Tensor<DType>))
  expect(two?.[3]).toBeCloseTo(2 * (one?.[3] ?? 0), 4)
  model.close()
})

const loads: [what: string, change: object, code: string, message: RegExp, hint: RegExp][] = [
  ['an unknown plan', { plan: 'fusd' }, 'load.plan', /there is no plan fusd for program mixers/, /did you mean fused\?/],
  ['attributes', { attrs: { eps: 1 } }, 'load.attrs', /a program has no attributes/, /config/],
  [
    'a configuration without layers',
    { config: { layers: -1 } },
    'program.repeat',
    /expected a number of repetitions, got -1/,
    /whole/,
  ],
  ['a missing weight', { weights: {} }, 'load.weight', /weight layer0.weight is missing/, /layer3.bias/],
  [
    'a weight too many',
    { weights: { ...weightsOf(4), 'layer4.bias': 1 } },
    'load.weight',
    /no weight layer4.bias/,
    /did you mean layer/,
  ],
  ['a state without a size', { dims: { b } }, 'load.dims', /the size of dimension s is unknown/, /dims: { s/],
  ['an unknown state', { states: { totl: zeros('f32', [1]) } }, 'load.states', /there is no state totl/, /did you mean total/],
  [
    'a state that does not fit',
    { states: { total: zeros('f32', [4, n]) } },
    'load.extent',
    /4 according to total \[4, 33\]/,
    /./,
  ],
  ['a state of another type', { states: { total: zeros('f16', [b * s, n]) } }, 'load.dtype', /total is f16, but T is f32/, /./],
]
test.each(loads)('%s is refused', async (_, change, code, message, hint) => {
  const options = { weights: weightsOf(4), dims: { b, s }, ...change } as ProgramLoadOptions
  const error: unknown = await device.load(mixers as ProgramDecl, options).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'HeddleError', class: 'usage', code, message: expect.stringMatching(message) })
  expect((error as { hint?: string }).hint ?? 'none').toMatch(hint)
})

test('inputs that do not fit are refused, and the model continues', async () => {
  const model = await device.load(mixers, { weights: weightsOf(4), dims: { b, s } })
  const x = drawn('x', [b, s, n])
  const runs: [given: object, code: string, message: string][] = [
    [{ x }, 'run.input', 'mixers: input lengths is missing'],
    [{ x, lengths, total: x }, 'run.input', 'mixers: total is a state, not an input of a run'],
    [{ x, lengths: tensor('f32', [b], [1, 1, 1]) }, 'run.dtype', 'mixers: lengths: expected i32, got f32'],
    [{ x: drawn('x', [b * s, n]), lengths }, 'run.rank', 'mixers: x: expected "b s n", of rank 3, got shape [21, 33]'],
    [
      { x: drawn('x', [b, 4, n]), lengths },
      'run.extent',
      'mixers: s is 4 according to x [3, 4, 33], but s is 7 according to dims',
    ],
    [{ x, lengths: tensor('i32', [b], [8, 1, 1]) }, 'run.lengths', 'mixers: sequence 0 has length 8 according to lengths'],
    [{ x, lengths: tensor('i32', [b], [1, 1, -1]) }, 'run.lengths', 'mixers: sequence 2 has length -1 according to lengths'],
  ]
  for (const [given, code, message] of runs) {
    await expect(model.run(given as never)).rejects.toMatchObject({ class: 'usage', code, message })
  }
  expect((await model.run({ x, lengths })).hidden.shape).toEqual([b * s, n])
  model.close()
})
