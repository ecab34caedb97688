/** Wrong arguments of untyped callers to a model: invalid cases and options are refused by name. */
import { describe, expect, it } from 'vitest'
import { generateNames, scoreNames } from '../../src/models/llama/llama_types.js'
import { expectOptions, named } from '../../src/models/parts/known_options.js'
import { checkCases, type TokenCase } from '../../src/models/parts/token_cases.js'
import { refusal } from '../refusal.js'

const limits = { positions: 16, vocab: 32, tokenTypes: 2 }
const check = (cases: unknown) => refusal(() => checkCases(limits, cases as readonly TokenCase[], 1))

describe('cases', () => {
  it.each([
    [undefined, 'run.batch', 'cases are undefined, expected an array'],
    ['12', 'run.batch', 'cases are the string "12"'],
    [{ inputIds: [1] }, 'run.batch', 'cases are an object'],
    [[null], 'run.case', 'case 0 is null, expected an object with inputIds'],
    [[[1, 2]], 'run.case', 'case 0 is an array'],
    [[{ inputIds: [1] }, { input_ids: [1] }], 'run.case', 'case 1 has an unknown field input_ids'],
    [[{ inputIds: [1], type_ids: [0] }], 'run.case', 'case 0 has an unknown field type_ids'],
    [[{}], 'run.case', 'case 0: inputIds is undefined'],
    [[{ inputIds: '12' }], 'run.case', 'case 0: inputIds is the string "12", expected an array of integers'],
    [[{ inputIds: Int32Array.of(1) }], 'run.case', 'case 0: inputIds is of type Int32Array'],
    [[{ inputIds: [1], typeIds: null }], 'run.case', 'case 0: typeIds is null'],
    [[{ inputIds: [1, '2'] }], 'run.token', 'case 0: inputIds[1] is the string "2", expected a number'],
    [[{ inputIds: [1n] }], 'run.token', 'case 0: inputIds[0] is the bigint 1'],
    [[{ inputIds: [1.5] }], 'run.token', 'token id 1.5'],
  ] as const)('of another form are refused: %#', (cases, code, text) => {
    expect(check(cases)).toMatchObject({ code, message: expect.stringContaining(text), hint: expect.any(String) })
  })

  it('of the form are not', () => {
    checkCases(limits, [{ inputIds: [1, 2] }, { inputIds: [3], typeIds: [1] }, { inputIds: [3], typeIds: undefined }], 1)
  })

  it('that are too long have the hint of their model', () => {
    const long = [{ inputIds: Array.from({ length: 17 }, () => 1) }]
    expect(check(long).hint).toContain('--truncate')
    const continued = refusal(() => checkCases({ ...limits, continued: true }, long, 1))
    expect(continued.message).toContain('case 0 has 17 tokens, the model has 16 positions')
    expect(continued.hint).not.toContain('--truncate')
  })
})

describe('options', () => {
  it('that nothing reads are refused by name, with the nearest and all there are', () => {
    const { code, message, hint } = refusal(() => expectOptions('generate', generateNames, { max_new_tokens: 2, num_beams: 2 }))
    expect([code, message]).toEqual(['run.option', 'generate has no option max_new_tokens'])
    expect(hint).toMatch(/^did you mean maxNewTokens\? options are beams, .*reused/)
    expect(refusal(() => expectOptions('score', scoreNames, { temperature: 1 })).hint).toMatch(/^options are .*places/)
    for (const [given, text] of [
      [null, 'null'],
      [[1], 'an array'],
      ['beams', 'a string'],
    ] as const)
      expect(refusal(() => expectOptions('score', scoreNames, given)).message).toBe(
        `score was given ${text}, expected an object of options`,
      )
    expectOptions('generate', generateNames, { beams: 2, invariant: 4, progress: undefined })
  })

  it('of a name are taken from others', () => {
    const given: { readonly a: number; readonly b?: string } = { a: 1, b: 'x' }
    expect(named<{ readonly a: number }>({ a: true }, given)).toEqual({ a: 1 })
  })
})
