/** Weights as applications read them: stacked, quantised row by row, in a layout, with steps; made once, from exact values. */
import { describe, expect, it } from 'vitest'
import { layouts } from '../../specs/index.js'
import type { Graph, GraphValue } from '../../src/ir/graph.js'
import type { GraphApplication } from '../../src/runtime/application.js'
import { decode, encode } from '../../src/runtime/buffer.js'
import { findLayout, layoutOffset } from '../../src/runtime/layouts.js'
import { prepareInt8, prepareWeights } from '../../src/runtime/prepare_weights.js'
import { quantiseWeights } from '../../src/runtime/quantise_weights.js'
import type { WeightTensor } from '../../src/runtime/session.js'
import { type Int8Tensor, inMemory, type Weight, weightBytes } from '../../src/runtime/weight.js'
import { normal, random } from '../../src/verify/random.js'

const [rows, columns] = [5, 33]
const exactValues = (name: string): Float32Array => {
  const next = random(name)
  return Float32Array.from({ length: rows * columns }, () => normal(next))
}
const tensors = (dtype: 'f32' | 'f16'): Record<string, WeightTensor> =>
  Object.fromEntries(
    ['q', 'k', 'fc'].map((name) => [name, { dtype, shape: [rows, columns], data: encode(dtype, exactValues(name)) }]),
  )

const value = (dtype: GraphValue['dtype'], layout = 'row'): GraphValue => ({ dtype, shape: [], layout })
const graph: Graph = {
  name: 'layer',
  values: [value('i8'), value('f32'), value('i8', 'col32'), value('f32'), value({ param: 'T' })],
  nodes: [],
  inputs: {},
  weights: { qk: 0, 'qk.steps': 1, fc: 2, 'fc.steps': 3, plain: 4 },
  stacked: { qk: ['query', 'key'], plain: ['query', 'key'] },
  steps: { 'qk.steps': { weight: 'qk', times: 'x.step' }, 'fc.steps': { weight: 'fc', times: 'x.step' } },
  outputs: {},
  attrs: [],
}
const application: GraphApplication = {
  label: 'layer',
  graph,
  inputs: {},
  weights: { query: 'q', key: 'k', fc: 'fc' },
  outputs: {},
  attrs: { 'x.step': 0.5 },
}
const prepare = (given = tensors('f32'), exact = tensors('f32')) => prepareWeights([application], given, layouts, exact)
const numbers = async (weight: Weight | undefined): Promise<number[]> => {
  if (weight === undefined) return []
  const { dtype, data } = await inMemory(weight)
  expect(data.byteLength).toBe(weightBytes(weight))
  return Array.from(decode(dtype, data))
}
const quantised = (name: string) => quantiseWeights({ name, values: exactValues(name), rows, columns })

describe('prepareWeights', () => {
  it('makes only tensors that the application reads', async () => {
    expect(Object.keys(prepare()).sort()).toEqual(['fc:int8:col32', 'fc:steps:0.5', 'q+k', 'q+k:int8:row', 'q+k:steps:0.5'])
  })

  it('makes int8 weights alone, of no other tensors: a stack of floats needs none', () => {
    const { fc } = tensors('f32')
    const halves = {
      ...graph,
      weights: { fc: 2, 'fc.steps': 3, plain: 4 },
      steps: { 'fc.steps': { weight: 'fc', times: 'x.step' } },
    }
    const made = prepareInt8([{ ...application, graph: halves }], { ...(fc === undefined ? {} : { fc }) }, layouts)
    expect(Object.keys(made).sort()).toEqual(['fc:int8:col32', 'fc:steps:0.5'])
  })

  it('quantises the rows of a stack as those of its parts', async () => {
    const made = prepare()
    const parts = ['q', 'k'].map(quantised)
    expect(made['q+k:int8:row']).toMatchObject({ dtype: 'i8', shape: [2 * rows, columns], layout: 'row' })
    expect(await numbers(made['q+k:int8:row'])).toEqual(parts.flatMap(({ values }) => [...values]))
    expect(made['q+k:steps:0.5']).toMatchObject({ dtype: 'f32', shape: [2 * rows] })
    expect(await numbers(made['q+k:steps:0.5'])).toEqual(parts.flatMap(({ scales }) => [...scales].map((step) => 0.5 * step)))
  })

  it('distinguishes the parts of a stack: the other order is another tensor', async () => {
    const swapped = { ...application, weights: { query: 'k', key: 'q', fc: 'fc' } }
    const made = prepareWeights([application, swapped], tensors('f32'), layouts)
    expect(await numbers(made['k+q:int8:row'])).toEqual([...quantised('k').values, ...quantised('q').values])
    expect(await numbers(made['k+q:int8:row'])).not.toEqual(await numbers(made['q+k:int8:row']))
  })

  it('stores into the layout of the plan, padding zero', async () => {
    const made = prepare()['fc:int8:col32']
    const col32 = findLayout(layouts, 'col32', 2)
    const stored = await numbers(made)
    const { values } = quantised('fc')
    expect(made).toMatchObject({ dtype: 'i8', shape: [rows, columns], layout: 'col32' })
    expect(stored).toHaveLength(rows * 64)
    const at = (row: number, column: number): number => layoutOffset(col32, [row, column], [rows, columns])
    for (const [i, each] of values.entries()) expect(stored[at(Math.floor(i / columns), i % columns)]).toBe(each)
    expect(stored.filter((each) => each !== 0)).toHaveLength(values.filter((each) => each !== 0).length)
    expect(stored).not.toEqual([...values])
  })

  it('rounds once: int8 is made from exact values, whatever the model runs in', async () => {
    const made = prepare(tensors('f16'))
    expect(await numbers(made['q+k:int8:row'])).toEqual(await numbers(prepare()['q+k:int8:row']))
    expect(await numbers(made['q+k:steps:0.5'])).toEqual(await numbers(prepare()['q+k:steps:0.5']))
    expect(made['q+k']?.dtype).toBe('f16')
    // The twin: scales of f16 values differ.
    const rounded = { ...tensors('f32') }
    for (const [name, { data }] of Object.entries(tensors('f16'))) {
      rounded[name] = { dtype: 'f32', shape: [rows, columns], data: encode('f32', Float32Array.from(decode('f16', data))) }
    }
    expect(await numbers(prepare(tensors('f16'), rounded)['q+k:steps:0.5'])).not.toEqual(await numbers(made['q+k:steps:0.5']))
  })

  it('makes scales that restore every weight to within half a step', async () => {
    const made = prepare()
    const steps = await numbers(made['q+k:steps:0.5'])
    const values = await numbers(made['q+k:int8:row'])
    const exact = [...exactValues('q'), ...exactValues('k')]
    for (const [i, weight] of exact.entries()) {
      const step = (steps[Math.floor(i / columns)] ?? 0) / 0.5
      expect(Math.abs(weight - (values[i] ?? 0) * step)).toBeLessThanOrEqual(step * 0.5001)
    }
  })

  it('quantises by the given maxima, and clips values beyond them', async () => {
    const own = (name: string) => Array.from({ length: rows }, (_, row) => Math.max(...rowOf(name, row).map(Math.abs)))
    const rowOf = (name: string, row: number) => [...exactValues(name).slice(row * columns, (row + 1) * columns)]
    // The first channels are cut off at half of their largest weight, the others have room for twice as much.
    const halved = own('q').map((amax, row) => Math.fround(row < 2 ? amax / 2 : 2 * amax))
    const whole = Math.fround(Math.max(...own('fc')))
    const maxima = { q: halved, fc: whole }
    const made = prepareWeights([application], tensors('f16'), layouts, tensors('f32'), { maxima })
    // Written out: the nearest number of steps, halves to the even one, within [-127, 127].
    const steps = (value: number, amax: number): number => {
      const exact = (value * 127) / amax
      const down = Math.floor(exact)
      const nearest = exact - down === 0.5 ? down + (down % 2 === 0 ? 0 : 1) : Math.round(exact)
      return Math.min(127, Math.max(-127, nearest)) + 0
    }
    const reference = (name: string, amax: readonly number[]) =>
      amax.flatMap((each, row) => rowOf(name, row).map((value) => steps(value, each)))
    const integers = await numbers(made['q+k:int8:row'])
    expect(integers).toEqual([...reference('q', halved), ...reference('k', own('k'))])
    const worth = [...halved, ...own('k')].map((amax) => Math.fround(amax / 127) / 2)
    expect(await numbers(made['q+k:steps:0.5'])).toEqual(worth.map(Math.fround))
    // Half of the largest and more is 127; a channel with room for twice as much reaches 64.
    expect(integers.slice(0, columns).filter((value) => Math.abs(value) === 127).length).toBeGreaterThan(1)
    expect(Math.max(...integers.slice(2 * columns, 3 * columns).map(Math.abs))).toBe(64)
    // One number for a matrix: every channel has its step.
    expect(new Set(await numbers(made['fc:steps:0.5']))).toEqual(new Set([Math.fround(Math.fround(whole / 127) / 2)]))
    const layout = findLayout(layouts, 'col32', 2)
    const stored = await numbers(made['fc:int8:col32'])
    const wanted = reference('fc', Array(rows).fill(whole))
    for (const [i, value] of wanted.entries()) {
      const index = { [layout.axes[0] ?? '']: Math.floor(i / columns), [layout.axes[1] ?? '']: i % columns }
      expect(stored[layout.offset(index, { [layout.axes[0] ?? '']: rows, [layout.axes[1] ?? '']: columns })]).toBe(value)
    }
    // The twin: maxima equal to those of the weights change nothing.
    const same = prepareWeights([application], tensors('f16'), layouts, tensors('f32'), { maxima: { q: own('q') } })
    expect(await numbers(same['q+k:int8:row'])).toEqual(await numbers(prepare()['q+k:int8:row']))
  })

  it('refuses maxima that do not fit the weights', async () => {
    const made = (maxima: Record<string, number | readonly number[]>) =>
      numbers(prepareWeights([application], tensors('f32'), layouts, tensors('f32'), { maxima })['q+k:int8:row'])
    await expect(made({ k: [1, 2] })).rejects.toMatchObject({
      code: 'quant.maxima',
      message: 'tensor k: expected 5 maxima, one per output channel, got 2',
    })
    await expect(made({ k: [1, 1, 0, 1, 1] })).rejects.toMatchObject({
      code: 'quant.maxima',
      message: expect.stringMatching(/^tensor k: the maximum of channel 2 is 0, its weights reach /),
    })
  })

  it("uses a model's int8 unchanged, with its scales, and makes the rest", async () => {
    const ints = (first: number): Int8Array => Int8Array.from({ length: rows * columns }, (_, i) => ((first + i) % 256) - 128)
    const stored = (first: number): Int8Tensor => ({
      values: { dtype: 'i8', shape: [rows, columns], data: new Uint8Array(ints(first).buffer) },
      steps: {
        dtype: 'f32',
        shape: [rows],
        data: encode(
          'f32',
          Float32Array.from({ length: rows }, (_, row) => first + row),
        ),
      },
    })
    const given = { q: stored(0), k: stored(7) }
    const made = prepareWeights([application], tensors('f16'), layouts, tensors('f32'), { stored: given })
    expect(made['q+k:int8:row']).toMatchObject({ dtype: 'i8', shape: [2 * rows, columns], layout: 'row' })
    expect(await numbers(made['q+k:int8:row'])).toEqual([...ints(0), ...ints(7)])
    expect(await numbers(made['q+k:steps:0.5'])).toEqual([0, 1, 2, 3, 4, 7, 8, 9, 10, 11].map((step) => step / 2))
    expect(await numbers(made['fc:int8:col32'])).toEqual(await numbers(prepare()['fc:int8:col32']))
    // The twin: the integers differ from those of the float weights that the model also has.
    expect(await numbers(made['q+k:int8:row'])).not.toEqual(await numbers(prepare()['q+k:int8:row']))
    // In a layout, integers have the same positions as those made from floats.
    const { values, scales } = quantised('fc')
    const again = {
      values: { ...given.q.values, data: new Uint8Array(values.buffer) },
      steps: { ...given.q.steps, data: encode('f32', scales) },
    }
    const same = prepareWeights([application], tensors('f32'), layouts, {}, { stored: { ...given, fc: again } })
    expect(await numbers(same['fc:int8:col32'])).toEqual(await numbers(prepare()['fc:int8:col32']))
    // For a stack that is partly int8, the rest is made as without it.
    const mixed = prepareWeights([application], tensors('f16'), layouts, tensors('f32'), { stored: { k: given.k } })
    expect(await numbers(mixed['q+k:int8:row'])).toEqual([...quantised('q').values, ...ints(7)])
    const steps = [...quantised('q').scales, 7, 8, 9, 10, 11].map((step) => step / 2)
    expect(await numbers(mixed['q+k:steps:0.5'])).toEqual(steps)
    expect(() => prepareWeights([application], {}, layouts, {}, { stored: { q: given.q } })).toThrow(
      'stack q+k:int8:row: there is no tensor k',
    )
  })

  it.each([
    ['a part that does not exist', { k: undefined }, 'stack q+k:int8:row: there is no tensor k'],
    [
      'parts of different shapes',
      { k: { dtype: 'f32', shape: [rows, 1], data: new Uint8Array(4 * rows) } },
      'its parts are f32 [5, 33] and f32 [5, 1]',
    ],
  ] as const)('refuses %s', (_, change, words) => {
    const given = Object.fromEntries(
      Object.entries<WeightTensor | undefined>({ ...tensors('f32'), ...change }).flatMap(([name, tensor]) =>
        tensor === undefined ? [] : [[name, tensor] as const],
      ),
    )
    expect(() => prepare(given, given)).toThrow(expect.objectContaining({ code: 'program.weight' }))
    expect(() => prepare(given, given)).toThrow(words)
  })
})
