import { describe, expect, test } from 'vitest'
import { canonicalJson, sha256 } from '../../src/toolchain/hash.js'

describe('canonicalJson', () => {
  test('does not depend on the order of keys', () => {
    expect(canonicalJson({ b: 1, a: [{ d: null, c: 'x' }] })).toBe('{"a":[{"c":"x","d":null}],"b":1}')
    expect(canonicalJson({ a: 1, b: 2 })).toBe(canonicalJson({ b: 2, a: 1 }))
  })

  test('depends on the order of lists and on every value', () => {
    const keys = [[1, 2], [2, 1], ['1', 2], { 0: 1, 1: 2 }].map((value) => sha256(canonicalJson(value)))
    expect(new Set(keys).size).toBe(keys.length)
  })
})
