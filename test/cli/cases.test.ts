import { describe, expect, test } from 'vitest'
import { parseCases } from '../../src/cli/cases.js'

describe('parseCases', () => {
  test('keeps order and skips blank lines', () => {
    expect(parseCases('{"input_ids":[1,2]}\n\n{"text":"in the beginning"}\r\n', 'c.jsonl')).toEqual([
      { input_ids: [1, 2] },
      { text: 'in the beginning' },
    ])
  })

  test.each([
    ['{"input_ids":[1,', 'c.jsonl:2 is not JSON: {"input_ids":[1,'],
    ['{"input_ids":[]}', /^c\.jsonl:2: .* at input_ids$/],
    ['{"input_ids":[1.5]}', /^c\.jsonl:2: .* at input_ids\.0$/],
    ['{"input_ids":[-1]}', /^c\.jsonl:2: .* at input_ids\.0$/],
    ['{"input_ids":[1],"text":"x"}', /^c\.jsonl:2: Unrecognized key: "text"$/],
    ['{"text":""}', /^c\.jsonl:2: .* at text$/],
    ['{"tokens":[1]}', /^c\.jsonl:2: /],
    ['[1]', /^c\.jsonl:2: /],
    ['null', /^c\.jsonl:2: /],
  ])('refuses %s with its line', (line, message) => {
    expect(() => parseCases(`{"input_ids":[1]}\n${line}\n`, 'c.jsonl')).toThrow(message)
  })

  test.each(['', '\n \n'])('an empty file is an empty batch', (text) => {
    expect(() => parseCases(text, 'c.jsonl')).toThrow('empty batch: c.jsonl holds no case')
  })
})
