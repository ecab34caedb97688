/**
 * Scale folding, checked against the graph: with factors folded into the named weights, the value is divided by them and every result of the graph
 * is unchanged. If a factor would reach anything else, there is no folding.
 */
import { type GraphBuilder, type GraphDecl, type GraphTensor, graph, type TensorDecl, tensor } from 'heddle'
import { beforeAll, describe, expect, it } from 'vitest'
import { everyFlags, type LlamaFlags, llamaLayer } from '../../specs/graphs/llama_layer.js'
import { silu } from '../../specs/ops/activations.js'
import { add } from '../../specs/ops/add.js'
import { addBias } from '../../specs/ops/add_bias.js'
import { swiglu } from '../../specs/ops/gate.js'
import { rmsNorm } from '../../specs/ops/rms_norm.js'
import { softmax } from '../../specs/ops/softmax.js'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { scaleFoldingsOf } from '../../src/fuse/graph/scale_folding.js'
import { emptyEnv, evaluateExpr } from '../../src/ir/evaluate.js'
import { foldChannel, type Graph, outputsOf, type ScaleFolding } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluateExtent } from '../../src/ir/shape.js'
import { random, uniform } from '../../src/verify/random.js'
import { runValues, shapeOf } from './host.js'

let ops: ReadonlyMap<string, Kernel>
beforeAll(() => {
  const { kernels } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  ops = new Map(kernels.map((kernel) => [kernel.name, kernel]))
})

const dims = { r: 2, u: 5, n: 8, h: 4, g: 2, d: 4, i: 6, p: 9, e: 2, t: 4, b: 2, s: 3, m: 3 }
const attrs = { scale: 0.5, eps: 1e-5, window: 3 }
/** Two runs of tokens: two after one that row 1 has, and two at the start of row 0. */
const integers: Readonly<Record<string, readonly number[]>> = {
  ...{ places: [1, 2, 0, 1], sequences: [0, 0, 1, 1], positions: [0, 1, 0, 1], starts: [0, 2], lengths: [2, 2], first: [1, 0] },
  ...{ slots: [1, 0], writers: [1, 0] },
}

const names = ['attentionNorm', 'context', 'innerNorm', 'gated'] as const

/** Results of the graph for random numbers; `change` maps each weight to its new values. */
function valuesOf(
  of: Graph,
  change: (weight: string, values: readonly number[]) => readonly number[],
  caches: (name: string, values: readonly number[]) => readonly number[],
) {
  const made = (name: string, id: number): readonly number[] => {
    const next = random(name)
    const count = shapeOf(of, id, dims).reduce((product, extent) => product * extent, 1)
    return integers[name]?.slice(0, count) ?? Array.from({ length: count }, () => uniform(next, -1, 1))
  }
  const named = (ids: Graph['inputs'], become: (name: string, values: readonly number[]) => readonly number[]) =>
    Object.fromEntries(Object.entries(ids).map(([name, id]) => [name, become(name, made(name, id))]))
  return runValues(of, ops, named(of.inputs, caches), dims, attrs, named(of.weights, change))
}

/** The factor of each channel: equal where channels come from one element. */
function factorsOf({ makers, shape }: ScaleFolding): readonly number[] {
  const [first] = makers
  const channels = evaluateExtent(shape[1] ?? { factor: 1, dims: [] }, dims)
  return Array.from({ length: channels }, (_, channel) => 1.5 + (first === undefined ? 0 : elementOf(first.element, channel)))
}
const elementOf = (element: ScaleFolding['makers'][number]['element'], channel: number): number =>
  Number(evaluateExpr(element, { ...emptyEnv(dims), values: new Map([[foldChannel, channel]]) }))

/** A tensor whose elements at positions of an axis are multiplied. */
function scaled(
  values: readonly number[],
  shape: readonly number[],
  axis: number,
  factors: ReadonlyMap<number, number>,
): readonly number[] {
  const behind = shape.slice(axis + 1).reduce((product, extent) => product * extent, 1)
  return values.map((value, at) => value * (factors.get(Math.floor(at / behind) % (shape[axis] ?? 1)) ?? 1))
}

/** Weights with the factors of a fold in them. */
const folded = (of: Graph, fold: ScaleFolding, factors: readonly number[]) => (weight: string, values: readonly number[]) => {
  const shape = shapeOf(of, of.weights[weight] ?? -1, dims)
  const readers = fold.readers.filter((reader) => reader.weight === weight)
  const makers = fold.makers.filter((maker) => maker.weight === weight)
  const read = readers.reduce((made, { axis }) => scaled(made, shape, axis, new Map(factors.entries())), values)
  return makers.reduce(
    (made, { axis, element }) =>
      scaled(made, shape, axis, new Map(factors.map((factor, channel) => [elementOf(element, channel), 1 / factor]))),
    read,
  )
}

const near = (found: ArrayLike<number>, wanted: readonly number[]): void => {
  expect(found).toHaveLength(wanted.length)
  for (const [i, value] of wanted.entries()) expect(found[i]).toBeCloseTo(value, 9)
}

describe('folds of LLaMA layers', () => {
  it.each(['step', 'prompt'] as const)('%s: weights take the factors, with every flag', (form) => {
    for (const flags of everyFlags) holds(form, flags)
  })

  function holds(form: 'step' | 'prompt', flags: LlamaFlags): void {
    const { graph: of } = llamaLayer(form, flags)
    const folds = scaleFoldingsOf(of, names, ops)
    // Integers with a step for each head, and caches that are cast to float32, do not take a factor for each channel.
    const isFolded = (name: string): boolean => name !== 'context' || flags.caches === 'float'
    expect(folds.map(({ value }) => value)).toEqual(names.filter(isFolded))
    const bias = flags.bias === 'none' ? [] : ['valueBias']
    expect(folds.map(({ makers }) => makers.map(({ weight, axis }) => `${weight} ${axis}`).sort())).toEqual([
      ['attentionGamma 0'],
      ...(isFolded('context') ? [[...bias, 'valueWeight'].map((weight) => `${weight} 0`)] : []),
      ['innerGamma 0'],
      ['upWeight 0'],
    ])
    const same = (_: string, values: readonly number[]) => values
    const plain = valuesOf(of, same, same)
    for (const fold of folds) {
      const factors = factorsOf(fold)
      // Values cached before were divided as well: heads of keys and values are contiguous, positions outside of them.
      const [first] = fold.makers
      const cached = (name: string, values: readonly number[]) =>
        name !== 'values' || fold.value !== 'context'
          ? values
          : values.map((value, at) => {
              const head = Math.floor(at / dims.d) % dims.g
              const channel = factors.findIndex(
                (_, each) => first !== undefined && elementOf(first.element, each) === head * dims.d + (at % dims.d),
              )
              return value / (factors[channel] ?? Number.NaN)
            })
      const found = valuesOf(of, folded(of, fold, factors), cached)
      near(found.get(of.outputs.hidden ?? -1) ?? [], Array.from(plain.get(of.outputs.hidden ?? -1) ?? []))
      near(found.get(of.outputs.keys ?? -1) ?? [], Array.from(plain.get(of.outputs.keys ?? -1) ?? []))
      const node = of.nodes.find(({ name }) => name === fold.value)
      const [id = -1] = node === undefined ? [] : outputsOf(node)
      near(
        found.get(id) ?? [],
        Array.from(plain.get(id) ?? []).map((value, at) => value / (factors[at % factors.length] ?? Number.NaN)),
      )
      // The twin: if one producer is left unscaled, the result differs.
      const [maker] = fold.makers
      const wrong = valuesOf(
        of,
        (weight, values) => (weight === maker?.weight ? values : folded(of, fold, factors)(weight, values)),
        cached,
      )
      const distance = Array.from(wrong.get(of.outputs.hidden ?? -1) ?? []).map((value, at) =>
        Math.abs(value - Number(plain.get(of.outputs.hidden ?? -1)?.[at])),
      )
      expect(Math.max(...distance)).toBeGreaterThan(1e-3)
    }
  }

  it('give heads that share a value one factor', () => {
    const [, context] = scaleFoldingsOf(
      llamaLayer('step', { bias: 'none', norm: false, window: false, caches: 'float' }).graph,
      names,
      ops,
    )
    const elements = Array.from({ length: 16 }, (_, channel) =>
      elementOf(context?.makers[0]?.element ?? { kind: 'const', type: 'i32', value: -1 }, channel),
    )
    expect(elements).toEqual([0, 1, 2, 3, 0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7])
  })
})

type Given = Readonly<Record<string, GraphTensor>>

describe('there is no fold', () => {
  const made = (weights: Readonly<Record<string, TensorDecl>>, build: (g: GraphBuilder, x: Given) => Given): GraphDecl =>
    graph('folds', {
      inputs: { x: tensor('T', 'm n') },
      weights: { gamma: tensor('T', 'n'), weight: tensor('T', 'n n'), ...weights },
      build: (g, x, w) => {
        const nodes = build(g, { ...x, ...w } as Given)
        const last = Object.values(nodes).at(-1)
        if (last === undefined) throw new Error('no node')
        return { nodes, outputs: { last } }
      },
    })
  const at = (given: Given, name: string): GraphTensor => {
    const found = given[name]
    if (found === undefined) throw new Error(`no ${name}`)
    return found
  }
  const linear = 'm k, n k -> m n'
  const product = (g: GraphBuilder, x: GraphTensor, w: GraphTensor): GraphTensor => g.matmul(linear, x, w)
  const norm = (g: GraphBuilder, w: Given, offset = 0): GraphTensor =>
    g.apply(rmsNorm, { x: at(w, 'x'), gamma: at(w, 'gamma') }, { offset }).y
  const folds = (of: GraphDecl): number => scaleFoldingsOf(of.graph, ['norm'], ops).length

  const normed = (g: GraphBuilder, w: Given, offset = 0) => {
    const y = norm(g, w, offset)
    return { norm: y, out: product(g, y, at(w, 'weight')) }
  }
  /** A matmul, an op on its result by `make`, and a matmul that reads that. */
  const behind = (make: (g: GraphBuilder, x: GraphTensor, w: Given) => GraphTensor) => (g: GraphBuilder, w: Given) => {
    const first = product(g, at(w, 'x'), at(w, 'weight'))
    const y = make(g, first, w)
    return { first, norm: y, out: product(g, y, at(w, 'other')) }
  }

  it('except in the valid case', () => {
    expect(folds(made({}, (g, w) => normed(g, w)))).toBe(1)
  })

  it.each<readonly [string, (g: GraphBuilder, w: Given) => Given]>([
    [
      'where something else reads the value',
      (g, w) => {
        const { norm: y, out } = normed(g, w)
        return { norm: y, out, more: g.apply(add, { x: out, y }).z }
      },
    ],
    [
      'where the value is a result',
      (g, w) => {
        const { norm: y, out } = normed(g, w)
        return { out, norm: y }
      },
    ],
    [
      'where another product reads the weight that multiplies it',
      (g, w) => {
        const made = normed(g, w)
        return { ...made, more: product(g, made.out, at(w, 'weight')) }
      },
    ],
    [
      'where another node reads the weight that makes it',
      (g, w) => {
        const made = normed(g, w)
        return { ...made, more: g.apply(addBias, { x: made.out, bias: at(w, 'gamma') }).y }
      },
    ],
    ['where the result is not a multiple: a norm with an offset', (g, w) => normed(g, w, 1)],
    ['behind an activation', behind((g, x) => g.apply(silu, { x }).y)],
    ['behind a softmax', behind((g, x) => g.apply(softmax, { x }).y)],
    ['where one value is gate and what passes', behind((g, x) => g.apply(swiglu, { gate: x, up: x }).y)],
    [
      'where one axis of a weight is a channel and the row it is in',
      (g, w) => {
        const y = g.apply(swiglu, { gate: at(w, 'x'), up: g.view(at(w, 'flat'), 'm n') }).y
        return { norm: y, out: product(g, y, at(w, 'weight')) }
      },
    ],
    ['where an input of the graph would have to be scaled', behind((g, x, w) => g.apply(add, { x, y: at(w, 'x') }).z)],
  ])('%s', (_, build) => {
    expect(folds(made({ other: tensor('T', 'n n'), flat: tensor('T', 'm*n') }, build))).toBe(0)
  })

  it('twice: both terms of a sum take the factor', () => {
    const both = behind((g, x, w) => g.apply(addBias, { x, bias: at(w, 'gamma') }).y)
    expect(folds(made({ other: tensor('T', 'n n') }, both))).toBe(1)
  })
})
