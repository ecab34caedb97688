/** Factors on computed rows of attention: of sequences and of a step, whose key and value are shared by heads. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, local } from '../../src/ir/build.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { evaluateTemplate } from '../../src/ir/evaluate_template.js'
import type { AttentionKernel, DecodeAttentionKernel } from '../../src/ir/template.js'
import { factorsOf, roundedRows } from '../../src/verify/rounded_rows.js'
import { attentionKernel, b, c, h, i, input, j, load, mul, result, scaled } from '../emit/attention_subject.js'

const dims = { b: 2, s: 3, t: 3, h: 4, g: 2, d: 5, e: 3 }
const double = (tensor: string, ...at: Parameters<typeof load>[1][]) => mul(load(tensor, ...at), f32(2))

const stored = attentionKernel('stored', { group: 2 })
const shared = call('idiv', h, i32(2))
const sequences: AttentionKernel = {
  ...stored,
  query: { ...stored.query, element: double('q', b, i, h, c) },
  key: { ...stored.key, element: double('k', b, j, shared, c) },
  value: { ...stored.value, element: double('v', b, j, shared, c) },
}

const cache = (name: string, of: string) => ({ ...input(name, `b g t ${of}`), access: 'out' as const })
const owner = local('owner', 'i32')
const row = [owner, h, j, i32(0)]
const step: DecodeAttentionKernel = {
  kind: 'decode attention',
  name: 'step',
  source: stored.source,
  dims: stored.dims,
  types: stored.types,
  attrs: [],
  tensors: [
    ...[input('q', 'b s h d'), input('k', 'b g t d'), input('v', 'b g t e'), input('nk', 'b g d'), input('nv', 'b g e')],
    ...[
      { ...cache('keys', 'd'), updates: 'k' },
      { ...cache('values', 'e'), updates: 'v' },
    ],
    { ...input('y', 'b s h e'), access: 'out' },
  ],
  batch: dim('b'),
  heads: dim('h'),
  shared: i32(2),
  queries: i32(1),
  headDim: dim('d'),
  valueDim: dim('e'),
  places: dim('t'),
  query: double('q', b, i, h, c),
  owner: b,
  key: { tensor: 'k', indices: row },
  value: { tensor: 'v', indices: row },
  out: { tensor: 'y', indices: [b, i, h, i32(0)] },
  score: scaled(0.25),
  range: { lower: i32(0), upper: dim('t') },
  denominator: local('total'),
  stored: result,
  fresh: {
    place: i32(1),
    key: double('nk', b, h, c),
    value: double('nv', b, h, c),
    keyCache: { tensor: 'keys', indices: [b, h, j, i32(0)] },
    valueCache: { tensor: 'values', indices: [b, h, j, i32(0)] },
  },
}

type Tensors = Readonly<Record<string, HostTensor>>
const inputsOf = ({ tensors }: AttentionKernel | DecodeAttentionKernel): Tensors =>
  Object.fromEntries(
    tensors.flatMap(({ name, access, dims: axes }, seed) => {
      const shape = axes.map((axis) => dims[axis as keyof typeof dims])
      const length = shape.reduce((product, extent) => product * extent, 1)
      return access === 'in' ? [[name, { data: Float64Array.from({ length }, (_, at) => Math.sin(at + seed)), shape }]] : []
    }),
  )
const times = (tensors: Tensors, by: number, ...names: readonly string[]): Tensors =>
  Object.fromEntries(
    Object.entries(tensors).map(([name, { data, shape }]) => [
      name,
      { data: Float64Array.from(data, (value) => (names.includes(name) ? value * by : value)), shape },
    ]),
  )

describe('computed rows', () => {
  it.each([
    ['of sequences', sequences, ['q', 'k', 'v']],
    ['of a step, and those that it stores', step, ['q', 'nk', 'nv']],
  ] as const)('%s, are multiplied by their factors, each once', (_, kernel, computed) => {
    const inputs = inputsOf(kernel)
    const rounded = roundedRows(kernel, dims, {}) ?? expect.fail('no computed rows')
    const run = (stray: number) =>
      evaluateTemplate(rounded.kernel, { ...inputs, ...factorsOf(rounded, 0.5, () => stray) }, dims, {})
    expect(run(0)).toEqual(evaluateTemplate(kernel, inputs, dims, {}))
    expect(run(1)).toEqual(evaluateTemplate(kernel, times(inputs, 1.5, ...computed), dims, {}))
  })

  it('are those that do not lie in memory', () => {
    expect(roundedRows(stored, dims, {})).toBeUndefined()
    const plain = { ...step, query: load('q', b, i, h, c), fresh: undefined }
    expect(roundedRows(plain, dims, {})).toBeUndefined()
    expect(Object.keys(roundedRows({ ...step, query: plain.query }, dims, {})?.shapes ?? {})).toHaveLength(2)
  })
})
