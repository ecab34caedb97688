/** Teams for sequential rows: the number of rows selects one only if no team changes the bits of results. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'

/** An op that carries something along its rows. @returns names of its variants, and up to how many rows each serves */
const variants = (y: string, outputs = "y: tensor('f32', 'm n')") => {
  const { kernels } = read(
    `import { foldRow, histogram, max, op, row, sum, tensor, toInt } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { ${outputs} },
  body: ({ x }, { n }) => (m) => {
    const h = foldRow(n, { h: 0 }, ({ h }, t) => ({ h: x(m, t) * h + 1 }))
    return { ${y} }
  },
})
export const used = { histogram, max, sum, toInt }
`,
  )
  const [kernel] = kernels
  if (kernel === undefined) throw new Error('no kernel')
  const { program } = mapKernel({ kernel, types: {}, dims: {} })
  return program.kind === 'rows' ? program.variants.map(({ name, limit }) => [name, limit?.rows === undefined]) : []
}
const stored = 'y: row(n, (c) => h.h(c) + x(m, c))'

it('a variant with one thread per row is added if every element is stored separately, or its maximum is stored', () => {
  const both = [
    ['warp_reread', false],
    ['thread_reread', true],
  ]
  expect(variants(stored)).toEqual(both)
  const more = "y: tensor('f32', 'm n'), top: tensor('f32', 'm')"
  expect(variants(`${stored}, top: max(n, (c) => h.h(c))`, more)).toEqual(both)
  // Counts do not depend on who counts first.
  const counted = "y: tensor('f32', 'm n'), count: tensor('i32', 'm n')"
  expect(variants(`${stored}, count: histogram(n, n, (c) => toInt(x(m, c)))`, counted)).toEqual(both)
  // A sum of floats is combined by lanes in another order than by one thread.
  expect(variants(`${stored}, top: sum(n, (c) => h.h(c))`, more)).toEqual([['warp_reread', true]])
})
