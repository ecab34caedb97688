/** Computations that the schedule names: those used twice, and none that already are a name. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import type { Step } from '../../src/schedule/normalise/passes.js'
import { read } from '../frontend/refuse.js'

const namesOf = (body: string) => {
  const { kernels } = read(
    `import { fold, foldRow, int, op, row, tensor } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('i32', 'm n'), z: tensor('i32', 'm n') },
  body: ({ x }, { n }) => (m) => {
    ${body}
  },
})
export const used = { fold, foldRow, int }
`,
  )
  const [kernel] = kernels
  if (kernel === undefined) throw new Error('no kernel')
  const { program } = mapKernel({ kernel, types: {}, dims: {} })
  if (program.kind !== 'rows') throw new Error('no row program')
  return program.reread.flatMap((step: Step) => (step.kind === 'pass' ? step.pass.rows.map(({ name }) => name) : []))
}

it('the index of a recurrence stays the index of its loop if two recurrences carry it', () => {
  // The last of the second recurrence is found at an index, which has to stay one that the pass knows.
  const walks = namesOf(`const f = foldRow(n, { z: int(-1) }, ({ z }, c) => ({ z: x(m, c) > 0 ? c : z }))
    const g = fold(n, { z: int(-1) }, ({ z }, c) => ({ z: x(m, c) < 0 ? c : z }))
    return { y: row(n, (c) => f.z(c)), z: row(n, () => g.z) }`)
  expect(walks.filter((name) => name.startsWith('common'))).toEqual([])
})

it('common values of two recurrences are computed once', () => {
  const walks = namesOf(`const f = foldRow(n, { z: 0 }, ({ z }, c) => ({ z: z + x(m, c) * x(m, c) }))
    const g = foldRow(n, { z: 0 }, ({ z }, c) => ({ z: z / 2 + x(m, c) * x(m, c) }))
    return { y: row(n, (c) => (f.z(c) > 1 ? 1 : 0)), z: row(n, (c) => (g.z(c) > 1 ? 1 : 0)) }`)
  expect(walks.filter((name) => name.startsWith('common'))).toHaveLength(1)
})
