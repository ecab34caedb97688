/** Axes of a group whose nodes see one value in several shapes: the axes of the kernel, and shapes that do not fit. */
import { describe, expect, it } from 'vitest'
import { applyPlan } from '../../src/fuse/apply.js'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import type { ValueId } from '../../src/ir/graph.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { rowMajor } from '../../src/ir/layout.js'
import { refusal } from '../refusal.js'
import { at } from './attention_draft.js'
import { Draft } from './random/draft.js'

/** A graph of `x` over `m a*b` that `first` processes, followed by an op over `m a b`. */
function split(first: (draft: Draft, x: ValueId) => ValueId): Draft {
  const draft = new Draft()
  const seen = draft.view(first(draft, draft.input('m a*b')), 'm a b')
  const x = { value: seen, dims: ['m', 'a', 'b'] }
  const extents = { m: 'm', a: 'a', b: 'b' }
  draft.output(draft.each(x.dims, extents, { x }, ({ x: given }, { m, a, b }) => call('abs', at(given, m, a, b))))
  return draft
}

const apply = (draft: Draft, typical: Readonly<Record<string, number>> = {}) =>
  applyPlan(
    { ...draft.graph(), typical },
    { name: 'p', graph: 'drawn', groups: [{ kernel: 'k', occurrences: [draft.members()] }] },
    draft.kernels,
  )
const kernelOf = (...given: Parameters<typeof apply>): Kernel => {
  const kernel = apply(...given).kernels.get('k')
  if (kernel === undefined) throw new Error('no kernel')
  return kernel
}

const columns = { over: ['m', 'n'], extents: { m: 'm', n: 'a*b' } } as const
const reading = (value: ValueId) => ({ x: { value, dims: ['m', 'n'] } })
const elementwise = (draft: Draft, x: ValueId): ValueId =>
  draft.each(columns.over, columns.extents, reading(x), ({ x: given }, { m, n }) => call('exp', at(given, m, n)))

describe('an axis that another node takes apart', () => {
  it('is its parts in the kernel, with tensors as plain rows', () => {
    const { tensors } = kernelOf(split(elementwise))
    expect(tensors.map(({ dims }) => dims.length)).toEqual([3, 3])
    for (const { layout, dims } of tensors) expect(layout).toEqual(rowMajor(dims))
  })

  it('has the parts that the graph declares as usual', () => {
    const { typical, tensors } = kernelOf(split(elementwise), { m: 8, a: 3, b: 5 })
    expect(tensors[0]?.dims.map((each) => typical?.[each])).toEqual([8, 3, 5])
    expect(kernelOf(split(elementwise), { m: 8 }).typical).toEqual({ [tensors[0]?.dims[0] ?? '']: 8 })
  })

  it('is impossible along a reduction', () => {
    const draft = split((made, x) =>
      made.op({
        ...columns,
        reads: reading(x),
        body: ({ x: given }, { m = i32(0) }) => [
          {
            kind: 'reduce',
            name: 'top',
            type: 'f32',
            monoid: 'max',
            length: dim('n'),
            index: 'c',
            value: at(given, m, index('c')),
          },
          {
            kind: 'storeRow',
            tensor: 'y',
            rows: [m],
            length: dim('n'),
            index: 'c1',
            value: call('sub', at(given, m, index('c1')), { kind: 'local', type: 'f32', name: 'top' }),
          },
        ],
      }),
    )
    expect(refusal(() => apply(draft))).toMatchObject({
      code: 'plan.illegal',
      message: "group k: nodes op0 and op2 cannot be one kernel: the row of op0 is split by the other's axes",
    })
  })
})

it('a value that a reduction and a store read is computed once for both', () => {
  const draft = new Draft()
  const made = elementwise(draft, draft.input('m a*b'))
  draft.output(
    draft.op({
      ...columns,
      reads: reading(made),
      body: ({ x }, { m = i32(0) }) => [
        { kind: 'reduce', name: 'total', type: 'f32', monoid: 'sum', length: dim('n'), index: 'c', value: at(x, m, index('c')) },
        {
          kind: 'storeRow',
          tensor: 'y',
          rows: [m],
          length: dim('n'),
          index: 'c1',
          value: call('div', at(x, m, index('c1')), call('add', { kind: 'local', type: 'f32', name: 'total' }, f32(1))),
        },
      ],
    }),
  )
  const { body } = kernelOf(draft)
  expect(body.filter(({ kind }) => kind === 'row')).toHaveLength(1)
  expect(JSON.stringify(body).split('"exp"')).toHaveLength(2)
})
