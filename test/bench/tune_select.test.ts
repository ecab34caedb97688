import { describe, expect, it } from 'vitest'
import type { TuneCandidate } from '../../src/bench/tune_plan.js'
import { finalists, selectVariants, type TimesAtRows } from '../../src/bench/tune_select.js'

const candidate = (key: string, keepsOrder: boolean): TuneCandidate => ({
  key,
  keepsOrder,
  choice: { kind: 'rows', team: { kind: 'block', lanes: key.length * 32 }, chunks: 1, vec: 8 },
})
const [a, bb, other] = [candidate('a', true), candidate('bb', true), candidate('other', false)]

const at = (rows: number, rules: number, times: Readonly<Record<string, number>>): TimesAtRows => ({
  rows,
  rules,
  candidates: new Map(Object.entries(times)),
})

/** Chosen teams with their rows. */
const select = (...times: readonly TimesAtRows[]) =>
  selectVariants(times, [a, bb, other]).map(({ fromRows, toRows, choice }) => {
    const name = [a, bb, other].find((known) => known.choice === choice)?.key
    return [name, fromRows, toRows]
  })

describe('the selected choice', () => {
  it('is none if it saves no more than the repeatability of measurements', () => {
    expect(select(at(256, 100, { a: 97.1, bb: 100, other: 97.2 }))).toEqual([])
    expect(select(at(256, 100, { a: 96.9, bb: 100 }))).toEqual([['a', 256, undefined]])
  })

  it('the best at each number of rows, neighbours as one', () => {
    expect(select(at(64, 10, { a: 9, bb: 8 }), at(256, 10, { a: 9, bb: 8 }), at(1024, 10, { a: 7, bb: 8 }))).toEqual([
      ['bb', 64, 511],
      ['a', 512, undefined],
    ])
  })

  it('is the rules between two numbers of rows with a better choice', () => {
    expect(select(at(64, 10, { a: 9 }), at(256, 10, { a: 10 }), at(1024, 10, { a: 9 }))).toEqual([
      ['a', 64, 127],
      ['a', 512, undefined],
    ])
  })

  it('whatever order the numbers of rows were measured in', () => {
    expect(select(at(1024, 10, { a: 10 }), at(256, 10, { a: 8 }))).toEqual([['a', 256, 511]])
  })
})

describe('a choice that combines rows in another order', () => {
  it('serves every number of rows', () => {
    expect(select(at(256, 10, { other: 8 }), at(4096, 10, { other: 9.9 }))).toEqual([['other', 1, undefined]])
  })

  it('is left out when it loses once', () => {
    expect(select(at(256, 10, { other: 10.4 }), at(4096, 10, { other: 5 }))).toEqual([])
  })

  it('is left out when few rows were not measured', () => {
    expect(select(at(4096, 10, { other: 5 }))).toEqual([])
  })

  it('is left out when it failed somewhere', () => {
    expect(select(at(256, 10, {}), at(4096, 10, { other: 5 }))).toEqual([])
  })

  it('gives way to choices by rows that save more', () => {
    expect(select(at(256, 10, { a: 6, other: 8 }))).toEqual([['a', 256, undefined]])
  })
})

describe('candidates for a second timing', () => {
  const names = ['a', 'bb', 'ccc', 'dddd', 'eeeee']
  const many = names.map((name) => candidate(name, true))
  const found = (group: readonly TuneCandidate[], ...times: readonly TimesAtRows[]) =>
    finalists(times, group).map(({ key }) => key)

  it('the leading ones of each order', () => {
    expect(found([...many, other], at(256, 10, { a: 5, bb: 9, ccc: 6, dddd: 8, eeeee: 7, other: 20 }))).toEqual([
      'a',
      'ccc',
      'eeeee',
      'other',
    ])
  })

  it('the leading ones at each number of rows, and altogether', () => {
    const few = at(256, 10, { a: 4, bb: 4, ccc: 4, dddd: 5, eeeee: 9 })
    const lots = at(4096, 10, { a: 9, bb: 9, ccc: 9, dddd: 5, eeeee: 4 })
    expect(found(many, few, lots)).toEqual(['a', 'bb', 'ccc', 'dddd', 'eeeee'])
    expect(found(many, few)).toEqual(['a', 'bb', 'ccc'])
  })
})
