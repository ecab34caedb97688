/** Rows beside one another in memory: a block of warps computes all rows of a sector, and others as many as before. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'

/** Rows in a block, by variant, of an op whose rows are columns or rows of `x`. */
function rowsPerBlock(x: string, type: 'f32' | 'f16', body: string): Readonly<Record<string, number>> {
  const text = `import { op, row, tensor, topK } from 'heddle'
export const subject = op('subject', { dims: ['m', 'n', 'k'], types: { T: ['${type}'] }, inputs: { x: tensor('T', '${x}') }, outputs: { y: tensor('f32', 'n k') },
  facts: { k: 3 }, body: ({ x }, { m, k }) => (j) => { ${body} } })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  const { program } = mapKernel({ kernel, types: { T: type }, dims: {} })
  if (program.kind !== 'rows') throw new Error('no program of rows')
  return Object.fromEntries(
    program.variants.flatMap(({ name, team }) => (team.kind === 'warp' && team.lanes === 32 ? [[name, team.rowsPerBlock]] : [])),
  )
}
const ranked = (at: string): string => `const best = topK(3, m, (r) => ${at})\n return { y: row(k, (e) => best.values(e)) }`

it('takes the rows of a sector into a block', () => {
  expect(rowsPerBlock('m n', 'f32', ranked('x(r, j)'))).toEqual({ warp: 8 })
  expect(rowsPerBlock('m n', 'f16', ranked('x(r, j)'))).toEqual({ warp: 16 })
})

it('leaves rows that are contiguous', () => {
  expect(rowsPerBlock('n m', 'f32', ranked('x(j, r)'))).toEqual({ warp: 4 })
  expect(rowsPerBlock('n m', 'f16', ranked('x(j, r)'))).toEqual({ warp: 4 })
})
