/** Allowed errors of correct results: of matmuls whose terms cancel, and of values outside of the range of a type. */
import { graph, op, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { manifestSchema } from '../../src/emit/manifest.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { ValueId } from '../../src/ir/graph.js'
import { storedError } from '../../src/verify/check/stored.js'
import { compare } from '../../src/verify/compare.js'
import { strayedError } from '../../src/verify/oracle.js'
import { normal, random } from '../../src/verify/random.js'
import { tolerance, withNaiveError } from '../../src/verify/tolerance.js'
import { products } from '../product/graphs.js'
import { planned, productOf, readOps } from '../product/host.js'

describe('a matmul', () => {
  const [first = expect.fail('no products')] = products
  const kernel = productOf(planned(first, readOps()))
  const limited = { ...kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: ['f32' as const] } : {} }
  const { kernels } = manifestSchema.parse(JSON.parse(generate([], {}, [limited]).get('manifest.json') ?? ''))
  const [entry = expect.fail('no kernel')] = kernels
  const [m, n, k] = [5, 7, 96]
  const dims = { ...Object.fromEntries(kernel.dims.map((name) => [name, 1])), [kernel.m]: m, [kernel.n]: n, [kernel.k]: k }
  /** Terms of a million that cancel, and others of one. */
  const inputs = Object.fromEntries(
    kernel.tensors.flatMap(({ name, access, dims: axes }) => {
      if (access !== 'in') return []
      const shape = axes.map((axis) => dims[axis] ?? 1)
      const next = random(name)
      const inner = axes.indexOf(kernel.k)
      const stride = shape.slice(inner + 1).reduce((size, extent) => size * extent, 1)
      const large = (at: number): number => (name === kernel.a.tensor && at < 2 ? (at === 0 ? 1e6 : -1e6) : 1)
      const length = shape.reduce((size, extent) => size * extent, 1)
      const data = Float64Array.from({ length }, (_, i) => {
        const at = inner < 0 ? 2 : Math.floor(i / stride) % k
        return Math.fround(large(at) * (at < 2 ? 1 : normal(next)))
      })
      return [[name, { data, shape }]]
    }),
  )
  const wanted = evaluateTemplate(kernel, inputs, dims, {})
  const [output = expect.fail('no output')] = Object.keys(wanted)
  const exact = Array.from(wanted[output]?.data ?? [])
  const test = { name: 'cancelling', entry, dims, attrs: {}, draw: 'normal' as const, shift: 0 }
  const errors = strayedError({ ops: {}, kernels: new Map([[entry.op, kernel]]) }, test, inputs, wanted)?.[output]
  const bound = tolerance({ dtype: 'f32', class: 'matmul', length: k })
  const passes = (found: readonly number[]): boolean =>
    compare(found, exact, (i) => withNaiveError(bound, errors?.[i] ?? 0)).passed

  it('whose terms cancel may have the float32 error of their size, and no more', () => {
    const rounding = 2e6 * 2 ** -24
    const off = exact.map((value) => value + rounding)
    expect(compare(off, exact, bound).passed).toBe(false)
    expect(passes(off)).toBe(true)
    expect(passes(exact.map((value) => value + 40 * rounding))).toBe(false)
  })
})

describe('a value on the way', () => {
  const shrink = op('shrink', {
    dims: ['m'],
    types: { T: ['f32', 'f16'] },
    inputs: { x: tensor('T', 'm') },
    outputs: { y: tensor('T', 'm') },
    body:
      ({ x }) =>
      (m) => ({ y: x(m) / 1e30 }),
  })
  const { graph: steps } = graph('steps', {
    inputs: { x: tensor('T', 'm') },
    weights: {},
    build: (g, { x }) => {
      const large = g.apply(shrink, { x }).y
      const small = g.apply(shrink, { x: large }).y
      return { nodes: { large, small }, outputs: { small } }
    },
  })
  const [large = -1, small = -1] = steps.nodes.flatMap((node): readonly ValueId[] =>
    node.kind === 'op' ? Object.values(node.outputs) : [],
  )
  const errorsIn = (T: 'f32' | 'f16', groups: readonly (readonly string[])[] = []) => {
    const run = (store: (id: ValueId, made: ArrayLike<number>) => ArrayLike<number>) => {
      const kept = store(large, [1e30, 2])
      return new Map([
        [
          small,
          store(
            small,
            Array.from(kept, (value) => value / 1e30),
          ),
        ],
      ])
    }
    return Array.from(
      storedError(
        { graph: steps, groups, types: { T }, seed: 'steps', run },
        run((_, made) => made),
      )(small),
    )
  }

  it('outside of the range of its type gives no result to judge, if it is stored', () => {
    expect(errorsIn('f16')[0]).toBe(Number.POSITIVE_INFINITY)
    expect(errorsIn('f16')[1]).toBeLessThan(1e-20)
    expect(errorsIn('f32')[0]).toBeLessThan(1e-5)
    expect(errorsIn('f16', [['large', 'small']])[0]).toBeLessThan(1e-2)
  })
})
