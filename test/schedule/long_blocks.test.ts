/** Long rows in wide blocks: the lengths that have them, and kernels that have none. */
import { expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { partCosts } from '../../src/cost/kernel.js'
import { mapKernel } from '../../src/schedule/map.js'
import { accepts, type MappedKernel } from '../../src/schedule/mapped.js'
import { read } from '../frontend/refuse.js'

const text = `import { op, row, rsqrt, sum, tensor } from 'heddle'
const shared = { dims: ['m', 'n'], inputs: { x: tensor('f16', 'm n') }, outputs: { y: tensor('f16', 'm n') } } as const
export const norm = op('norm', { ...shared, body: ({ x }, { n }) => (m) => {
  const r = rsqrt(sum(n, (c) => x(m, c) ** 2) + 1)
  return { y: row(n, (c) => x(m, c) * r) }
} })
export const narrow = op('narrow', { ...shared, facts: { n: { atMost: 8192 } }, body: ({ x }, { n }) => (m) => {
  const r = rsqrt(sum(n, (c) => x(m, c) ** 2) + 1)
  return { y: row(n, (c) => x(m, c) * r) }
} })
export const two = op('two', { ...shared, inputs: { x: tensor('f16', 'm n'), z: tensor('f16', 'm n') }, body: ({ x, z }, { n }) => (m) => {
  const r = rsqrt(sum(n, (c) => x(m, c) * z(m, c)) + 1)
  return { y: row(n, (c) => x(m, c) * r - z(m, c)) }
} })
export const once = op('once', { ...shared, outputs: { y: tensor('f32', 'm') }, body: ({ x }, { n }) => (m) => ({ y: sum(n, (c) => x(m, c)) }) })
`
const { kernels } = read(text)

/** The launch of rows that are computed alone. */
function rowsOf(name: string): MappedKernel {
  const kernel = kernels.find((each) => each.name === name) ?? expect.fail(`no kernel ${name}`)
  const mapped = mapKernel({ kernel, types: {}, dims: {} })
  return mapped.split?.inRows?.mapped ?? mapped
}

/** Name of the variant for rows of a length. */
function variantOf(name: string, length: number, rows = 1000): string | undefined {
  const { program } = rowsOf(name)
  return program.kind === 'rows' ? program.variants.find(({ limit }) => accepts(limit, rows, length))?.name : undefined
}

it.each([
  [8192, 'block_wide'],
  [8200, 'block_long4'],
  [16_384, 'block_long4'],
  [16_392, 'block_long8'],
  [32_768, 'block_long8'],
  [32_776, 'block_reread'],
  [16_383, 'block_reread'],
])('rows of %i elements are computed by %s, whatever their number', (length, variant) => {
  expect([variantOf('norm', length, 1), variantOf('norm', length)]).toEqual([variant, variant])
})

it.each(['narrow', 'two', 'once'])('%s has none: its rows are short, of two tensors, or read once', (name) => {
  const { program } = rowsOf(name)
  const names = program.kind === 'rows' ? program.variants.map((each) => each.name) : []
  expect(names.length).toBeGreaterThan(0)
  expect(names.filter((each) => each.startsWith('block_long'))).toEqual([])
})

it('reads a row once', () => {
  const bytesOf = (n: number): number => {
    const [cost] = partCosts(rowsOf('norm'), { dims: { m: 4096, n }, attrs: {} }, costDevice('h200'))
    return (cost?.bytesRead ?? 0) / (4096 * n * 2)
  }
  expect(bytesOf(16_384)).toBeCloseTo(1, 2)
  expect(bytesOf(16_383)).toBeGreaterThan(1)
})
