/** Ops of a user's project, called as its author would, on the CPU device: odd sizes, every storage type, in place, and error reports. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runOp } from '../../../src/lang/run.js'
import type { Op } from '../../../src/lang/types.js'
import { type Device, openDevice, type Tensor, tensor, toNumbers, zeros } from '../../../src/runtime/api/index.js'
import { compare } from '../../../src/verify/compare.js'
import { tolerance } from '../../../src/verify/tolerance.js'
import { putRow, quantiseRows, repeatColumns, rmsNorm, takeRows } from '../../projects/runtime/specs/ops.js'
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

type FloatType = 'f32' | 'f16' | 'bf16'
const floats: readonly FloatType[] = ['f32', 'f16', 'bf16']
const drawn = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.sin(12.9898 * (i + 1) + 78.233 * seed) * 3)
const floatTensor = (dtype: FloatType, shape: readonly number[], seed: number): Tensor<FloatType> =>
  tensor(
    dtype,
    shape,
    drawn(
      shape.reduce((product, extent) => product * extent, 1),
      seed,
    ),
  )

/** The numbers of every result of the body over the same elements. */
function expectedOf(of: Op, inputs: Readonly<Record<string, Tensor>>, attrs: Readonly<Record<string, number>> = {}) {
  const numbers = Object.entries(inputs).map(([key, given]) => [key, { shape: given.shape, data: toNumbers(given) }] as const)
  return runOp(of, Object.fromEntries(numbers), { attrs })
}

const rows = (dtype: FloatType, length: number) => tolerance({ dtype, class: 'reduction', length, scale: 3 })
const sizes = [
  [1, 1],
  [7, 3],
  [3, 33],
  [5, 129],
  [2, 1025],
  [65, 96],
] as const

describe.each(floats)('in %s', (dtype) => {
  test.each(sizes)('a norm over %i rows of %i equals its body', async (t, k) => {
    const inputs = { x: floatTensor(dtype, [t, k], 1), gamma: floatTensor(dtype, [k], 2) }
    for (const attrs of [{}, { eps: 0.25 }]) {
      const { y } = await device.call(rmsNorm, inputs, { attrs })
      expect([y.dtype, y.shape]).toEqual([dtype, [t, k]])
      const expected = expectedOf(rmsNorm, inputs, attrs).y?.data ?? []
      expect(compare(toNumbers(y), expected, rows(dtype, k))).toMatchObject({ passed: true })
      // A twin: the result of another attribute is noticed.
      const other = expectedOf(rmsNorm, inputs, { eps: 9 }).y?.data ?? []
      expect(compare(toNumbers(y), other, rows(dtype, k)).passed).toBe(false)
    }
  })

  test('integers and floats come out of one kernel', async () => {
    const x = floatTensor(dtype, [9, 37], 3)
    const { q, step } = await device.call(quantiseRows, { x })
    expect([q.dtype, step.dtype, q.shape, step.shape]).toEqual(['i8', 'f32', [9, 37], [9]])
    const expected = expectedOf(quantiseRows, { x })
    const within = (type: 'i8' | 'f32') => tolerance({ dtype: type, class: 'elementwise' })
    expect(compare(q.data, expected.q?.data ?? [], within('i8'))).toMatchObject({ passed: true })
    expect(compare(step.data, expected.step?.data ?? [], within('f32'))).toMatchObject({ passed: true })
    expect(Math.max(...q.data)).toBe(127)
  })

  test('a row is written into a table in place', async () => {
    const table = floatTensor(dtype, [5, 19], 4)
    const held = await device.upload(table)
    const x = floatTensor(dtype, [19], 5)
    const { y } = await device.call(putRow, { table: held, x, place: tensor('i32', [1], [3]) }, { keep: true })
    expect(y).toBe(held)
    const expected = table.data.slice()
    expected.set(x.data, 3 * 19)
    expect((await held.read()).data).toEqual(expected)
    // A call with a host tensor changes a copy.
    const { y: copy } = await device.call(putRow, { table, x, place: tensor('i32', [1], [0]) })
    expect(copy.data.slice(0, 19)).toEqual(x.data)
    expect(copy.data.slice(19)).toEqual(table.data.slice(19))
    held.free()
  })
})

test('a chain of calls stays on the device', async () => {
  const x = floatTensor('f16', [33, 70], 6)
  const ones = tensor('f16', [70], new Array<number>(70).fill(1))
  const { y: once } = await device.call(rmsNorm, { x, gamma: ones }, { keep: true })
  const { y: twice } = await device.call(rmsNorm, { x: once, gamma: ones }, { keep: true })
  const { q } = await device.call(quantiseRows, { x: twice })
  const host = await device.call(rmsNorm, { x: await once.read(), gamma: ones })
  expect((await twice.read()).data).toEqual(host.y.data)
  expect(q.data).toEqual((await device.call(quantiseRows, { x: host.y })).q.data)
})

test('a dimension of the result alone is given', async () => {
  const x = tensor('bf16', [3], [1, 2, 3])
  const { y } = await device.call(repeatColumns, { x }, { dims: { k: 2 } })
  expect([...toNumbers(y)]).toEqual([1, 1, 2, 2, 3, 3])
  await expect(device.call(repeatColumns, { x })).rejects.toMatchObject({ code: 'call.dims' })
})

test('nothing in, nothing out', async () => {
  const { y } = await device.call(rmsNorm, { x: zeros('f32', [0, 8]), gamma: floatTensor('f32', [8], 1) as Tensor<'f32'> })
  expect(y.shape).toEqual([0, 8])
  const empty = await device.upload(zeros('i8', [0]))
  expect((await empty.read()).data).toHaveLength(0)
})

test('an out-of-bounds read is found, and the device continues', async () => {
  const table = floatTensor('f32', [4, 3], 7)
  const call = (row: number) => device.call(takeRows, { rows: tensor('i32', [1], [row]), table })
  await expect(call(4)).rejects.toMatchObject({
    class: 'finding',
    code: 'device.fault',
    message: expect.stringContaining('table'),
  })
  expect((await call(3)).y.data).toEqual(table.data.slice(9))
})

test('concurrent calls get their own results', async () => {
  const gamma = floatTensor('f32', [17], 1)
  const calls = Array.from({ length: 40 }, (_, i) => {
    const x = floatTensor('f32', [1 + (i % 5), 17], i)
    return { x, result: device.call(rmsNorm, { x, gamma }) }
  })
  for (const { x, result } of calls) {
    const expected = expectedOf(rmsNorm, { x, gamma }).y?.data ?? []
    expect(compare(toNumbers((await result).y), expected, rows('f32', 17))).toMatchObject({ passed: true })
  }
})

test('without a kind, the available device is used, and the others are reported', async () => {
  await using found = await openDevice(undefined, { root: project.root })
  expect(found.info.kind).toBe(found.kind)
  expect(found.skipped.map(({ kind }) => kind)).toEqual(found.kind === 'cuda' ? [] : ['cuda'])
})

describe('unavailable devices and kernels', () => {
  test('a device kind', async () => {
    await expect(openDevice('gpu' as 'cuda')).rejects.toMatchObject({
      code: 'device.kind',
      hint: expect.stringContaining('devices are js, simt, cuda'),
    })
  })

  test('a folder', async () => {
    await expect(openDevice('simt', { root: '/nowhere/at/all' })).rejects.toMatchObject({ code: 'device.root' })
  })

  test('a kernel of the project', async () => {
    const other = { ...rmsNorm, name: 'other_norm' }
    await expect(device.call(other, { x: zeros('f32', [1, 1]), gamma: zeros('f32', [1]) })).rejects.toMatchObject({
      code: 'call.kernel',
      message: 'no kernel other_norm__f32 was generated for other_norm',
    })
  })
})
