/** Types of calls: every line under an expected error must not compile, and would fail `tsc` if it did. Nothing here runs on a device. */
import { expect, expectTypeOf, test } from 'vitest'
import { appendStep } from '../../../specs/ops/append_step.js'
import { embeddingLookup } from '../../../specs/ops/embedding_lookup.js'
import { layerNorm } from '../../../specs/ops/layer_norm.js'
import { tensor as declare, op } from '../../../src/lang/index.js'
import { type Device, type DeviceTensor, type Tensor, tensor } from '../../../src/runtime/api/index.js'
import { tagger } from '../../projects/program/specs/index.js'
import { feedForward, fused, remember } from '../../projects/runtime/specs/index.js'
import { stack } from '../../projects/stack/specs/index.js'

const mixed = op('mixed', {
  dims: ['m', 'n', 'k'],
  types: { T: ['f32', 'f16'], Q: ['i8', 'u8'] },
  inputs: { x: declare('T', 'm n'), codes: declare('i32', 'm') },
  outputs: { y: declare('Q', 'm k'), z: declare('T', 'm n') },
  body:
    ({ x, codes }) =>
    (m, c) => ({ y: codes(m), z: x(m, c) }),
})

const masked = op('masked', {
  dims: ['n'],
  inputs: { on: declare('bool', 'n'), x: declare('f32', 'n') },
  outputs: { y: declare('f32', 'n'), off: declare('bool', 'n') },
  body:
    ({ on, x }) =>
    (n) => {
      expectTypeOf(on(n)).toEqualTypeOf<boolean>()
      expectTypeOf(x(n)).toEqualTypeOf<number>()
      return { y: on(n) ? x(n) : 0, off: !on(n) }
    },
})

op('numbers_for_conditions', {
  dims: ['n'],
  inputs: { x: declare('f32', 'n') },
  outputs: { on: declare('bool', 'n') },
  body:
    ({ x }) =>
    // @ts-expect-error: the elements of a bool output are conditions
    (n) => ({ on: x(n) }),
})

/** An op made by a function is a value like any other. */
const scaled = (factor: number) =>
  op('scaled', {
    dims: ['n'],
    inputs: { x: declare('f32', 'n') },
    outputs: { y: declare('f32', 'n') },
    attrs: { shift: 0 },
    body:
      ({ x }, { shift }) =>
      (c) => ({ y: factor * x(c) + shift }),
  })

const f32 = tensor('f32', [2, 3], [1, 2, 3, 4, 5, 6])
const row = tensor('f32', [3], [1, 2, 3])
const half = tensor('f16', [3], [1, 2, 3])
const ids = tensor('i32', [2], [0, 1])

/** Never called: only compiled. */
async function calls(device: Device, widened: Tensor): Promise<void> {
  const { y } = await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { attrs: { eps: 1e-6 } })
  expectTypeOf(y).toEqualTypeOf<Tensor<'f32'>>()
  expectTypeOf(y.data).toEqualTypeOf<Float32Array>()

  const kept = await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { keep: true })
  expectTypeOf(kept.y).toEqualTypeOf<DeviceTensor<'f32'>>()
  const again = await device.call(layerNorm, { x: kept.y, gamma: row, beta: row })
  expectTypeOf(again.y).toEqualTypeOf<Tensor<'f32'>>()

  const uploaded = await device.upload(half)
  expectTypeOf(uploaded).toEqualTypeOf<DeviceTensor<'f16'>>()
  expectTypeOf(await uploaded.read()).toEqualTypeOf<Tensor<'f16'>>()

  // The type of a result-only parameter comes from the option, if it is given, and may be any allowed type.
  const { off } = await device.call(masked, { on: tensor('bool', [3], [true, false, true]), x: row })
  expectTypeOf(off).toEqualTypeOf<Tensor<'bool'>>()
  expectTypeOf(off.data).toEqualTypeOf<Uint8Array>()
  // @ts-expect-error: a mask is not a tensor of bytes
  await device.call(masked, { on: tensor('u8', [3], [1, 0, 1]), x: row })
  const both = await device.call(mixed, { x: f32, codes: ids }, { dtype: { Q: 'u8' }, dims: { k: 4 } })
  expectTypeOf(both.y).toEqualTypeOf<Tensor<'u8'>>()
  expectTypeOf(both.z).toEqualTypeOf<Tensor<'f32'>>()
  const open = await device.call(mixed, { x: f32, codes: ids })
  expectTypeOf(open.y).toEqualTypeOf<Tensor<'i8'> | Tensor<'u8'>>()

  const made = await device.call(scaled(2), { x: row }, { attrs: { shift: 1 } })
  expectTypeOf(made.y).toEqualTypeOf<Tensor<'f32'>>()

  // @ts-expect-error there is no input gama
  await device.call(layerNorm, { x: f32, gama: row, beta: row })
  // @ts-expect-error an input more than there is
  await device.call(layerNorm, { x: f32, gamma: row, beta: row, delta: row })
  // @ts-expect-error beta is missing
  await device.call(layerNorm, { x: f32, gamma: row })
  // @ts-expect-error there is no output z
  await device.call(layerNorm, { x: f32, gamma: row, beta: row }).then(({ z }) => z)
  // @ts-expect-error there is no attribute epsilon
  await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { attrs: { epsilon: 1e-6 } })
  // @ts-expect-error the op has no attributes
  await device.call(embeddingLookup, { ids, table: f32 }, { attrs: { eps: 1 } })
  // @ts-expect-error there is no dimension k
  await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { dims: { k: 3 } })
  // @ts-expect-error T is a float
  await device.call(layerNorm, { x: ids, gamma: row, beta: row })
  // @ts-expect-error T cannot be i8
  await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { dtype: 'i8' })
  // @ts-expect-error ids are i32
  await device.call(embeddingLookup, { ids: row, table: f32 })
  // @ts-expect-error Q cannot be f32
  await device.call(mixed, { x: f32, codes: ids }, { dtype: { Q: 'f32' }, dims: { k: 4 } })
  // @ts-expect-error there is no type parameter R
  await device.call(mixed, { x: f32, codes: ids }, { dtype: { R: 'i8' }, dims: { k: 4 } })
  // @ts-expect-error a tensor of another type in widened form is not one of these
  await device.call(layerNorm, { x: widened, gamma: row, beta: row })
  // @ts-expect-error numbers are not a tensor
  await device.call(scaled(2), { x: [1, 2, 3] })
  // @ts-expect-error data of another type
  await device.call(scaled(2), { x: { dtype: 'f32', shape: [1], data: new Float64Array(1) } })
  // @ts-expect-error there is no option attr
  await device.call(layerNorm, { x: f32, gamma: row, beta: row }, { attr: { eps: 1 } })
  // @ts-expect-error an op is not its name
  await device.call('layer_norm', { x: f32, gamma: row, beta: row })
  // @ts-expect-error no such storage type
  tensor('float32', [1], [1])
  await device.call(appendStep, { cache: uploaded, x: half, step: ids }, { keep: true })
}

/** Never called: only compiled. */
async function models(device: Device): Promise<void> {
  const weights = { up: f32, bias: row, down: f32, gamma: row }
  const model = await device.load(feedForward, { plan: fused, weights, attrs: { eps: 1e-6 } })
  const { normed, added } = await model.run({ x: f32 })
  expectTypeOf(normed).toEqualTypeOf<Tensor>()
  const kept = await model.run({ x: added }, { keep: true })
  expectTypeOf(kept.normed).toEqualTypeOf<DeviceTensor>()
  const table = { value: f32, next: 'put' } as const
  const stateful = await device.load(remember, { weights: { gamma: row }, states: { table } })
  await stateful.run({ x: row, place: ids })
  await stateful.states.table.read()

  // @ts-expect-error there is no input y
  await model.run({ x: f32, y: f32 })
  // @ts-expect-error x is missing
  await model.run({})
  // @ts-expect-error there is no output z
  await model.run({ x: f32 }).then(({ z }) => z)
  // @ts-expect-error there is no weight gama
  await device.load(feedForward, { weights: { ...weights, gama: row }, attrs: { eps: 1 } })
  // @ts-expect-error weights are missing
  await device.load(feedForward, { weights: { up: f32 }, attrs: { eps: 1 } })
  // @ts-expect-error there is no attribute epsilon
  await device.load(feedForward, { weights, attrs: { epsilon: 1 } })
  // @ts-expect-error there is no output putt
  await device.load(remember, { weights: { gamma: row }, states: { table: { value: f32, next: 'putt' } } })
  // @ts-expect-error a state is not given
  await stateful.run({ x: row, place: ids, table: f32 })
  // @ts-expect-error there is no such state
  await stateful.states.cache.read()
}

/** Never called: only compiled. */
async function programs(device: Device): Promise<void> {
  const weights = { 'layer0.weight': f32 }
  const model = await device.load(stack, {
    plan: 'fused',
    config: { layers: 1 },
    weights,
    dims: { m: 2 },
    states: { memory: f32 },
  })
  const { y } = await model.run({ x: f32 })
  expectTypeOf(y).toEqualTypeOf<Tensor>()
  expectTypeOf((await model.run({ x: y }, { keep: true })).y).toEqualTypeOf<DeviceTensor>()
  await model.states.memory.write(f32)
  const words = await device.load(tagger, { weights, packed: true, scales: { layer0: { x: 1 } } })
  await words.run({ ids, lengths: ids })

  // @ts-expect-error ids are i32
  await words.run({ ids: f32, lengths: ids })
  // @ts-expect-error there is no input z
  await model.run({ x: f32, z: f32 })
  // @ts-expect-error x is missing
  await model.run({})
  // @ts-expect-error there is no output z
  await model.run({ x: f32 }).then(({ z }) => z)
  // @ts-expect-error there is no state memry
  await model.states.memry.read()
  // @ts-expect-error the configuration has no layer
  await device.load(stack, { weights, config: { layer: 2 } })
  // @ts-expect-error there is no option plans
  await device.load(stack, { weights, plans: 'fused' })
  // @ts-expect-error there is no state memry
  await device.load(stack, { weights, states: { memry: f32 } })
  // @ts-expect-error attributes are of graphs
  await device.load(stack, { weights, attrs: { eps: 1 } })
}

test('storage types of results follow from the arguments', () => {
  expect([typeof calls, typeof models, typeof programs]).toEqual(['function', 'function', 'function'])
})
