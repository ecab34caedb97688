/** Functions of one number on the simt device: bits, and powers of two, to the bit. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, i32, index } from '../../src/ir/build.js'
import type { DType } from '../../src/ir/dtype.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { axis, kernel, load, loadInt, tensor } from '../schedule/fixtures.js'
import { type Host, launch, openKernels } from './host.js'

const x = (c: string): Expr => load('x', index('m0'), index(c))
const made: Readonly<Record<string, readonly [DType, (c: string) => Expr]>> = {
  power: ['f32', (c) => call('exp2', x(c))],
  logarithm: ['f32', (c) => call('log2', x(c))],
  above: ['f32', (c) => call('ceil', x(c))],
  cut: ['f32', (c) => call('trunc', x(c))],
  bits: ['i32', (c) => call('bitsOf', x(c))],
  float: ['f32', (c) => call('floatOfBits', loadInt('word', index('m0'), index(c)))],
  magnitude: ['f32', (c) => call('floatOfBits', call('bitAnd', call('bitsOf', x(c)), i32(0x7fffffff)))],
}
const stored = (name: string, value: (c: string) => Expr): Stmt => {
  const c = `c_${name}`
  return { kind: 'storeRow', tensor: name, rows: [index('m0')], length: dim('n'), index: c, value: value(c) }
}
const subject: Kernel = kernel(
  'scalars_to_the_bit',
  'm n',
  [axis('m0', 'm')],
  [
    tensor('x', 'in', 'm n', 'f32'),
    tensor('word', 'in', 'm n', 'i32'),
    ...Object.entries(made).map(([name, [dtype]]) => tensor(name, 'out', 'm n', dtype)),
  ],
  Object.entries(made).map(([name, [, value]]) => stored(name, value)),
)

const rest = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0, 0, 1e9, -1e9, -160, 2 ** -126]
/** Integers with a power of 2 as a factor, then powers of two, then others. */
const numbers = [
  ...Array.from({ length: 281 }, (_, i) => i - 151),
  ...Array.from({ length: 277 }, (_, i) => 2 ** (i - 149)),
  ...rest,
]
const width = numbers.length
const draws = (name: string) => (i: number) =>
  name === 'x' ? (numbers[i % width] ?? 0) : Math.imul(i + 1, 0x9e3779b1) & (i % 2 === 0 ? -1 : 0x007fffff)

let host: Host

beforeAll(async () => {
  host = await openKernels([subject])
})
afterAll(() => host?.close())

describe('bits and powers of two', () => {
  it('are on simt those of the IR', async () => {
    const dims = { m: 3, n: width }
    const { inputs, outputs } = await launch(host, subject, host.entry(subject.name), dims, draws)
    const expected = evaluateKernel(subject, inputs, dims)
    for (const { tensor: output, stored: found } of outputs) {
      const wanted = Array.from(expected[output.name]?.data ?? [], (value) =>
        output.dtype === 'f32' ? Math.fround(value) : value,
      )
      const isExact = (at: number): boolean => {
        const given = numbers[at % width] ?? 0
        if (output.name === 'power') return Number.isInteger(given) || !Number.isFinite(given)
        return output.name !== 'logarithm' || !(given > 0) || Number.isInteger(Math.log2(given))
      }
      const exactOf = (values: ArrayLike<number>): number[] => Array.from(values).filter((_, at) => isExact(at))
      expect(exactOf(found), output.name).toEqual(exactOf(wanted))
    }
  })
})
