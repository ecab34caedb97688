/**
 * What TypeScript says of calls: every line under an expected error is one that must not compile, and would fail `tsc` if it did. Nothing
 * here runs on a device.
 */
import { expect, expectTypeOf, test } from 'vitest'
import { appendStep } from '../../../specs/ops/append_step.js'
import { embeddingLookup } from '../../../specs/ops/embedding_lookup.js'
import { layerNorm } from '../../../specs/ops/layer_norm.js'
import { tensor as declare, op } from '../../../src/lang/index.js'
import { type Device, type DeviceTensor, type Tensor, tensor } from '../../../src/runtime/api/index.js'

const mixed = op('mixed', {
  dims: ['m', 'n', 'k'],
  types: { T: ['f32', 'f16'], Q: ['i8', 'u8'] },
  inputs: { x: declare('T', 'm n'), codes: declare('i32', 'm') },
  outputs: { y: declare('Q', 'm k'), z: declare('T', 'm n') },
  body:
    ({ x, codes }) =>
    (m, c) => ({ y: codes(m), z: x(m, c) }),
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

  // What only results have comes from the option, where it is said, and may be anything that is allowed elsewhere.
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
  // @ts-expect-error numbers are no tensor
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

test('storage types of results follow from what is given', () => {
  expect(typeof calls).toBe('function')
})
