import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { jsonText } from '../../src/emit/manifest/json.js'

describe('jsonText', () => {
  it('equals JSON.stringify', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        expect(JSON.parse(jsonText(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
      { seed: 3 },
    )
  })

  it('puts values that fit on one line, and other members on a line each', () => {
    const row = { name: 'x', dims: ['m', 'n'] }
    expect(jsonText(row)).toBe('{"name":"x","dims":["m","n"]}')
    const rows = Array.from({ length: 6 }, () => row)
    expect(jsonText(rows).split('\n')).toHaveLength(rows.length + 2)
  })

  it('leaves out members without a value, on one line and on several', () => {
    expect(jsonText({ a: 1, b: undefined })).toBe('{"a":1}')
    expect(JSON.parse(jsonText({ a: 'x'.repeat(200), b: undefined }))).toEqual({ a: 'x'.repeat(200) })
  })
})
