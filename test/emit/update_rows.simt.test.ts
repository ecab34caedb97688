/** Rows that are read at other indices while they are replaced, and numbers replaced together with their rows, on the simt device against the IR. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel, type HostTensor } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { placeUpdates } from '../../src/ir/update.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const text = `import { abs, max, op, row, scan, sum, tensor } from 'heddle'
// A shifting window, with an output from its old values.
export const window = op('window', {
  dims: ['m', 'k', 'n', 'v'],
  inputs: { state: tensor('f32', 'm k n'), x: tensor('f32', 'm k'), weight: tensor('f32', 'k v') },
  outputs: { next: tensor('f32', 'm k n'), y: tensor('f32', 'm k') },
  updates: { next: 'state' },
  facts: { v: 'n+1', n: { atLeast: 1 } },
  body: ({ state, x, weight }, { n }) => (m, k) => {
    const z = sum(n, (c) => state(m, k, c) * weight(k, c + 0)) + x(m, k) * weight(k, n)
    return { next: row(n, (c) => (c === n - 1 ? x(m, k) : state(m, k, c + 1))), y: z }
  },
})
// The same per element, with another output, for channels in the last axis.
export const channels = op('channels', {
  dims: ['m', 'n', 'k'],
  inputs: { state: tensor('f32', 'm n k'), x: tensor('f32', 'm k') },
  outputs: { past: tensor('f32', 'm n k'), next: tensor('f32', 'm n k') },
  updates: { next: 'state' },
  body: ({ state, x }, { n }) => (m, c, k) => {
    const isLast = c === n - 1
    return { past: state(m, c, k) + x(m, k), next: isLast ? x(m, k) : state(m, c + 1, k) }
  },
})
// A whole row reversed and scaled by its own sums, in halves.
export const reversed = op('reversed', {
  dims: ['m', 'n'], types: { T: ['f16'] },
  inputs: { a: tensor('T', 'm n') },
  outputs: { b: tensor('T', 'm n'), partial: tensor('f32', 'm n') },
  updates: { b: 'a' },
  body: ({ a }, { n }) => (m) => {
    const v = row(n, (c) => a(m, n - 1 - c) * 0.5)
    const top = max(n, (c) => v(c))
    return { b: row(n, (c) => (top > 4 ? v(c) : a(m, c))), partial: row(n, (c) => a(m, n - 1 - c) + v(c)) }
  },
})
// Two states of different lengths, one a sum up to each element, one a ring that advances by one.
export const states = op('states', {
  dims: ['m', 'n', 'k'],
  inputs: { a: tensor('f32', 'm n'), ring: tensor('i32', 'm k'), at: tensor('i32', 'm') },
  outputs: { b: tensor('f32', 'm n'), turned: tensor('i32', 'm k') },
  updates: { b: 'a', turned: 'ring' },
  facts: { at: { index: 'k' } },
  body: ({ a, ring, at }, { n, k }) => (m) => {
    const all = scan(n, (c) => a(m, c))
    return { b: row(n, (c) => all(n - 1 - c)), turned: row(k, (c) => ring(m, (c + at(m)) % k)) }
  },
})
// Codes with the scale of their row, both replaced; and a scale that is replaced together with a row that updates nothing.
export const codes = op('codes', {
  dims: ['m', 'n'],
  inputs: { code: tensor('i8', 'm n'), scale: tensor('f32', 'm'), g: tensor('f32', 'm n') },
  outputs: { code2: tensor('i8', 'm n'), scale2: tensor('f32', 'm') },
  updates: { code2: 'code', scale2: 'scale' },
  facts: { n: { atLeast: 1 }, scale: { from: 0.5, to: 4 } },
  body: ({ code, scale, g }, { n }) => (m) => {
    const v = row(n, (c) => code(m, c) * scale(m) + g(m, c))
    const top = max(n, (c) => abs(v(c)))
    return { code2: row(n, (c) => (v(c) > 0 ? 1 : -1)), scale2: top }
  },
})
export const halved = op('halved', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n'), scale: tensor('f32', 'm') },
  outputs: { y: tensor('f32', 'm n'), scale2: tensor('f32', 'm') },
  updates: { scale2: 'scale' },
  body: ({ x, scale }, { n }) => (m) => ({ scale2: scale(m) / 2, y: row(n, (c) => x(m, c) * scale(m)) }),
})
`

/** Small integers that differ from their neighbours. */
const counted = (i: number): number => ((i * 37) % 101) - 50
const inputs = {
  state: counted,
  a: (i: number): number => ((i * 7) % 13) - 4,
  ring: counted,
  at: (i: number, { k }: Readonly<Record<string, number>>): number => (i * 3 + 1) % (k ?? 1),
  scale: (i: number): number => 1 + (i % 3),
}
const extents: Readonly<Record<string, (n: number) => Record<string, number>>> = {
  window: (n) => ({ k: 3, v: n + 1 }),
  channels: () => ({ k: 5 }),
  states: () => ({ k: 7 }),
}

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => {
  const kernel = kernels.find((candidate) => candidate.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}
beforeAll(async () => {
  const specs = read(text)
  expect(specs.diagnostics.filter(({ code }) => code !== 'HED112')).toEqual([])
  kernels = specs.kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

describe('rows that are read elsewhere while they are replaced', () => {
  it.each(['window', 'channels', 'reversed', 'states', 'codes', 'halved'])('%s', async (name) => {
    const kernel = named(name)
    const complaints: string[] = []
    // One thread, some lanes, one warp and one block per row, and multi-pass rows.
    for (const [m, n] of [
      [1, 1],
      [3, 3],
      [130, 4],
      [5, 100],
      [2, 250],
      [2, 1027],
      [600, 900],
      [1, 4000],
    ] as const) {
      if (name === 'reversed' || m * n < 5000) {
        const subject = { kernel, class: 'exact' as const, inputs, ...(extents[name] && { extents: extents[name] }) }
        complaints.push(await check(host, subject, host.entry(name === 'reversed' ? 'reversed__f16' : name), m, n))
      }
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
  it('refuses at launch a row that there is no memory for', async () =>
    await expect(
      check(host, { kernel: named('window'), class: 'exact', extents: () => ({ k: 1, v: 8194 }) }, host.entry('window'), 1, 8193),
    ).rejects.toThrow('elements of a row that is kept whole'))
})

describe('stored rows', () => {
  const kept = (name: string) =>
    placeUpdates(named(name)).body.flatMap((s) => (s.kind === 'row' && s.kept !== undefined ? [[s.name, s.kept]] : []))
  it('are those read elsewhere, in memory that they divide', () => {
    expect(kept('window')).toEqual([['next_whole', 8192]])
    expect(kept('states')).toEqual([
      ['b_whole', 4096],
      ['turned_whole', 4096],
    ])
    expect(kept('codes')).toEqual([])
    expect(kept('halved')).toEqual([])
  })
  it('equal the body', () => {
    const kernel = named('channels')
    const tensor = (shape: readonly number[]): HostTensor => ({
      shape,
      data: Float64Array.from({ length: shape.reduce((a, b) => a * b, 1) }, (_, i) => counted(i)),
    })
    const given = { state: tensor([2, 3, 4]), x: tensor([2, 4]) }
    const dims = { m: 2, n: 3, k: 4 }
    const values = (of: Kernel) => Array.from(evaluateKernel(of, given, dims).next?.data ?? [])
    expect(values(placeUpdates(kernel))).toEqual(values(kernel))
    const { state, x } = given
    const shifted = Array.from(state.data, (_, i) => {
      const [m, c, k] = [Math.floor(i / 12), Math.floor(i / 4) % 3, i % 4]
      return c === 2 ? x.data[m * 4 + k] : state.data[i + 4]
    })
    expect(values(kernel)).toEqual(shifted)
  })
})
