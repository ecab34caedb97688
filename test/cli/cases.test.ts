import { describe, expect, test } from 'vitest'
import { parseCases } from '../../src/cli/cases.js'

describe('parseCases', () => {
  test('keeps order and skips blank lines', () => {
    const lines = '{"input_ids":[1,2]}\n\n{"text":"in the beginning"}\r\n{"text":"who","pair":"God"}'
    expect(parseCases(lines, 'c.jsonl')).toEqual([
      { input_ids: [1, 2] },
      { text: 'in the beginning' },
      { text: 'who', pair: 'God' },
    ])
  })

  test.each([
    ['{"input_ids":[1,', 'c.jsonl:2 is not JSON: {"input_ids":[1,'],
    ['{"input_ids":[]}', /^c\.jsonl:2: .* at input_ids$/],
    ['{"input_ids":[1.5]}', /^c\.jsonl:2: .* at input_ids\.0$/],
    ['{"input_ids":[-1]}', /^c\.jsonl:2: .* at input_ids\.0$/],
    ['{"input_ids":[1],"text":"x"}', /^c\.jsonl:2: Unrecognized key: "text"$/],
    ['{"text":""}', /^c\.jsonl:2: .* at text$/],
    ['{"pair":"x"}', /^c\.jsonl:2: .* at text$/],
    ['{"text":"x","pair":""}', /^c\.jsonl:2: .* at pair$/],
    ['{"tokens":[1]}', /^c\.jsonl:2: /],
    ['[1]', /^c\.jsonl:2: /],
    ['null', /^c\.jsonl:2: /],
  ])('refuses %s with its line', (line, message) => {
    expect(() => parseCases(`{"input_ids":[1]}\n${line}\n`, 'c.jsonl')).toThrow(message)
  })

  test('takes the items of a labelled set', () => {
    const text = JSON.stringify({ labels: ['O'], items: [{ input_ids: [1, 2], labels: [0, 0] }, { input_ids: [3] }] }, null, 1)
    expect(parseCases(text, 'set.json')).toEqual([{ input_ids: [1, 2] }, { input_ids: [3] }])
  })
  test.each([
    ['{"items":[]}', /^set\.json: .* at items$/],
    ['{"items":[{"input_ids":[]}]}', /^set\.json: .* at items\.0\.input_ids$/],
    ['{"items":[{"text":"x"}]}', /^set\.json: .* at items\.0\.input_ids$/],
  ])('refuses the set %s', (text, message) => expect(() => parseCases(text, 'set.json')).toThrow(message))

  test.each(['', '\n \n'])('an empty file is an empty batch', (text) => {
    expect(() => parseCases(text, 'c.jsonl')).toThrow('empty batch: c.jsonl contains no case')
  })
})
