/** Refusals of program declarations, with their locations, and earlier refusals by the TypeScript compiler. */

import { describe, expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { graph, op, type Programming, program, tensor } from '../../src/index.js'
import { layout } from '../../src/lang/layout.js'
import { refusal as refused } from '../refusal.js'

const add = op('add_two', {
  dims: ['m', 'n'],
  types: { T: ['f32', 'f16'] },
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  outputs: { z: tensor('T', 'm n') },
  body:
    ({ x, y }) =>
    (m, c) => ({ z: x(m, c) + y(m, c) }),
})
const linear = graph('linear', {
  inputs: { x: tensor('T', 'b*s k') },
  weights: { weight: tensor('T', 'j k') },
  build: (g, { x }, { weight }) => {
    const product = g.matmul('m k, n k -> m n', x, weight)
    return { nodes: { product }, outputs: { y: product } }
  },
})
const sum = graph('sum_two', {
  inputs: { x: tensor('T', 'm n'), y: tensor('T', 'm n') },
  weights: {},
  attrs: ['eps'],
  build: (g, { x, y }) => {
    const { z } = g.apply(add, { x, y })
    return { nodes: { z }, outputs: { z } }
  },
})
const columns = layout('columns', ['r', 'c'], { offset: (i, n) => i.c * n.r + i.r })

const dims = { b: 2, s: 3, n: 4, h: 2, d: 2, l: 5 }
const inputs = { x: tensor('T', 'b s h*d'), ids: tensor('i32', 'b s'), lengths: tensor('i32', 'b'), y: tensor('T', 'b*s h*d') }
type Given = Parameters<Parameters<typeof program<typeof inputs>>[1]['build']>[1]

/** The program that `build` makes, or the reason of its refusal. */
const made = (build: (p: Programming, given: Given) => Readonly<Record<string, { readonly value: number }>>) =>
  program('tried', { dims, inputs, build }).of()
const failureOf = (act: () => unknown): string => {
  const { code, message } = refused(act)
  return `${code}: ${message}`
}
const refusal = (build: Parameters<typeof made>[0]): string => failureOf(() => made(build))

describe('a program', () => {
  it('knows the dimensions of a graph', () => {
    const { nodes, values, weights } = made((p, { y }) => {
      const out = p.apply(linear, { x: y }, p.weights('first'), {}, { dims: { j: 'l' } })
      return { out: out.y }
    })
    const [node] = nodes
    if (node?.kind !== 'application') throw new Error('there is no application')
    expect(node.dims).toMatchObject({ k: { factor: 1, dims: ['d', 'h'] }, j: { factor: 1, dims: ['l'] } })
    expect(values[node.outputs.y ?? -1]).toMatchObject({ name: 'linear.y', dtype: { param: 'T' } })
    expect(weights['first.weight']).toMatchObject({
      shape: [
        { factor: 1, dims: ['l'] },
        { factor: 1, dims: ['d', 'h'] },
      ],
    })
  })

  it('repeats layers with separate weights, and steps with the same', () => {
    const { nodes, weights } = made((p, { y }) => {
      const square = { dims: { j: 'h*d' } }
      const out = p.steps('step', 2, y, (x) =>
        p.repeat('layer', 2, x, (x, layer) => p.apply(linear, { x }, layer.weights, {}, square).y),
      )
      return { out }
    })
    expect(nodes.map((node) => (node.kind === 'application' ? node.label : 'view'))).toEqual([
      'step0/layer0',
      'step0/layer1',
      'step1/layer0',
      'step1/layer1',
    ])
    expect(Object.keys(weights)).toEqual(['layer0.weight', 'layer1.weight'])
  })

  it('takes an input that it only reads in joined rows as such', () => {
    const {
      inputs: taken,
      values,
      nodes,
    } = made((p, { x, lengths }) => {
      const rows = p.ragged({ batch: 'b', seq: 's', lengths })
      return { out: p.apply(linear, { x: rows(x) }, p.weights('w'), {}, { dims: { j: 'l' } }).y }
    })
    expect(values[taken.x ?? -1]).toMatchObject({ name: 'x', shape: [{ dims: ['b', 's'] }, { dims: ['d', 'h'] }] })
    expect(nodes).toHaveLength(1)
  })
})

describe('refused is', () => {
  it.each<[string, Parameters<typeof made>[0], string]>([
    [
      'a value of another shape',
      (p, { x, y }) => ({ out: p.apply(sum, { x: p.view(x, 'b*s h d'), y }, {}, { eps: 1 }).z }),
      'program.shape: tried: sum_two: input x is "m n", x as b*s h d is "b*s h d"',
    ],
    [
      'a value that differs from another',
      (p, { y }) => ({ out: p.apply(sum, { x: y, y: p.view(y, 'h*d b*s') }, {}, { eps: 1 }).z }),
      'program.shape: tried: sum_two: input y is "b*s d*h", y as d*h b*s is "d*h b*s"',
    ],
    [
      'an integer where another input is a float',
      (p, { ids }) => ({ out: p.apply(sum, { x: p.state('k', tensor('T', 'b s')), y: p.view(ids, 'b s') }, {}, { eps: 1 }).z }),
      'program.dtype: tried: sum_two: input y is T, ids as b s is i32',
    ],
    [
      'a dimension the program does not have',
      (p, { y }) => ({ out: p.apply(linear, { x: y }, p.weights('w')).y }),
      'program.dims: tried: linear: the program has no dimension j',
    ],
    [
      'a weight of one name for two graphs',
      (p, { y }) => {
        const w = p.weights('w')
        const other = { ...linear, graph: { ...linear.graph, name: 'other' } }
        p.apply(linear, { x: y }, w, {}, { dims: { j: 'l' } })
        return { out: p.apply(other, { x: y }, w, {}, { dims: { j: 'l' } }).y }
      },
      'program.weight: tried: other: weight w.weight already belongs to linear',
    ],
    [
      'a shared weight of two shapes',
      (p, { y }) => {
        p.apply(linear, { x: y }, { weight: 'w' }, {}, { dims: { j: 'l' }, label: 'a' })
        return { out: p.apply(linear, { x: y }, { weight: 'w' }, {}, { dims: { j: 'n' }, label: 'b' }).y }
      },
      'program.weight: tried: b: weight w is T "n d*h" here, and T "l d*h" before',
    ],
    [
      'two applications of one name',
      (p, { y }) => {
        p.apply(sum, { x: y, y }, {}, { eps: 1 })
        return { out: p.apply(sum, { x: y, y }, {}, { eps: 1 }).z }
      },
      'program.label: tried: two applications are called sum_two',
    ],
    [
      'an attribute that is not a number',
      (p, { y }) => ({ out: p.apply(sum, { x: y, y }, {}, { eps: Number.NaN }).z }),
      'program.attr: tried: sum_two: attribute eps is NaN',
    ],
    [
      'a layer that changes what it carries',
      (p, { y }) => ({ out: p.repeat('layer', 2, y, (x) => p.view(x, 'b s h*d')) }),
      'program.repeat: tried: layer: y is T "b*s d*h", and y as b s d*h after it is T "b s d*h"',
    ],
    [
      'a number of layers that is none',
      (p, { y }) => ({ out: p.repeat('layer', 1.5, y, (x) => x) }),
      'program.repeat: tried: layer: expected a number of repetitions, got 1.5',
    ],
    [
      'a next value of another form',
      (p, { y }) => {
        p.next(p.state('kept', tensor('T', 'b h*d')), y)
        return { out: y }
      },
      'program.state: tried: kept is T "b d*h", its next value y is T "b*s d*h"',
    ],
    [
      'a state that is an input',
      (p, { y }) => {
        p.next(y, y)
        return { out: y }
      },
      'program.state: tried: y is not a state',
    ],
    ['a state called like an input', (p, { y }) => ({ out: p.state('x', tensor('T', 'b')) && y }), 'program.name: tried: x'],
    ['a result called like an input', (_, { y }) => ({ x: y }), 'program.name: tried: output x'],
    [
      'lengths of another axis',
      (p, { lengths, y }) => {
        p.ragged({ batch: 's', seq: 'b', lengths })
        return { out: y }
      },
      'program.ragged: tried: lengths are i32 "s", lengths is i32 "b"',
    ],
    [
      'rows of another axis',
      (p, { lengths, y }) => ({ out: p.ragged({ batch: 'b', seq: 'n', lengths })(y) }),
      'program.ragged: tried: y is "b*s d*h", which does not begin with b n',
    ],
    [
      'a view of values that are not in rows',
      (p) => ({ out: p.view(p.state('kept', tensor('T', 'n l', columns)), 'l n') }),
      'program.shape: tried: kept is in layout columns',
    ],
    ['a value of another program', () => ({ out: { value: 99 } }), 'program.value: tried: output out'],
  ])('%s', (_, build, words) => {
    expect(refusal(build)).toContain(words)
  })

  it('an invalid size', () => {
    expect(failureOf(() => program('tried', { dims: { b: 0 }, inputs: {}, build: () => ({}) }))).toContain(
      'program.dims: tried: dimension b cannot be 0',
    )
  })
})

it('the TypeScript compiler refuses names, ranks and types', () => {
  const unused = (p: Programming, { x, y, ids }: Given): void => {
    // @ts-expect-error there is no input z
    p.apply(linear, { z: y }, p.weights('w'))
    // @ts-expect-error its rank is 3
    p.apply(linear, { x }, p.weights('w'))
    // @ts-expect-error integers
    p.apply(linear, { x: ids }, p.weights('w'))
    // @ts-expect-error the weight has another name
    p.apply(linear, { x: y }, { wait: 'w' })
    // @ts-expect-error weights are missing
    p.apply(linear, { x: y })
    // @ts-expect-error the attribute is missing
    p.apply(sum, { x: y, y }, {})
    // @ts-expect-error there is no such result
    p.apply(linear, { x: y }, p.weights('w')).z
    // @ts-expect-error lengths are integers
    p.ragged({ batch: 'b', seq: 's', lengths: y })
    p.apply(linear, { x: y }, p.weights('w'))
  }
  expect(unused).toBeTypeOf('function')
})

describe('errors of one program', () => {
  const refused = (build: Parameters<typeof made>[0]): readonly string[] => {
    try {
      made(build)
    } catch (error) {
      if (!(error instanceof HeddleError)) throw error
      return (error.all.length > 0 ? error.all : [error]).map(({ code, message }) => `${code}: ${message}`)
    }
    return []
  }

  it('are reported all at once, without consequential ones', () => {
    const said = refused((p, { x, y, ids }) => {
      const a = p.apply(sum, { x: p.view(x, 'b*s h d'), y: ids as never }, {}, { eps: 1 }).z
      const b = p.apply(linear, { x: a }, p.weights('w'), {}, { dims: { j: 'l' } }).y
      const c = p.view(b, 'nonsense')
      const d = p.repeat('layer', 3, y, (now) => p.apply(sum, { x: now, y: now, z: now } as never, {}, {} as never).z)
      p.next(y, d)
      return { c, d, x: y }
    })
    expect(said).toEqual([
      'program.shape: tried: sum_two: input x is "m n", x as b*s h d is "b*s h d"',
      expect.stringMatching(/^program\.(shape|dtype): tried: sum_two: input y is /),
      'program.unknown: tried: layer0: there is no input z',
      'program.missing: tried: layer0: attribute eps is missing',
      'program.name: tried: output x has the name of an input or a state',
    ])
  })

  it('hide only exceptions that follow from them', () => {
    const failure = new TypeError('of nothing')
    expect(
      refused((p, { y }) => {
        p.view(y, 'l')
        throw failure
      }),
    ).toEqual([expect.stringMatching(/^program\.shape: tried: y is/)])
    expect(() =>
      made(() => {
        throw failure
      }),
    ).toThrow(failure)
  })
})
