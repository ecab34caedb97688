/** Meaning of ranking a row, in the language, the evaluator, the printer and the verifier; and the counts with compiled kernels. */
import { op, row, tensor, topK } from 'heddle'
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index } from '../../src/ir/build.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import { allInstances, instanceKey, rankedDims } from '../../src/ir/instance.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { printKernel } from '../../src/ir/print.js'
import { simplifyKernel } from '../../src/ir/simplify.js'
import { countFor, rankValues } from '../../src/ir/top_k.js'
import { verifyKernel } from '../../src/ir/verify.js'
import { runOp } from '../../src/lang/run.js'
import { ranked } from '../schedule/ranked.js'

const of = (count: number, values: readonly number[]) => rankValues(count, values.length, (i) => values[i] ?? 0)
const least = Number.NEGATIVE_INFINITY

describe('the largest elements of a row', () => {
  it('come largest first, the lower index among equals', () => {
    expect(of(3, [1, 5, 3, 5, 2])).toEqual({ values: [5, 5, 3], indices: [1, 3, 2] })
    expect(of(2, [7, 7, 7])).toEqual({ values: [7, 7], indices: [0, 1] })
    expect(of(4, [4, 3, 2, 1, 0]).indices).toEqual([0, 1, 2, 3])
    expect(of(4, [0, 1, 2, 3, 4]).indices).toEqual([4, 3, 2, 1])
    expect(of(2, [0, -0, 0]).indices).toEqual([0, 1])
  })

  it('are filled up by -Infinity at -1', () => {
    expect(of(3, [2])).toEqual({ values: [2, least, least], indices: [0, -1, -1] })
    expect(of(2, [])).toEqual({ values: [least, least], indices: [-1, -1] })
    expect(rankValues(1, -4, () => 1)).toEqual({ values: [least], indices: [-1] })
  })

  it('may be -Infinity, and are never NaN', () => {
    expect(of(3, [least, Number.NaN, 1])).toEqual({ values: [1, least, least], indices: [2, 0, -1] })
    expect(of(1, [Number.NaN]).indices).toEqual([-1])
  })

  it('equal a sort of the whole row', () => {
    const values = Array.from({ length: 200 }, (_, i) => (i * 37) % 23)
    const sorted = values.map((value, i) => [value, i] as const).sort(([a, i], [b, j]) => b - a || i - j)
    expect(of(64, values).indices).toEqual(sorted.slice(0, 64).map(([, i]) => i))
  })
})

describe('topK in a body', () => {
  const best = op('best', {
    dims: ['m', 'n', 'k'],
    inputs: { x: tensor('f32', 'm n') },
    outputs: { values: tensor('f32', 'm k'), indices: tensor('i32', 'm k') },
    body:
      ({ x }, { n, k }) =>
      (m) => {
        const { values, indices } = topK(k, n, (c) => x(m, c))
        return { values, indices: row(k, (i) => indices(i)) }
      },
  })

  it('runs as plain TypeScript', () => {
    const x = { data: [1, 4, 2, 4, 0, 9], shape: [2, 3] }
    const { values, indices } = runOp(best, { x }, { dims: { k: 2 } })
    expect([Array.from(values?.data ?? []), Array.from(indices?.data ?? [])]).toEqual([
      [4, 2, 9, 4],
      [1, 2, 2, 0],
    ])
  })

  it('has no element beyond k', () => {
    expect(() => topK(2, 3, (c) => c).values(2)).toThrow('index 2 is outside the row of 2 elements')
  })
})

describe('a kernel that ranks', () => {
  const [topStatement, ...rest] = ranked.body as [Stmt, ...Stmt[]]

  it('prints its rows and verifies', () => {
    expect(printKernel(ranked)).toContain('\n  rows best, at = top k(c < n: x[r, c])\n')
    expect(() => verifyKernel(ranked, 'test')).not.toThrow()
  })

  it('is evaluated', () => {
    const x = { data: [1, 4, 2, 4, 0, 9], shape: [1, 6] }
    const { values, indices } = evaluateKernel(ranked, { x }, { m: 1, n: 6, k: 2 })
    expect([Array.from(values?.data ?? []), Array.from(indices?.data ?? [])]).toEqual([
      [9, 4],
      [5, 1],
    ])
  })

  it.each([
    ['integers', { ...topStatement, value: i32(1) }, 'only floats are ranked'],
    ['a float count', { ...topStatement, count: f32(2) }, 'index or length 2.0 is f32, not i32'],
    ['two rows of one name', { ...topStatement, indices: 'best' }, 'name best is introduced twice'],
  ] as const)('may not have %s', (_, broken, problem) => {
    const kernel: Kernel = { ...ranked, body: [broken as Stmt, ...rest] }
    expect(() => verifyKernel(kernel, 'test')).toThrow(problem)
  })

  it('drops an unused ranking, and keeps one of which only the indices are read', () => {
    const unread: Stmt = {
      kind: 'topK',
      name: 'more',
      indices: 'moreAt',
      count: dim('k'),
      length: dim('n'),
      index: 'z',
      value: f32(1),
    }
    expect(simplifyKernel({ ...ranked, body: [unread, ...ranked.body] }).body).toHaveLength(ranked.body.length)
    const read: Stmt = {
      kind: 'storeRow',
      tensor: 'indices',
      rows: [index('r')],
      length: dim('k'),
      index: 'y',
      value: call('add', { kind: 'element', type: 'i32', row: 'moreAt', index: index('y') }, i32(1)),
    }
    expect(simplifyKernel({ ...ranked, body: [unread, read] }).body).toHaveLength(2)
  })

  it('has an instance for every count', () => {
    expect(rankedDims(ranked)).toEqual(['k'])
    expect(allInstances(ranked).map(({ dims }) => instanceKey('ranked', {}, dims))).toEqual(
      [1, 2, 4, 8, 16, 32, 64].map((k) => `ranked__k${k}`),
    )
  })
})

it('takes the next larger count there are kernels for', () => {
  expect([1, 2, 3, 4, 5, 33, 64].map(countFor)).toEqual([1, 2, 4, 4, 8, 64, 64])
  for (const wrong of [0, 65, 1.5, Number.NaN])
    expect(() => countFor(wrong)).toThrow('expected a count of largest elements from 1 to 64')
})
