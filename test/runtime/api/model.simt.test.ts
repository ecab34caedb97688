/** Graphs of a user's project, loaded as its author would: plans agree with bodies, sizes change, states stay, and refusals. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GraphDecl } from '../../../src/lang/graph.js'
import { runOp } from '../../../src/lang/run.js'
import {
  type Device,
  type LoadOptions,
  openDevice,
  type Tensor,
  tensor,
  toNumbers,
  zeros,
} from '../../../src/runtime/api/index.js'
import { compare } from '../../../src/verify/compare.js'
import { betweenResults, tolerance } from '../../../src/verify/tolerance.js'
import { feedForward, fused, remember } from '../../projects/runtime/specs/index.js'
import { rmsNorm } from '../../projects/runtime/specs/ops.js'
import { type GeneratedProject, generateProject } from './project.js'

let project: GeneratedProject
let device: Device
beforeAll(async () => {
  project = await generateProject()
  device = await openDevice('simt', { root: project.root })
})
afterAll(async () => {
  await device?.close()
  await project?.remove()
})

type FloatType = 'f32' | 'f16'
const drawn = (count: number, seed: number, spread = 1): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed) * spread)
const [k, f] = [33, 70]
const weightsOf = (dtype: FloatType) => ({
  up: tensor(dtype, [f, k], drawn(f * k, 1, 0.3)),
  bias: tensor(dtype, [f], drawn(f, 2)),
  down: tensor(dtype, [k, f], drawn(k * f, 3, 0.3)),
  gamma: tensor(dtype, [k], drawn(k, 4)),
})
const inputOf = (dtype: FloatType, t: number, seed = 5): Tensor<FloatType> => tensor(dtype, [t, k], drawn(t * k, seed))
const attrs = { eps: 1e-5 }

/** Reference of the graph, in double precision from stored values. */
function meaning(dtype: FloatType, x: Tensor<FloatType>): { readonly added: number[]; readonly normed: ArrayLike<number> } {
  const { up, bias, down, gamma } = weightsOf(dtype)
  const [w1, b1, w2, values] = [toNumbers(up), toNumbers(bias), toNumbers(down), toNumbers(x)]
  const rows = x.shape[0] ?? 0
  const at = (list: ArrayLike<number>, i: number): number => list[i] ?? Number.NaN
  const dot = (a: ArrayLike<number>, from: number, b: ArrayLike<number>, start: number, n: number): number =>
    Array.from({ length: n }, (_, i) => at(a, from + i) * at(b, start + i)).reduce((sum, each) => sum + each, 0)
  const added: number[] = []
  for (let t = 0; t < rows; t++) {
    const active = Array.from({ length: f }, (_, j) => Math.max(dot(values, t * k, w1, j * k, k) + at(b1, j), 0) ** 2)
    for (let c = 0; c < k; c++) added.push(dot(active, 0, w2, c * f, f) + at(values, t * k + c))
  }
  const normed = runOp(
    rmsNorm,
    { x: { shape: [rows, k], data: added }, gamma: { shape: [k], data: toNumbers(gamma) } },
    { attrs },
  )
  return { added, normed: normed.y?.data ?? [] }
}

const within = (dtype: FloatType, values: ArrayLike<number>) =>
  tolerance({
    dtype,
    class: 'model',
    length: 2,
    scale: Math.sqrt([...Array.from(values)].reduce((sum, v) => sum + v * v, 0) / values.length),
  })

describe.each(['unfused', 'fused'])('under %s', (plan) => {
  test.each(['f32', 'f16'] as const)('a graph equals its bodies in %s, at every size', async (dtype) => {
    const model = await device.load(feedForward, { plan, weights: weightsOf(dtype), attrs })
    expect([model.name, model.plan, model.types]).toEqual(['feed_forward', plan, { T: dtype }])
    for (const t of [1, 7, 64, 7]) {
      const x = inputOf(dtype, t)
      const { normed, added } = await model.run({ x })
      const expected = meaning(dtype, x)
      expect([normed?.shape, added?.dtype]).toEqual([[t, k], dtype])
      for (const [found, wanted] of [
        [normed, expected.normed],
        [added, expected.added],
      ] as const) {
        const numbers = toNumbers(found ?? zeros('f32', [0]))
        expect(compare(numbers, wanted, within(dtype, wanted))).toMatchObject({ passed: true })
        const wrong = Array.from(wanted).with(3, (wanted[3] ?? 0) + 1)
        expect(compare(numbers, wrong, within(dtype, wanted)).passed).toBe(false)
      }
    }
    model.close()
    model.close()
    await expect(model.run({ x: inputOf(dtype, 1) })).rejects.toMatchObject({ code: 'model.closed' })
  })
})

test('two plans agree, and the plan itself names it', async () => {
  const weights = weightsOf('f32')
  const one = await device.load(feedForward, { weights, attrs })
  const two = await device.load(feedForward, { plan: fused, weights, attrs, dtype: 'f32' })
  const x = inputOf('f32', 19)
  const [a, b] = await Promise.all([one.run({ x }), two.run({ x })])
  const wanted = toNumbers(a.normed ?? x)
  expect(compare(toNumbers(b.normed ?? x), wanted, betweenResults(within('f32', wanted)))).toMatchObject({ passed: true })
  one.close()
  two.close()
})

test('inputs, weights and results may be on the device', async () => {
  const host = weightsOf('f16')
  const gamma = await device.upload(host.gamma)
  const model = await device.load(feedForward, { plan: 'fused', weights: { ...host, gamma }, attrs })
  gamma.free()
  const x = inputOf('f16', 5)
  const there = await device.upload(x)
  const kept = await model.run({ x: there }, { keep: true })
  const again = await model.run({ x: kept.added ?? x }, { keep: true })
  const once = await model.run({ x })
  expect((await kept.normed?.read())?.data).toEqual(once.normed?.data)
  const twice = await model.run({ x: once.added ?? x })
  expect((await again.normed?.read())?.data).toEqual(twice.normed?.data)
  model.close()
})

describe('a state', () => {
  const gamma = tensor('f32', [3], [1, 1, 1])
  const step = (place: number, value: number) => ({
    x: tensor('f32', [3], [value, value, value]),
    place: tensor('i32', [1], [place]),
  })

  test('keeps the result of the last run, is read and written, and is not an input', async () => {
    const value = zeros('f32', [2, 3])
    const model = await device.load(remember, { weights: { gamma }, states: { table: { value, next: 'put' } } })
    await model.run(step(1, 4))
    const { put } = await model.run(step(0, 2))
    expect([...(put?.data ?? [])]).toEqual([2, 2, 2, 4, 4, 4])
    expect((await model.states.table.read()).data).toEqual(put?.data)
    await model.states.table.write(tensor('f32', [2, 3], [7, 7, 7, 8, 8, 8]))
    expect([...((await model.run(step(0, 1))).put?.data ?? [])]).toEqual([1, 1, 1, 8, 8, 8])
    expect([...value.data]).toEqual([0, 0, 0, 0, 0, 0])
    await expect(model.run({ ...step(0, 1), table: value } as never)).rejects.toMatchObject({
      code: 'run.input',
      message: 'remember: table is a state, not an input of a run',
    })
    await expect(model.states.table.write(zeros('f32', [3, 2]))).rejects.toMatchObject({ code: 'run.state' })
    model.close()
  })

  test('continues from step to step of a stream', async () => {
    const states = { table: { value: zeros('f32', [3, 3]), next: 'put' } } as const
    const model = await device.load(remember, { weights: { gamma }, states })
    const seen: number[] = []
    const steps = [step(0, 1), step(1, 2), step(2, 3)]
    for await (const { put } of model.stream(steps))
      seen.push(Array.from(put === undefined ? [] : toNumbers(put)).reduce((sum, each) => sum + each, 0))
    expect(seen).toEqual([3, 9, 18])
    const abort = new AbortController()
    const stream = model.stream(steps, { signal: abort.signal })
    await stream.next()
    abort.abort(new Error('enough'))
    await expect(stream.next()).rejects.toThrow('enough')
    expect([...(await model.states.table.read()).data].slice(0, 4)).toEqual([1, 1, 1, 2])
    model.close()
  })

  test('that nothing writes stays', async () => {
    const model = await device.load(feedForward, {
      weights: weightsOf('f32'),
      attrs,
      states: { x: { value: inputOf('f32', 3) } },
    })
    const [one, two] = [await model.run({}), await model.run({})]
    expect(one.normed?.data).toEqual(two.normed?.data)
    model.close()
  })
})

type Options = LoadOptions
const loads: [what: string, change: object, code: string, message: RegExp, hint: RegExp][] = [
  ['an unknown plan', { plan: 'fusd' }, 'load.plan', /there is no plan fusd for graph feed_forward/, /did you mean fused\?/],
  [
    'a plan of another graph',
    { plan: { ...fused, graph: 'other' } },
    'load.plan',
    /is for graph other, not for feed_forward/,
    /./,
  ],
  [
    'a missing weight',
    { weights: { up: weightsOf('f32').up } },
    'load.weight',
    /weight bias is missing/,
    /weights are up, bias, down, gamma/,
  ],
  [
    'a weight too many',
    { weights: { ...weightsOf('f32'), gama: 1 } },
    'load.weight',
    /there is no weight gama/,
    /did you mean gamma/,
  ],
  [
    'a weight that is none',
    { weights: { ...weightsOf('f32'), bias: [1] } },
    'load.tensor',
    /bias: expected a tensor, got an Array/,
    /./,
  ],
  [
    'weights of two types',
    { weights: { ...weightsOf('f32'), bias: weightsOf('f16').bias } },
    'load.dtype',
    /bias is f16, but T is f32 according to up/,
    /converts/,
  ],
  [
    'weights that do not fit',
    { weights: { ...weightsOf('f32'), bias: tensor('f32', [3], [1, 2, 3]) } },
    'load.extent',
    /dimension f is 3 according to bias \[3\], and 70 according to up \[70, 33\]|f is 3 according to bias/,
    /./,
  ],
  ['another type than asked for', { dtype: 'f16' }, 'load.dtype', /up is f32, but T is f16 according to the option dtype/, /./],
  ['an unknown type', { dtype: 'half' }, 'load.dtype', /T cannot be half/, /storage types are/],
  ['a missing attribute', { attrs: {} }, 'load.attrs', /attribute eps is missing/, /eps/],
  [
    'an unknown attribute',
    { attrs: { eps: 1, epsilon: 1 } },
    'load.attrs',
    /there is no attribute epsilon/,
    /attributes are eps/,
  ],
  ['an unknown state', { states: { y: { value: inputOf('f32', 1) } } }, 'load.states', /state y is not an input/, /inputs are x/],
  ['a state without a value', { states: { x: {} } }, 'load.states', /state x has no initial value/, /zeros/],
  [
    'a state that becomes what is not there',
    { states: { x: { value: inputOf('f32', 1), next: 'put' } } },
    'load.states',
    /there is no output put/,
    /outputs are normed, added/,
  ],
  ['an unknown dimension', { dims: { m: 4 } }, 'load.dims', /there is no dimension m/, /dimensions are/],
  ['an unknown option', { wheights: {} }, 'load.option', /load has no option wheights/, /did you mean weights/],
]

test.each(loads)('%s is refused', async (_, change, code, message, hint) => {
  const loading = device.load(feedForward as GraphDecl, { weights: weightsOf('f32'), attrs, ...change } as Options)
  const error: unknown = await loading.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ name: 'HeddleError', class: 'usage', code, message: expect.stringMatching(message) })
  expect((error as { hint?: string }).hint ?? 'none').toMatch(hint)
})

test('inputs that do not fit are refused, and the model continues', async () => {
  const model = await device.load(feedForward, { weights: weightsOf('f32'), attrs })
  const runs: [given: object, code: string, message: string][] = [
    [{}, 'run.input', 'feed_forward: input x is missing'],
    [{ x: inputOf('f32', 1), y: 1 }, 'run.input', 'feed_forward: there is no input y'],
    [{ x: inputOf('f16', 1) }, 'run.dtype', 'feed_forward: x: expected f32, got f16'],
    [{ x: tensor('f32', [k], drawn(k, 1)) }, 'run.rank', `feed_forward: x: expected "t k", of rank 2, got shape [${k}]`],
    [
      { x: zeros('f32', [2, 5]) },
      'run.extent',
      'feed_forward: k is 5 according to x [2, 5], but k is 33 according to up [70, 33]',
    ],
    [{ x: zeros('f32', [0, k]) }, 'run.extent', `feed_forward: x [0, ${k}] has no elements`],
  ]
  for (const [given, code, message] of runs) {
    await expect(model.run(given as never)).rejects.toMatchObject({ class: 'usage', code, message })
  }
  await expect(model.run({ x: inputOf('f32', 1) }, { signal: AbortSignal.abort(new Error('not now')) })).rejects.toThrow(
    'not now',
  )
  expect((await model.run({ x: inputOf('f32', 2) })).normed?.shape).toEqual([2, k])
  model.close()
})
