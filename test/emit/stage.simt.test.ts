/** Elementwise kernels by tiles on the simt device against the evaluation of their body: every shape of tile, aligned rows and others. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { maximum, op, tensor } from 'heddle'
const types = { T: ['f16', 'i8'] } as const
export const turned = op('turned', { dims: ['b', 'm', 'n'], types, inputs: { x: tensor('T', 'b n m') }, outputs: { y: tensor('T', 'b m n') },
  body: ({ x }) => (b, i, j) => ({ y: x(b, j, i) }) })
export const mixed = op('mixed', { dims: ['m', 'n'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'n m'), z: tensor('f32', 'n m'), w: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n'), v: tensor('T', 'm n') },
  body: ({ x, z, w }) => (i, j) => ({ y: x(j, i) * w(i, j), v: i > j ? z(j, i) : 0 }) })
export const apart = op('apart', { dims: ['b', 'm', 'n'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'b n m') }, outputs: { y: tensor('T', 'm b n') },
  body: ({ x }) => (i, b, j) => ({ y: x(b, j, i) }) })
export const before = op('before', { dims: ['m', 'n'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'n m') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (i, j) => ({ y: x(maximum(j - 1, 0), i) }) })
`
const inputs = { x: (i: number) => (i % 101) - 50, z: (i: number) => (i % 37) / 4, w: (i: number) => (i % 3) - 1 }

let host: Host
let kernels: readonly Kernel[]
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('tiles of transposed loads', () => {
  it.each(['turned__f16', 'turned__i8', 'mixed__f16', 'apart__f16', 'before__f16'])('%s', async (key) => {
    const kernel = kernels.find(({ name }) => key.startsWith(`${name}__`))
    if (kernel === undefined) throw new Error(`no kernel ${key}`)
    const complaints: string[] = []
    for (const [m, n] of [
      [1, 1],
      [70, 3],
      [1032, 3],
      [1029, 4],
      [264, 6],
      [259, 13],
      [300, 16],
      [67, 32],
      [3, 200],
      [4, 520],
      [16, 264],
      [15, 201],
      [30, 136],
      [64, 24],
      [128, 64],
      [65, 129],
    ] as const) {
      const subject = { kernel, class: 'exact' as const, inputs, extents: () => ({ b: 2 }) }
      complaints.push(await check(host, subject, host.entry(key), m, n))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
})
