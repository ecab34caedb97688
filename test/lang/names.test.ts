/** Names of graphs and plans that are invalid in generated source or in a lookup. */
import { describe, expect, it } from 'vitest'
import { graph } from '../../src/lang/graph.js'
import { op } from '../../src/lang/op.js'
import { plan } from '../../src/lang/plan.js'
import { tensor } from '../../src/lang/tensor.js'
import { planAll } from '../../src/search/plans.js'

const twice = op('twice', {
  dims: ['n'],
  inputs: { x: tensor('f32', 'n') },
  outputs: { y: tensor('f32', 'n') },
  body:
    ({ x }) =>
    (i) => ({ y: 2 * x(i) }),
})

/** A graph of two steps with one of its names replaced. */
const named = ({ input = 'x', attr = 'a', node = 'second', output = 'y', dims = 'n', name = 'g' }) =>
  graph(name, {
    inputs: { [input]: tensor('f32', dims) },
    weights: {},
    attrs: [attr],
    build: (g, inputs) => {
      const { y: first } = g.apply(twice, { x: inputs[input] ?? { value: 0 } })
      const { y: second } = g.apply(twice, { x: first })
      return { nodes: { first, [node]: second }, outputs: { [output]: second } }
    },
  })

describe('names of a graph', () => {
  it('may be anything that no object has by itself', () => {
    expect(named({}).nodes).toEqual(['first', 'second'])
    expect(() => named({ input: 'std', attr: 'int', node: 'operator', output: 'blockIdx', dims: 'NULL' })).not.toThrow()
  })
  it.each([
    [{ input: 'constructor' }, 'graph.name'],
    [{ attr: 'valueOf' }, 'graph.name'],
    [{ node: 'toString' }, 'graph.name'],
    [{ output: 'hasOwnProperty' }, 'graph.name'],
    [{ name: '__proto__' }, 'graph.name'],
    [{ dims: 'constructor' }, 'graph.extent'],
  ])('refuses %j', (names, code) => {
    expect(() => named(names)).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(Object.values(names).join()) }),
    )
  })
})

describe('names of groups', () => {
  const decl = named({})
  const grouped = (kernel: string) => plan('p', decl, { groups: { [kernel]: ['first'] } })
  it.each(['a b', 'a\n#error', 'Twice', 'constructor', 'a-b', '_a', ''])('refuses %j', (kernel) => {
    expect(() => planAll([grouped(kernel)], { g: decl }, [])).toThrow(expect.objectContaining({ code: 'plan.name' }))
  })
  it('become those of kernels in snake_case', () => {
    expect(() => planAll([grouped('two_times')], { g: decl }, [])).toThrow('uses op twice, which no spec declares')
  })
})
