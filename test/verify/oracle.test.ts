/** Allowed errors of correct results: of matmuls whose terms cancel, and of values outside of the range of a type. */
import { graph, op, tensor } from 'heddle'
import { describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { type KernelEntry, manifestSchema } from '../../src/emit/manifest/manifest.js'
import { i32 } from '../../src/ir/build.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import { withFactors } from '../../src/ir/evaluate_product.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { Expr } from '../../src/ir/expr.js'
import type { ValueId } from '../../src/ir/graph.js'
import { resolveDType } from '../../src/ir/instance.js'
import type { DTypeRef } from '../../src/ir/kernel.js'
import type { AttentionKernel } from '../../src/ir/template.js'
import { roundTo } from '../../src/runtime/numbers.js'
import { storedError } from '../../src/verify/check/stored.js'
import { compare } from '../../src/verify/compare.js'
import { strayedError, type Tensors } from '../../src/verify/oracle.js'
import { normal, random } from '../../src/verify/random.js'
import { ruleOf } from '../../src/verify/rules.js'
import { tolerance, withNaiveError } from '../../src/verify/tolerance.js'
import { attend } from '../emit/attention_reference.js'
import { add, attentionKernel, b, c, h, i, input, j, load, mul } from '../emit/attention_subject.js'
import { computed, products } from '../product/graphs.js'
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

describe('a matmul of norms that are rounded to f16', () => {
  const given = computed.find(({ name }) => name === 'layer_norm_in_front') ?? expect.fail('no such product')
  const kernel = productOf(planned(given, readOps()))
  const { kernels } = manifestSchema.parse(
    JSON.parse(generate([], {}, [{ ...kernel, types: { T: ['f16'] } }]).get('manifest.json') ?? ''),
  )
  const [entry = expect.fail('no kernel')] = kernels
  const k = 1023
  const dims = { [kernel.m]: 1, [kernel.n]: 3, [kernel.k]: k }
  const attrs = Object.fromEntries(kernel.attrs.map(({ name }) => [name, 1e-12]))
  const bound = tolerance({ dtype: 'f16', class: 'matmul', length: k })
  const round = (dtype: DTypeRef, values: ArrayLike<number>) => roundTo(resolveDType(dtype, entry.types), values)

  /** Few numbers, so often each that one norm is 10^-7 from the middle between two numbers of f16, and many are rounded as it is. */
  const counts: readonly (readonly [number, number])[] = [
    [1, 252],
    [2, 268],
    [-2, 270],
    [-1, 233],
  ]
  const row = counts.flatMap(([value, count]) => Array.from({ length: count }, () => value))
  /** Of the norms, 40 of that number are added up. */
  const drawn: Readonly<Record<string, (at: number) => number>> = {
    [kernel.tensors[0]?.name ?? '']: (at) => row[at] ?? 0,
    gamma: () => -1,
    beta: () => 1,
    b: (at) => (row[at % k] === -2 && at % 6 === 0 ? 1 : 0),
  }
  const inputs = Object.fromEntries(
    kernel.tensors.flatMap(({ name, access, dims: axes }) => {
      if (access !== 'in') return []
      const shape = axes.map((axis) => dims[axis] ?? 1)
      const length = shape.reduce((size, extent) => size * extent, 1)
      return [[name, { data: Float64Array.from({ length }, (_, at) => drawn[name]?.(at) ?? 0), shape }]]
    }),
  )
  const wanted = resultOf(1)
  const [output = expect.fail('no output')] = Object.keys(wanted)
  const exact = Array.from(wanted[output]?.data ?? [])
  const test = { name: 'norms', entry, dims, attrs, draw: 'integer' as const, shift: 0 }
  const errors = strayedError({ ops: {}, kernels: new Map([[entry.op, kernel]]) }, test, inputs, wanted)?.[output]

  /** Results of norms that are so many times as large before they are rounded. */
  function resultOf(scale: number): Tensors {
    const made = withFactors(kernel, inputs, dims, attrs, round, (prologue) =>
      Object.fromEntries(
        Object.entries(evaluateKernel(prologue, inputs, dims, attrs)).map(([name, { data, shape }]) => [
          name,
          { data: Array.from(data, (value) => value * scale), shape },
        ]),
      ),
    )
    return evaluateTemplate(made.kernel, made.inputs, dims, attrs)
  }
  const passes = (scale: number, naive: boolean): boolean => {
    const found = roundTo('f16', resultOf(scale)[output]?.data ?? [])
    return compare(found, exact, (i) => withNaiveError(bound, naive ? (errors?.[i] ?? 0) : 0)).passed
  }

  it('may be that of norms which are rounded to the other neighbour', () => {
    const off = 1 - 2 ** -23
    expect(passes(off, false)).toBe(false)
    expect(passes(off, true)).toBe(true)
  })

  it('may not be that of norms which are four places too large', () => {
    expect(passes(1 + 2 ** -8, true)).toBe(false)
  })
})

describe('attention with computed queries and keys', () => {
  const [dims, tables] = [{ b: 1, s: 6, t: 6, h: 1, g: 1, d: 16, e: 32 }, [load('cosines', c), load('sines', c)] as const]
  const turned = (tensor: 'q' | 'k', row: Expr, given: Partial<AttentionKernel['query']> = {}) => ({
    tensor,
    indices: [b, row, h, i32(0)],
    element: tables.map((table) => mul(load(tensor, b, row, h, c), table)).reduce(add),
    ...given,
  })
  const kernel = attentionKernel('turned', {
    extra: [input('cosines', 'd'), input('sines', 'd')],
    query: turned('q', i),
    key: turned('k', j),
  })
  const stored = attentionKernel('plain')
  const exact = (kernel: AttentionKernel, inputs: Tensors) => Array.from(evaluateTemplate(kernel, inputs, dims, {}).y?.data ?? [])
  const entryOf = (of: AttentionKernel): KernelEntry => {
    const { kernels } = manifestSchema.parse(JSON.parse(generate([], {}, [of]).get('manifest.json') ?? ''))
    return kernels.find(({ types }) => types.T === 'f16') ?? expect.fail('no instance')
  }
  const drawn = (of: AttentionKernel, seed: number): Tensors =>
    Object.fromEntries(
      of.tensors.flatMap(({ name, access, dims: axes }) => {
        if (access !== 'in') return []
        const shape = axes.map((axis) => dims[axis as keyof typeof dims])
        const next = random(`${name} ${seed}`)
        // Large terms of a score, which cancel.
        const size = name === 'q' ? 16 : 1
        const length = shape.reduce((size, extent) => size * extent, 1)
        return [
          [
            name,
            {
              data: roundTo(
                'f16',
                Float64Array.from({ length }, () => size * normal(next)),
              ),
              shape,
            },
          ],
        ]
      }),
    )
  /** Results judged by the rule of the instance, and with the roundings of this case. */
  const judged = (of: AttentionKernel, inputs: Tensors, found: readonly number[]) => {
    const entry = entryOf(of)
    const { length, rounded } = ruleOf(entry).results.y ?? expect.fail('no rule')
    const bound = tolerance({ dtype: 'f16', class: 'attention', length: length(dims), rounded })
    const wanted = exact(of, inputs)
    const test = { name: 'turned', entry, dims, attrs: {}, draw: 'normal' as const, shift: 0 }
    const oracle = { ops: {}, kernels: new Map([[entry.op, of]]) }
    const errors = strayedError(oracle, test, inputs, { y: { data: wanted, shape: [] } })?.y
    return {
      usual: compare(found, wanted, bound).passed,
      strayed: compare(found, wanted, (at) => withNaiveError(bound, errors?.[at] ?? 0)).passed,
    }
  }

  it('may have the error of rounding them, where large terms cancel', () => {
    const runs = [1, 2, 3, 4].map((seed) => {
      const inputs = drawn(kernel, seed)
      return judged(kernel, inputs, attend(kernel, inputs, dims, 'f16'))
    })
    expect(runs.map(({ strayed }) => strayed)).toEqual([true, true, true, true])
    expect(runs.filter(({ usual }) => usual).length).toBeLessThan(runs.length)
  })

  it('may not have one wrong element, nor the error of another table', () => {
    const inputs = drawn(kernel, 1)
    const right = attend(kernel, inputs, dims, 'f16')
    for (const at of [0, 77, right.length - 1]) {
      expect(judged(kernel, inputs, right.with(at, (right[at] ?? 0) + 0.5)).strayed).toBe(false)
    }
    const { sines = expect.fail('no table') } = inputs
    const off = { ...inputs, sines: { ...sines, data: Float64Array.from(sines.data, (value) => value * 1.05) } }
    expect(judged(kernel, inputs, attend(kernel, off, dims, 'f16')).strayed).toBe(false)
  })

  it('has no such error if they are read as they are stored', () => {
    const inputs = drawn(stored, 1)
    const { k = expect.fail('no keys') } = inputs
    const moved = { ...inputs, k: { ...k, data: Float64Array.from(k.data, (value) => value * (1 + 2 ** -7)) } }
    expect(judged(stored, inputs, exact(stored, inputs)).strayed).toBe(true)
    expect(judged(stored, inputs, exact(stored, moved)).strayed).toBe(false)
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
