/** Structural hashes: equal for equal content, however it was built, and for nothing else. */
import { describe, expect, it } from 'vitest'
import { call, f32, index, local } from '../../src/ir/build.js'
import { structuralHash } from '../../src/ir/structural_hash.js'

describe('contentKey', () => {
  it('is the same for copies, and for parts that are shared or not', () => {
    const part = { extent: [1, 2], of: call('mul', local('a'), index('i')) }
    const shared = { left: part, right: part }
    expect(structuralHash(shared)).toBe(structuralHash(structuredClone(shared)))
    expect(structuralHash(shared)).toBe(structuralHash({ left: structuredClone(part), right: structuredClone(part) }))
  })
  it('is the same for a number that is stored as an integer and as a double', () => {
    // The first element makes the list one of doubles.
    const doubles = [0.5, 7]
    doubles[0] = 3
    expect(structuralHash({ list: doubles })).toBe(structuralHash({ list: [3, 7] }))
  })
  const all: readonly unknown[] = [
    [],
    {},
    [[]],
    [0],
    [-0],
    ['0'],
    [0, 0],
    [undefined],
    [null],
    [true],
    [Number.NaN],
    { a: 1 },
    { a: '1' },
    { a: undefined },
    { b: 1 },
    { a: { b: 1 } },
    [[1, 2], 3],
    [1, [2, 3]],
    [[1], [2, 3]],
    '[1]',
    ['[1]'],
    [{ a: 1, b: 2 }],
    [{ a: 1 }, { b: 2 }],
    'long '.repeat(60),
    ['long '.repeat(60)],
    [['long '.repeat(60)]],
    new Map([['a', 1]]),
    new Map([['a', 2]]),
    new Set(['a']),
    new Set(['b']),
    call('add', local('a'), f32(1)),
    call('sub', local('a'), f32(1)),
    call('add', local('b'), f32(1)),
    call('add', local('a'), f32(2)),
    { ...call('add', local('a'), f32(1)), more: 1 },
    { kind: 'index', type: 'i32', name: 'i', extent: 3 },
    index('i'),
  ]
  it('differs for values that differ', () => expect(new Set(all.map(structuralHash)).size).toBe(all.length))
  it.each([[() => 1], [Symbol('s')], [new Float64Array(1)]])('refuses %s', (value) =>
    expect(() => structuralHash({ value })).toThrow('internal'),
  )
})
