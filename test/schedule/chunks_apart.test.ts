/** Blocks of two chunks a lane: the rows that have them, and the memory that the totals of both need. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import { chunksApart } from '../../src/schedule/mapped.js'
import { read } from '../frontend/refuse.js'

/** Variants of rows of blocks, with their largest numbers of rows, of a monoid that sums so many powers. */
function blocksOf(fields: number): readonly (readonly [name: string, apart: number, rows: number | undefined])[] {
  const all = Array.from({ length: fields }, (_, i) => `p${i}`)
  const of = (value: (name: string) => string): string => all.map((name) => `${name}: ${value(name)}`).join(', ')
  const { kernels } = read(`import { monoid, op, row, tensor } from 'heddle'
const powers = monoid({ identity: { ${of(() => '0')} }, combine: (a, b) => ({ ${of((name) => `a.${name} + b.${name}`)} }) })
export const subject = op('subject', {
  dims: ['m', 'n'], inputs: { x: tensor('f16', 'm n') }, outputs: { y: tensor('f16', 'm n') },
  body: ({ x }, { n }) => (m) => {
    const s = powers.reduce(n, (c) => ({ ${of((name) => `x(m, c) * ${name.slice(1)}`)} }))
    return { y: row(n, (c) => x(m, c) * (${all.map((name) => `s.${name}`).join(' + ')})) }
  } })`)
  const [kernel = expect.fail('the spec is refused')] = kernels
  const mapped = mapKernel({ kernel, types: {}, dims: { n: 4096 } })
  const { program } = mapped.split?.inRows?.mapped ?? mapped
  if (program.kind !== 'rows') return expect.fail('no rows')
  return program.variants
    .filter(({ team }) => team.kind === 'block')
    .map(({ name, team, chunks, limit }) => [name, chunksApart(team, chunks), limit.rows] as const)
}

it('more than 528 rows have two chunks a lane', () => {
  expect(blocksOf(2)).toEqual([
    ['block', 1, 528],
    ['block_mid', 1, 528],
    ['block_mid_wide', 2, undefined],
    ['block_tall', 1, 528],
    ['block_tall_wide', 2, undefined],
    ['block_wide', 2, undefined],
    ['block_reread', 1, undefined],
  ])
})

it('totals that a block has no memory for twice keep rows of any number at one', () => {
  expect(blocksOf(9)).toEqual([
    ['block', 1, 528],
    ['block_mid', 1, undefined],
    ['block_tall', 1, undefined],
    ['block_reread', 1, undefined],
  ])
})
