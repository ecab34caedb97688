/** Invariants of every row construct, tested on one statement of each kind; and the effect of its traits on an op. */
import { describe, expect, it } from 'vitest'
import { isElementwise } from '../../src/fuse/space/space.js'
import { call, constant, dim, f32, i32, index, local } from '../../src/ir/build.js'
import { constructOf, constructs } from '../../src/ir/constructs/index.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Stmt, StmtOf } from '../../src/ir/kernel.js'
import { simplifyKernel } from '../../src/ir/simplify.js'
import { introducedNames, mapStmt, stmtExprs } from '../../src/ir/walk.js'
import { centre, load } from './kernels.js'

const n = dim('n')
const looped = { length: n, index: 'c', value: load('x', index('r'), index('c')) } as const

const monoid: StmtOf<'merge'>['monoid'] = {
  fields: [
    { name: 'p', type: 'f32', identity: 0 },
    { name: 'q', type: 'i32', identity: 0 },
  ],
  left: ['x_p', 'x_q'],
  right: ['y_p', 'y_q'],
  combine: [call('add', local('x_p'), local('y_p')), call('add', local('x_q', 'i32'), local('y_q', 'i32'))],
}
const merged = {
  names: ['a', 'b'],
  monoid,
  length: n,
  index: 'c',
  values: [load('x', index('r'), index('c')), index('c')],
} as const

const samples: { readonly [K in Stmt['kind']]: StmtOf<K> } = {
  let: { kind: 'let', name: 'a', type: 'f32', value: load('x', index('r'), i32(0)) },
  row: { kind: 'row', name: 'a', type: 'f32', ...looped },
  reduce: { kind: 'reduce', name: 'a', type: 'f32', monoid: 'sum', ...looped },
  scan: { kind: 'scan', name: 'a', type: 'f32', monoid: 'sum', ...looped },
  merge: { kind: 'merge', ...merged },
  mergeScan: { kind: 'mergeScan', ...merged },
  foldRow: {
    kind: 'foldRow',
    names: ['a', 'b'],
    fold: {
      fields: [
        { name: 'p', type: 'f32' },
        { name: 'q', type: 'i32' },
      ],
      taken: ['f32'],
      before: ['p', 'q'],
      element: ['e'],
      next: [call('add', local('p'), local('e')), local('q', 'i32')],
    },
    starts: [f32(0), index('r')],
    length: n,
    index: 'c',
    values: [load('x', index('r'), index('c'))],
  },
  foldState: {
    kind: 'foldState',
    fields: [
      { is: 'row', result: 'a', before: 's', after: 's2' },
      { is: 'number', result: 'b', before: 'p', after: 'p2' },
    ],
    each: true,
    length: n,
    index: 'c',
    width: dim('k'),
    column: 'd',
    starts: [load('x', index('r'), index('d')), f32(0)],
    step: [
      { does: 'reduce', name: 'total', type: 'f32', monoid: 'sum' },
      { does: 'row', name: 's2', type: 'f32' },
      { does: 'let', name: 'p2', type: 'f32' },
    ],
    values: [
      { kind: 'element', type: 'f32', row: 's', index: index('d') },
      call('mul', { kind: 'element', type: 'f32', row: 's', index: index('d') }, f32(2)),
      call('add', local('p'), local('total')),
    ],
  },
  team: {
    kind: 'team',
    construct: 'threshold',
    name: 'a',
    type: 'f32',
    length: n,
    usual: i32(3),
    index: 'c',
    scalars: { target: f32(2) },
    elements: { key: f32(1), weight: f32(4) },
  },
  topK: { kind: 'topK', name: 'a', indices: 'b', count: dim('k'), ...looped },
  argsort: { kind: 'argsort', name: 'a', most: 64, ...looped },
  counts: { kind: 'counts', name: 'a', bins: dim('k'), most: 64, ...looped },
  storeRow: { kind: 'storeRow', tensor: 'y', rows: [index('r')], when: constant('bool', true), ...looped },
  histogram: { kind: 'histogram', tensor: 'y', rows: [index('r')], bins: dim('k'), ...looped },
  store: { kind: 'store', tensor: 'y', indices: [index('r')], value: f32(1), when: constant('bool', true) },
}
const all = Object.values(samples)

/** True for a record of expressions. */
const isNamed = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !('kind' in value)

/** Expressions among the fields of a statement, found without knowing its kind. */
const fields = (stmt: Stmt): Expr[] =>
  Object.values<unknown>({ ...stmt })
    .flatMap((value) => (isNamed(value) ? Object.values<unknown>(value) : value))
    .filter((value): value is Expr => typeof value === 'object' && value !== null && 'kind' in value)

describe.each(all)('$kind', (stmt) => {
  const construct = constructOf(stmt)

  it('names every expression it has, once', () => {
    expect(new Set(stmtExprs(stmt))).toEqual(new Set(fields(stmt)))
    expect(stmtExprs(stmt)).toHaveLength(fields(stmt).length)
  })

  it('maps every expression it has, and nothing else', () => {
    const mapped = mapStmt(stmt, () => f32(7))
    expect(stmtExprs(mapped).every((expr) => expr.kind === 'const' && expr.value === 7)).toBe(true)
    expect(mapStmt(stmt, (expr) => expr)).toEqual(stmt)
  })

  it('renames its definitions, without its loop index', () => {
    const renamed = construct.rename(stmt, (name) => `${name}_new`)
    expect(construct.defines(renamed).map(({ name }) => name)).toEqual(construct.defines(stmt).map(({ name }) => `${name}_new`))
    expect('index' in renamed ? renamed.index : undefined).toBe('index' in stmt ? 'c' : undefined)
    expect(introducedNames(stmt)).toEqual([
      ...construct.defines(stmt).map(({ name }) => name),
      ...('index' in stmt ? ['c'] : []),
      ...('column' in stmt ? ['d'] : []),
    ])
  })

  it('has traits that agree with its form', () => {
    const { makes, elements, walk } = construct.traits
    expect(makes === 'output').toBe('tensor' in stmt)
    expect(elements !== 'none').toBe('length' in stmt)
    expect(walk === 'none').toBe(elements === 'none')
    // A construct that carries rows also defines scalars.
    const made = construct.defines(stmt).filter(({ kind }) => !(stmt.kind === 'foldState' && kind === 'local'))
    expect(made.every(({ kind }) => (kind === 'row') === (makes === 'rows'))).toBe(true)
    expect(construct.defines(stmt).length > 0).toBe(makes !== 'output')
  })
})

it('has an object for each kind', () => expect(Object.keys(constructs).sort()).toEqual(Object.keys(samples).sort()))

it('allows moving an op only if no element needs another', () => {
  const moved = all.filter((stmt) => isElementwise({ ...centre, body: [stmt] }))
  expect(moved.map(({ kind }) => kind).sort()).toEqual(['let', 'store', 'storeRow'])
})

it('drops a ranking only when neither of its rows is read', () => {
  const read = (row: string): Stmt => ({
    ...samples.storeRow,
    value: { kind: 'element', type: 'f32', row, index: index('c') },
  })
  const kinds = (...body: Stmt[]) => simplifyKernel({ ...centre, body }).body.map(({ kind }) => kind)
  expect(kinds(samples.topK, read('a'))).toEqual(['topK', 'storeRow'])
  expect(kinds(samples.topK, read('b'))).toEqual(['topK', 'storeRow'])
  expect(kinds(samples.topK, samples.store)).toEqual(['store'])
})
