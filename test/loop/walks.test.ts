/** Loops of column programs and of totals compute what the body computes, for columns with and without a tail, and faults in them are found. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel, Stmt } from '../../src/ir/kernel.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { walksOf } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { mapKernel } from '../../src/schedule/map.js'
import { axis, kernel, load, loadInt, tensor } from '../schedule/fixtures.js'
import { differences, oneLaunch, type Passes } from './run_loops.js'

const [r, c, i] = [index('r'), index('c'), index('i')]
const x = load('x', r, c)
type Monoid = Extract<Stmt, { kind: 'reduce' }>['monoid']
const reduce = (name: string, value: Expr, monoid: Monoid = 'sum', at = 'r', length = dim('m')): Stmt => ({
  kind: 'reduce',
  name,
  type: monoid === 'argmax' ? 'i32' : 'f32',
  monoid,
  length,
  index: at,
  value,
})
const store = (value: Expr, ...indices: readonly Expr[]): Stmt => ({ kind: 'store', tensor: 'y', indices, value })
const of = (name: string, axes: Kernel['rows'], dims: string, ...body: readonly Stmt[]): Kernel =>
  kernel(
    name,
    'm n',
    axes,
    [tensor('x', 'in', 'm n'), tensor('w', 'in', 'm'), tensor('id', 'in', 'm', 'i32'), tensor('y', 'out', dims)],
    body,
  )

/** Sums of two monoids, merged as one of an author. */
const pair: Stmt = {
  kind: 'merge',
  names: ['count', 'sum'],
  monoid: {
    fields: [
      { name: 'count', type: 'f32', identity: 0 },
      { name: 'sum', type: 'f32', identity: 0 },
    ],
    left: ['count_a', 'sum_a'],
    right: ['count_b', 'sum_b'],
    combine: [call('add', local('count_a'), local('count_b')), call('add', local('sum_a'), local('sum_b'))],
  },
  length: dim('m'),
  index: 'r',
  values: [f32(1), x],
}
const total: Stmt = reduce('total', x)
const mean: Stmt = { kind: 'let', name: 'mean', type: 'f32', value: call('mul', local('total'), f32(0.25)) }
const centred = call('sub', load('x', index('q'), c), local('mean'))
const counted = call('select', call('lt', loadInt('id', r), { kind: 'const', type: 'i32', value: 2 }), x, f32(0))
const inner = (value: Expr, monoid: 'sum' | 'max' = 'sum'): Expr => ({
  kind: 'fold',
  type: 'f32',
  monoid,
  length: dim('n'),
  index: 'c',
  value,
})

const i32 = (value: number): Expr => ({ kind: 'const', type: 'i32', value })
/** The sum of two weights, the same for each three columns. */
const ofGroup: Expr = {
  kind: 'fold',
  type: 'f32',
  monoid: 'sum',
  length: i32(2),
  index: 'k',
  value: load('w', call('add', call('idiv', c, i32(3)), index('k'))),
}

const columns = [
  of(
    'sums',
    [axis('c', 'n')],
    'n',
    total,
    reduce('top', load('x', index('q'), c), 'max', 'q'),
    store(call('add', local('total'), local('top')), c),
  ),
  of(
    'levels',
    [axis('c', 'n')],
    'n',
    total,
    mean,
    reduce('spread', call('square', centred), 'sum', 'q'),
    store(local('spread'), c),
  ),
  of('merges', [axis('c', 'n')], 'n', pair, store(call('add', local('count'), local('sum')), c)),
  of('counts', [axis('c', 'n')], 'n', reduce('some', counted), store(local('some'), c)),
  of('stores', [axis('i', 'm'), axis('c', 'n')], 'm n', total, mean, store(call('sub', load('x', i, c), local('mean')), i, c)),
  of(
    'groups',
    [axis('c', 'n')],
    'n',
    total,
    { kind: 'let', name: 'share', type: 'f32', value: ofGroup },
    store(call('add', local('total'), local('share')), c),
  ),
  of('places', [axis('c', 'n')], 'n', reduce('place', x, 'argmax'), store(call('toFloat', local('place', 'i32')), c)),
]
const totals = [
  of('all', [], '', reduce('total', inner(x)), store(call('mul', local('total'), f32(0.5)))),
  of('tops', [], '', reduce('top', inner(x, 'max'), 'max'), store(local('top'))),
  of(
    'weights',
    [],
    '',
    { ...mean, name: 'half', value: f32(0.5) },
    reduce('total', call('mul', local('half'), load('w', r))),
    store(local('total')),
  ),
  of(
    'strided',
    [],
    '',
    reduce('total', call('add', load('w', r), load('x', r, { kind: 'const', type: 'i32', value: 0 }))),
    store(local('total')),
  ),
]

const run = (subject: Kernel, passes: Partial<Passes> = {}, n = 13) =>
  differences({ kernel: subject, types: { T: 'f32' }, dims: {} }, { m: 11, n }, { lanes: 2, slots: 3, vec: 4 }, passes)

describe('programs whose rows are divided', () => {
  it.each([...columns, ...totals])('$name', (subject) => {
    const instance = { kernel: subject, types: { T: 'f32' }, dims: {} } as const
    const walks = walksOf(mapKernel(instance, undefined, undefined, oneLaunch)).map(([walk]) => walk)
    expect(walks).toEqual([columns.includes(subject) ? 'columns' : 'parts'])
    for (const n of [16, 13, 1]) expect(run(subject, {}, n), `${n} columns`).toEqual([])
  })
})

/** Changes the result of lowering, node by node. */
const lowered = (f: (loop: Loop) => readonly Loop[]): Partial<Passes> => ({
  lower: (...given) => mapLoops(loopPasses.lower(...given), f),
})
const changed = (kind: Loop['kind'], change: object): Partial<Passes> =>
  lowered((loop) => [loop.kind === kind ? ({ ...loop, ...change } as Loop) : loop])
const without = (kind: Loop['kind']) => lowered((loop) => (loop.kind === kind ? [] : [loop]))
const [sums = totals[0], levels, , , stores, groups] = columns
const [all] = totals

describe('the verifier finds', () => {
  it.each<[string, Kernel | undefined, Partial<Passes>, string]>([
    ['results of columns that are not exchanged', sums, without('exchange'), 'combined 0 times across lanes'],
    [
      'threads that meet in the loop over rows',
      sums,
      lowered((loop) => ('loops' in loop ? [{ ...loop, body: [...loop.body, { kind: 'barrier', publishes: [] }] }] : [loop])),
      'lanes meet where not all of them pass',
    ],
    [
      'a reduction exchanged twice',
      all,
      lowered((loop) => (loop.kind === 'exchange' ? [loop, loop] : [loop])),
      'combined 2 times across lanes',
    ],
    ['an exchange that no loop has announced', sums, without('announce'), 'is used before it is declared'],
    ['a chunk that is not loaded', sums, without('copy'), 'an element of x_c is read before it is computed'],
    [
      'a tail left out',
      stores,
      lowered((loop) => (loop.kind === 'exists' ? loop.body : [loop])),
      'an element that may not exist is collected',
    ],
    [
      'columns stored by all of their threads',
      sums,
      changed('store', { by: 'owner' }),
      'an element of y is stored by the wrong lanes',
    ],
    ['totals stored by all threads', all, changed('store', { by: 'owner' }), 'an element of y is stored by the wrong lanes'],
    [
      'columns collected outside of the loop over rows',
      sums,
      lowered((loop) => ('loops' in loop ? loop.body.filter(({ kind }) => kind === 'for') : [loop])),
      'x_c is read before it is computed',
    ],
    [
      'rows divided by all lanes',
      levels,
      lowered((loop) => ('loops' in loop ? [{ ...loop, owner: 'grid' }] : [loop])),
      'a loop of grids stands in another',
    ],
    [
      'a value of a group that depends on a column',
      groups,
      changed('groups', { value: load('w', call('idiv', c, i32(3))) }),
      'a value of a group depends on the column c',
    ],
    [
      'values of groups in the loop over rows',
      groups,
      lowered((loop) => {
        const inside: Loop = {
          kind: 'groups',
          row: 'again',
          type: 'f32',
          group: 'g',
          value: f32(1),
          column: 'c',
          columns: dim('n'),
          length: i32(3),
        }
        return 'loops' in loop ? [{ ...loop, body: [...loop.body, inside] }] : [loop]
      }),
      'lanes meet where not all of them pass',
    ],
    [
      'held rows that are taken before a walk leaves them',
      levels,
      lowered((loop) => (loop.kind === 'copy' && loop.held ? [{ ...loop, held: { ...loop.held, is: 'taken' } }] : [loop])),
      'held 0 is taken before it is left',
    ],
    [
      'held rows that two walks leave',
      levels,
      lowered((loop) => (loop.kind === 'copy' && loop.held ? [{ ...loop, held: { ...loop.held, is: 'left' } }] : [loop])),
      'held 0 is left again',
    ],
    [
      'held rows of another place',
      stores,
      lowered((loop) =>
        'loops' in loop && loop.body.some(({ kind }) => kind === 'storeChunk')
          ? [{ ...loop, loops: loop.loops.map((each) => ({ ...each, index: 'r' })) }]
          : [loop],
      ),
      'held 0 is not what is loaded from x',
    ],
    ['held rows that are fewer than those of a walk', levels, changed('held', { length: dim('n') }), 'in a loop over other rows'],
    ['held rows that are not declared', levels, without('held'), 'held 0 is used before it is declared'],
    [
      'a missing check',
      sums,
      {
        version: (loops) =>
          loopPasses
            .version(loops, { walk: 'columns', widths: [4], mayBeEmpty: false, tensors: [], fixed: {} })
            .map((loop) => (loop.kind === 'version' ? { ...loop, aligned: [] } : loop)),
      },
      'a chunk of x is accessed without a check',
    ],
  ])('%s', (_, subject, passes, reason) => expect(() => run(subject ?? (all as Kernel), passes)).toThrow(reason))
})

describe('running the loops finds', () => {
  it('rows that are left out, and rows that are taken twice', () => {
    const shorter = lowered((loop) =>
      'loops' in loop ? [{ ...loop, when: call('lt', r, { kind: 'const', type: 'i32', value: 9 }) }] : [loop],
    )
    expect(run(sums as Kernel, shorter)[0]).toMatchObject({ walk: 'columns', place: expect.stringContaining('y[0]') })
    const twice = lowered((loop) =>
      'loops' in loop ? [{ ...loop, body: [...loop.body, ...loop.body.filter(({ kind }) => kind === 'for')] }] : [loop],
    )
    expect(() => run(sums as Kernel, twice)).toThrow('is collected twice')
    expect(() => run(all as Kernel, twice)).toThrow('missing or collected twice')
  })

  it('groups of another length', () =>
    expect(run(groups as Kernel, changed('groups', { length: i32(4) }))[0]).toMatchObject({
      place: expect.stringContaining('y[3]'),
    }))

  it('a version for whole rows that is taken for all', () => {
    const version: Passes['version'] = (...given) =>
      loopPasses.version(...given).map((loop) => (loop.kind === 'version' ? { ...loop, lengths: [] } : loop))
    for (const subject of [sums, all]) expect(() => run(subject as Kernel, { version })).toThrow(/does not exist|not full/)
  })

  it('loops of which an index is missing', () => {
    const fewer = lowered((loop) => ('loops' in loop ? [{ ...loop, loops: loop.loops.slice(-1) }] : [loop]))
    expect(() => run(all as Kernel, fewer)).toThrow()
  })
})
