/** Blocks of a multiprocessor that windows are scheduled for, by the registers of their values. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import type { MappedKernel } from '../../src/schedule/mapped.js'
import { verifyMapped } from '../../src/schedule/verify/mapped.js'
import { read } from '../frontend/refuse.js'

const window = (name: string, apart: number, other: string): string => `export const ${name} = op('${name}', {
  dims: ['m', 'n'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { m, n }) => (i, j) => ({ y: max(3, (p) => max(3, (q) => {
    const r = i + p - 1
    const c = j + ${apart} * q - ${apart}
    return r >= 0 && r < m && c >= 0 && c < n ? x(r, c) : ${other}
  })) }) })
`

const twoResults = `export const both = op('both', {
  dims: ['m', 'n'], types: { T: ['f16'] }, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n'), z: tensor('T', 'm n') },
  body: ({ x }, { m }) => (i, j) => {
    const at = (r: number) => (r >= 0 && r < m ? x(r, j) : 0)
    return { y: max(3, (p) => at(i + p - 1)), z: sum(3, (p) => at(i + p - 1)) }
  } })
`
/** Sums of loads that many elements share. */
const shared = (steps: number): string => `export const shared = op('shared', {
  dims: ['m', 'n'], types: { T: ['f32'] }, inputs: { p: tensor('T', 'm m'), q: tensor('T', 'n m'), x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') },
  body: ({ p, q, x }) => (i, j) => ({ y: x(i, j) + sum(${steps}, (k) => p(i, k) * q(j, k)) }) })
`

/** The launch in spans. */
function inSpans(text: string): MappedKernel {
  const { kernels } = read(`import { max, op, tensor } from 'heddle'\n${text}`)
  const [kernel] = kernels
  const found = kernel && mapKernel({ kernel, types: { T: 'f16' }, dims: {} }).split?.fixed?.[0]?.mapped
  if (found === undefined) throw new Error('no spans')
  return found
}

it.each([
  ['few values', window('near', 1, '0'), 3],
  ['conditions of each element', window('masked', 1, '-1'), 2],
  ['spans of many words', window('far', 4, '0'), 2],
])('%s', (_, text, blocks) => {
  expect(inSpans(text).program).toMatchObject({ kind: 'elementwise', threads: 256, blocks })
})

it('more blocks than a multiprocessor has threads for are refused', () => {
  const mapped = inSpans(window('near', 1, '0'))
  if (mapped.program.kind !== 'elementwise') throw new Error('no elements')
  const { program } = mapped
  expect(() => verifyMapped({ ...mapped, program: { ...program, blocks: 9 } }, 'a test')).toThrow('has room for 9 blocks')
})

it.each([
  ['several results', twoResults, 1],
  ['few loads of single elements', shared(2), 3],
  ['many of them', shared(8), 1],
])('%s, in one launch', (_, text, blocks) => {
  const [kernel] = read(`import { max, op, sum, tensor } from 'heddle'\n${text}`).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  const { program } = mapKernel({ kernel, types: { T: kernel.name === 'both' ? 'f16' : 'f32' }, dims: {} })
  expect(program.kind === 'elementwise' ? (program.blocks ?? 1) : undefined).toBe(blocks)
})
