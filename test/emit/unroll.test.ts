/** Loops over the chunks of rows that are read again: unrolled where chunks are short, and not where their elements divide. */
import { expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { read } from '../frontend/refuse.js'

/** Unrolled loops over chunks of an op whose last pass multiplies by `factor`. */
function unrolled(factor: string): number {
  const { kernels, diagnostics } = read(`import { idiv, op, row, rsqrt, sum, tensor, toFloat } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n', 'k'],
  types: { T: ['f16'] },
  inputs: { x: tensor('T', 'm n'), z: tensor('T', 'm k') },
  outputs: { y: tensor('T', 'm n') },
  facts: { n: { atLeast: 'k' }, k: { atLeast: 2 } },
  body: ({ x, z }, { n, k }) => (m) => {
    const scale = rsqrt(sum(n, (c) => x(m, c) ** 2) / k) * z(m, 0)
    return { y: row(n, (c) => x(m, c) * scale * toFloat(${factor})) }
  },
})
export const used = idiv
`)
  expect(diagnostics).toEqual([])
  const text = [...generate(kernels)].find(([path]) => path.endsWith('.cu'))?.[1] ?? ''
  return text.split('HEDDLE_UNROLL_FEW').length - 1
}

it.each([
  ['idiv(c * k, n)', 1],
  ['c % k', 1],
  ['c % 3', 2],
  ['idiv(n, k)', 2],
] as const)('by %s: %i of two', (factor, loops) => expect(unrolled(factor)).toBe(loops))
