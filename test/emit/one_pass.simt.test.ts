/** Maxima and the sums of exponentials shifted by them on the CPU device: in blocks that read rows again, and in rows that the grid divides. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels, type Subject } from './host.js'

/** Rows that are divided from 1,536 or 768 elements on, and rows that are never divided: a block reads them again from 8,193 on. */
const body = `body: ({ a, p }, { n }) => (m) => {
  const v = row(n, (c) => a(m, c) * 2)
  const peak = max(n, v)
  const e = row(n, (c) => exp((v(c) - peak) * 0.5))
  const whole = sum(n, (c) => e(c))
  const mean = sum(n, (c) => e(c) * p(m, c)) / whole
  return { peak, mean, size: log(whole), y: row(n, (c) => e(c) / whole) }
}`
const about = `dims: ['m', 'n'], types: { T: ['f32', 'f16'] }, inputs: { a: tensor('T', 'm n'), p: tensor('T', 'm n') },
  outputs: { peak: tensor('f32', 'm'), mean: tensor('f32', 'm'), size: tensor('f32', 'm'), y: tensor('T', 'm n') }, `
const text = `import { exp, log, max, op, row, sum, tensor } from 'heddle'
export const divided = op('divided', { ${about} ${body} })
export const again = op('again', { ${about} facts: { n: { atMost: 20000 } }, ${body} })
export const loss = op('loss', { dims: ['m', 'n'], types: { T: ['f32', 'f16'] }, inputs: { a: tensor('T', 'm n') }, outputs: { y: tensor('f32', 'm') },
  body: ({ a }, { n }) => (m) => { const top = max(n, (c) => a(m, c)); return { y: top + log(sum(n, (c) => exp(a(m, c) - top))) } } })`

let host: Host
let kernels: readonly Kernel[]
const named = (name: string): Kernel => kernels.find((each) => each.name === name) ?? expect.fail(name)
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

const sizes: Readonly<Record<string, readonly (readonly [number, number])[]>> = {
  divided: [
    [3, 1537],
    [2, 9001],
    [1, 20_480],
    [3, 4096],
    [2, 1],
  ],
  again: [
    [2, 8193],
    [1, 16_384],
    [2, 19_999],
  ],
  loss: [
    [3, 1537],
    [2, 9001],
    [1, 40_960],
    [5, 31],
  ],
}
const rising = (i: number): number => ((i * 131) % 20_011) / 1000 - (i % 3)
const [low, high] = [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY]
const inputs = { p: (i: number) => ((i * 7) % 11) - 4 }

describe.each(['divided', 'again', 'loss'])('%s', (name) => {
  const subject = (a: (i: number) => number): Subject => ({ kernel: named(name), class: 'reduction', inputs: { ...inputs, a } })

  it('is one reduction', () => {
    const mapped = mapKernel({ kernel: named(name), types: { T: 'f16' }, dims: {} })
    const { program } = mapped.split?.inRows?.mapped ?? mapped
    expect(program.kind === 'rows' && program.joined).toBeTruthy()
    expect(mapped.split === undefined ? 0 : mapped.split.before.length).toBe(name === 'divided' ? 1 : 0)
  })

  it.each(['f32', 'f16'])('%s rows are those of the body', async (T) => {
    for (const [m, n] of sizes[name] ?? [])
      for (const a of [rising, (i: number) => rising(m * n - i)])
        expect(await check(host, subject(a), host.entry(`${name}__${T}`), m, n)).toBe('')
  })

  it.each<[string, (i: number, n: number) => number]>([
    ['an only element above -infinity', (i, n) => (i % n === n - 2 ? 1 : low)],
    ['-infinity in the first half', (i, n) => (i % n < n / 2 ? low : rising(i))],
  ])('of %s are those of the body', async (_, a) => {
    for (const [m, n] of sizes[name] ?? [])
      if (n > 700)
        expect(
          await check(
            host,
            subject((i) => a(i, n)),
            host.entry(`${name}__f16`),
            m,
            n,
          ),
        ).toBe('')
  })

  it.each<[string, (i: number, n: number) => number]>([
    ['-infinity alone', () => low],
    ['an element of infinity', (i, n) => (i % n === 700 ? high : rising(i))],
    ['NaN at the end', (i, n) => (i % n === n - 1 ? Number.NaN : rising(i))],
  ])('of %s have no numbers but the maximum', async (_, a) => {
    for (const [m, n] of sizes[name] ?? []) {
      if (n <= 700) continue
      const made = await launch(host, named(name), host.entry(`${name}__f16`), { m, n }, (tensor) =>
        tensor === 'a' ? (i) => a(i, n) : inputs.p,
      )
      const wanted = evaluateKernel(named(name), made.inputs, { m, n })
      for (const { tensor, stored } of made.outputs)
        expect(Array.from(stored)).toEqual(Array.from(wanted[tensor.name]?.data ?? []))
    }
  })

  it('has the same bits in every batch', async () => {
    const of = async (m: number, n: number) => {
      const { outputs } = await launch(host, named(name), host.entry(`${name}__f16`), { m, n }, (tensor) =>
        tensor === 'a' ? rising : inputs.p,
      )
      return outputs.map(({ tensor, stored }) => Array.from(stored).slice(0, tensor.dims.includes('n') ? n : 1))
    }
    for (const n of [1000, 8200, 9003]) expect(await of(7, n)).toEqual(await of(1, n))
  })
})
