import { existsSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { byTurns } from './by_turns.js'
import { changedInstances, fileTurn, instancesInTurn, inTurn, listTurn, seedOfTurn, turnOf } from './turns.js'

const entries = [
  'add f32',
  'add f16',
  'add bf16',
  'rank k1',
  'rank k2',
  'rank k4',
  'rank k8',
  'take',
  'cast f32',
  'cast f16',
].map((key) => ({ key, op: key.replace(/ .*/, ''), file: `cuda/${key}.cu` }))
const keysAt = (at: number, changed: readonly string[] = []) =>
  instancesInTurn(entries, at, changedInstances(changed)).map(({ key }) => key)
const opsOf = (keys: readonly string[]) => new Set(keys.map((key) => key.replace(/ .*/, '')))

describe('rotation groups', () => {
  it('try each instance in six commits, and an instance of each op in two', () => {
    const turns = [0, 1, 2, 3, 4, 5].map((at) => keysAt(at))
    expect(new Set(turns.flat())).toEqual(new Set(entries.map(({ key }) => key)))
    for (const at of [0, 1, 2, 3, 4]) {
      const both = [...(turns[at] ?? []), ...(turns[at + 1] ?? [])]
      expect(opsOf(both)).toEqual(new Set(entries.map(({ op }) => op)))
    }
    expect(turns.flat().filter((key) => key.startsWith('add') || key.startsWith('rank'))).toHaveLength(7)
  })
  it('try changed ops at every commit, and all of them after a change of what all contain', () => {
    for (const at of [0, 1]) {
      expect(opsOf(keysAt(at, ['generated/cuda/add f16.cu']))).toContain('add')
      expect(keysAt(at, ['generated/cuda/add f16.cu'])).not.toEqual(entries.map(({ key }) => key))
      expect(opsOf(keysAt(at, ['native/device/kernel.cuh']))).toEqual(new Set(entries.map(({ op }) => op)))
      expect(keysAt(at, ['native/addon/addon.cpp'])).toEqual(keysAt(at))
    }
    expect([0, 1].map((at) => opsOf(keysAt(at)).has('add')).sort()).toEqual([false, true])
  })
  it('give each commit its own seed', () => {
    expect(seedOfTurn('1234')).toBe(1234)
    expect(seedOfTurn('all')).toBe(0)
    expect(seedOfTurn('commit')).toBeGreaterThan(0)
  })
  it('are stated by number, or all at once', () => {
    expect(turnOf('all')).toBeUndefined()
    expect(turnOf('4')).toBe(1)
    expect(() => turnOf('some')).toThrow('expected HEDDLE_TURNS to be all, commit or a number, got some')
  })
})

describe('rotating files', () => {
  const files = byTurns.flat()
  it('exist, each in one group', () => {
    expect(files.filter((file) => !existsSync(file))).toEqual([])
    expect(new Set(files).size).toBe(files.length)
    expect(byTurns).toHaveLength(4)
  })
  it('list cases that all run within twelve commits', () => {
    const cases = ['a', 'b', 'c', 'd', 'e']
    for (const file of [0, 1, 2, 3]) {
      const runs = Array.from({ length: 12 }, (_, at) => at).filter((at) => fileTurn(String(at)) === file)
      expect(new Set(runs.flatMap((at) => inTurn(cases, listTurn(String(at)))))).toEqual(new Set(cases))
    }
  })
})
