/** Group norms with channels last as columns, whatever the axes and loops of a body are called. */
import { expect, it } from 'vitest'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'

const groupNorm = ([b, s, g, k]: readonly string[], [far, near]: readonly string[]) => {
  const text = `import { op, sqrt, sum, tensor } from 'heddle'
export const subject = op('subject', { dims: ['b', 's', 'g', 'k'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'b s g k') }, outputs: { y: tensor('T', 'b s g k') }, body: ({ x }, { s: rows, k: width }) => (${b}, ${s}, ${g}, ${k}) => {
    const mean = sum(rows, (${far}) => sum(width, (${near}) => x(${b}, ${far}, ${g}, ${near}))) / (rows * width)
    const rest = sum(rows, (${far}) => sum(width, (${near}) => (x(${b}, ${far}, ${g}, ${near}) - mean) ** 2)) / (rows * width)
    return { y: (x(${b}, ${s}, ${g}, ${k}) - mean) / sqrt(rest + 1e-5) } } })`
  const [kernel] = read(text).kernels
  if (kernel === undefined) throw new Error('the spec is refused')
  return mapKernel({ kernel, types: { T: 'f16' }, dims: {} })
}

it.each([
  ['its own', 'i p h j', 'q r'],
  ['the names of the pass', 'b t c k', 'c0 c1'],
  ['one of them for the channel', 'b p h c', 'i j'],
  ['the names of loops in other places', 'c d e f', 'g h'],
])('a group norm whose axes have %s has launches over columns', (_, axes, loops) => {
  const { split } = groupNorm(axes.split(' '), loops.split(' '))
  expect(split?.columns?.launches.map(({ program: { kind } }) => kind)).toEqual(['columns', 'columns', 'columns'])
})
