import { describe, expect, it } from 'vitest'
import { instancesInTurn, turnOf } from './turns.js'

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
].map((key) => ({ key, op: key.replace(/ .*/, '') }))
const keysAt = (turn: number) => instancesInTurn(entries, turn).map(({ key }) => key)

describe('turns', () => {
  it('try each instance in three commits, and an instance of each op at every one', () => {
    const turns = [0, 1, 2].map(keysAt)
    expect(new Set(turns.flat())).toEqual(new Set(entries.map(({ key }) => key)))
    for (const keys of turns)
      expect(new Set(keys.map((key) => key.replace(/ .*/, '')))).toEqual(new Set(entries.map(({ op }) => op)))
    expect(turns.flat().filter((key) => key.startsWith('add') || key.startsWith('rank'))).toHaveLength(7)
  })
  it('are stated by number, or all at once', () => {
    expect(turnOf('all')).toBeUndefined()
    expect(turnOf('4')).toBe(1)
    expect(() => turnOf('some')).toThrow('expected HEDDLE_TURNS to be all or a number, got some')
  })
})
