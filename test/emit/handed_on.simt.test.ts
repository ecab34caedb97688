/** Rows whose lanes pass results on, on simt against their IR: sorted rows, recurrences, and rows that others index. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local, toFloat } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../src/ir/kernel.js'
import { axis, element, kernel, load, tensor } from '../schedule/fixtures.js'
import { check, type Host, openKernels, type Subject } from './host.js'

const [m, n] = [index('m0'), dim('n')]
const x = (at: string): Expr => load('x', m, index(at))
const named = (name: string, output: 'i32' | 'f32', ...body: Stmt[]): Kernel =>
  kernel(name, 'm n', [axis('m0', 'm')], [tensor('x', 'in', 'm n', 'f32'), tensor('y', 'out', 'm n', output)], body)
const storeRow = (value: Expr): Stmt => ({ kind: 'storeRow', tensor: 'y', rows: [m], length: n, index: 'c1', value })

const sorted = named(
  'sorted',
  'i32',
  { kind: 'argsort', name: 'order', most: 2048, length: n, index: 'c', value: x('c') },
  storeRow({ kind: 'element', type: 'i32', row: 'order', index: index('c1') }),
)

/** Remainder of each element from that of the previous one: whole numbers, so that every bit is known. */
const left: StmtOf<'foldRow'> = {
  kind: 'foldRow',
  names: ['left'],
  fold: {
    fields: [{ name: 'left', type: 'f32' }],
    taken: ['f32'],
    before: ['before'],
    element: ['own'],
    next: [call('sub', local('own'), local('before'))],
  },
  starts: [f32(3)],
  length: n,
  index: 'c',
  values: [x('c')],
}
const carried = named('carried', 'f32', left, storeRow(element('left', index('c1'))))

const bins = 16
const bin = (of: string): Expr => call('mod', index(of), i32(bins))
/** Sums of every sixteenth element, read from the last to the first. */
const mirrored = named(
  'mirrored',
  'f32',
  {
    kind: 'row',
    name: 'sums',
    type: 'f32',
    length: i32(bins),
    index: 'c',
    value: {
      kind: 'fold',
      type: 'f32',
      monoid: 'sum',
      length: n,
      index: 'k',
      value: call('select', call('eq', bin('k'), index('c')), x('k'), f32(0)),
    },
  },
  storeRow(call('add', element('sums', call('sub', i32(bins - 1), bin('c1'))), toFloat(index('c1')))),
)

const subjects: readonly Subject[] = [sorted, carried, mirrored].map((each) => ({ kernel: each, class: 'exact' }))
/** Rows of a part of a warp, of a warp and of a block; the longest are several rounds of a block. */
const lengths = [1, 2, 15, 16, 17, 33, 255, 300, 1025]
const longest = 9001

let host: Host
beforeAll(async () => {
  host = await openKernels(subjects.map((subject) => subject.kernel))
})
afterAll(() => host?.close())

describe('rows that lanes make together on simt equal their IR', () => {
  it.each(subjects.map((subject) => [subject.kernel.name, subject] as const))('%s', async (name, subject) => {
    const complaints: string[] = []
    for (const length of name === 'carried' ? [...lengths, longest] : lengths)
      complaints.push(await check(host, subject, host.entry(name), length > 1000 ? 2 : 5, length))
    expect(complaints.filter((text) => text !== '')).toEqual([])
  })

  it('tell a wrong start from a right one', async () => {
    const wrong = { ...carried, body: carried.body.map((s) => (s.kind === 'foldRow' ? { ...s, starts: [f32(2)] } : s)) }
    expect(await check(host, { kernel: wrong, class: 'exact' }, host.entry('carried'), 2, 40)).toContain('y at 2 x 40')
  })
})
