/** Options of generation: the resolved form of each kind of choice, and refusals with the value and the allowed ones. */
import { describe, expect, test } from 'vitest'
import { type GenerationOptions, resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { noChanges } from '../../src/models/decoding/logit_changes.js'
import { refusal } from '../refusal.js'

const limits = { vocab: 45, positions: 64, cases: 3, endTokens: [1] }
const resolve = (options: GenerationOptions) => resolveGeneration(options, limits)

describe('choices', () => {
  test('a temperature of 0 draws nothing', () => {
    const { choice } = resolve({ temperature: 0, topP: 0.9, topK: 4, seed: [1, 2, 3] })
    expect(choice).toEqual({ kind: 'greedy' })
    expect(resolve({ temperature: 0, beams: 2 }).choice).toMatchObject({ kind: 'beams' })
    expect(resolve({ temperature: 1e-6 }).choice).toMatchObject({ kind: 'sampling' })
  })

  test('several samples of one case need seeds', () => {
    const hinted = (options: GenerationOptions) => refusal(() => resolve(options)).hint
    expect(hinted({ returned: 3, seed: 1 })).toBe('repeat a case once per sample, with a seed for each')
    expect(hinted({ returned: 3 })).toBe('only beams have several results')
  })

  test('beams support logits processors too', () => {
    const changes = { repetitionPenalty: 2, minNewTokens: 2, noRepeatNgramSize: 3 }
    expect(resolve({ beams: 2, ...changes })).toMatchObject({ choice: { kind: 'beams' }, ...changes })
  })

  test('forced tokens are an id, and one or several', () => {
    expect(resolve({ forcedBosTokenId: 44, forcedEosTokenId: 1 })).toMatchObject({ forcedFirst: 44, forcedLast: [1] })
    expect(resolve({ forcedEosTokenId: [1, 2] })).toMatchObject({ forcedFirst: undefined, forcedLast: [1, 2] })
  })

  test('the default is greedy, up to the number of positions', () => {
    expect(resolve({})).toEqual({ choice: { kind: 'greedy' }, maxNewTokens: 64, logprobs: false, ...noChanges })
    expect(resolveGeneration({}, { ...limits, positions: undefined }).maxNewTokens).toBe(128)
  })

  test('one beam is greedy, several are beams with one result', () => {
    expect(resolve({ beams: 1 }).choice).toEqual({ kind: 'greedy' })
    expect(resolve({ beams: 4 }).choice).toEqual({
      kind: 'beams',
      width: 4,
      returned: 1,
      rule: 'plain',
      lengthPenalty: 1,
      earlyStopping: false,
      diversityRate: 0,
    })
    expect(resolve({ beams: 4, diversityRate: -0.5 }).choice).toMatchObject({ rule: 'plain', diversityRate: -0.5 })
  })

  test('a length penalty or early stopping selects the rule that supports them', () => {
    const hf = { kind: 'beams', width: 4, rule: 'hf' }
    expect(resolve({ beams: 4, lengthPenalty: 2 }).choice).toMatchObject({ ...hf, lengthPenalty: 2, earlyStopping: false })
    expect(resolve({ beams: 4, earlyStopping: 'never' }).choice).toMatchObject({ ...hf, earlyStopping: 'never' })
    expect(resolve({ lengthPenalty: 2 }).choice).toMatchObject({ ...hf, width: 1 })
  })

  test.each<[GenerationOptions, object]>([
    [{ topK: 4 }, { topK: 4, topP: 1, temperature: 1, minP: 0, seeds: [0] }],
    [
      { topP: 0.75, seed: 7 },
      { topK: 0, topP: 0.75, seeds: [7] },
    ],
    [{ seed: [1, 2, 3] }, { topK: 0, topP: 1, seeds: [1, 2, 3] }],
    [
      { temperature: 0.5, minP: 0.1 },
      { temperature: 0.5, minP: 0.1 },
    ],
  ])('%o is drawn', (options, expected) => {
    expect(resolve(options).choice).toMatchObject({ kind: 'sampling', ...expected })
  })
})

describe('refusals', () => {
  test.each<[GenerationOptions, string, string]>([
    [{ beams: 0 }, 'generate.beams', 'beams is 0, expected an integer from 1 to 64'],
    [{ beams: 23 }, 'generate.beams', "beams is 23, expected at most 22, half of the model's 45 words"],
    [{ beams: 4, topK: 2 }, 'generate.beams', 'beams is 4, expected 1 with temperature, topK, topP, minP or a seed'],
    [{ beams: 2, returned: 3 }, 'generate.returned', 'returned is 3, expected an integer from 1 to 2'],
    [{ returned: 2 }, 'generate.returned', 'returned is 2, expected an integer from 1 to 1'],
    [
      { beams: 2, diversityRate: Number.NaN },
      'generate.diversityRate',
      'diversityRate is NaN, expected a number from -1000000 to 1000000',
    ],
    [
      { beams: 2, diversityRate: 1, lengthPenalty: 2 },
      'generate.diversityRate',
      'diversityRate is 1, expected 0 with the hf rule',
    ],
    [{ temperature: -1 }, 'generate.temperature', 'temperature is -1, expected a number from 0.000001 to 1000000'],
    [{ temperature: 0, topP: 3 }, 'generate.topP', 'topP is 3, expected a number above 0 and at most 1'],
    [{ temperature: Number.NaN }, 'generate.temperature', 'temperature is NaN, expected a number from 0.000001 to 1000000'],
    [{ topP: 0 }, 'generate.topP', 'topP is 0, expected a number above 0 and at most 1'],
    [{ topP: 1.5 }, 'generate.topP', 'topP is 1.5, expected a number above 0 and at most 1'],
    [{ topK: 46 }, 'generate.topK', 'topK is 46, expected an integer from 0 to 45'],
    [{ minP: -1 }, 'generate.minP', 'minP is -1, expected a number above 0 and at most 1'],
    [{ seed: 0.5 }, 'generate.seed', 'seed is 0.5, expected an integer from 0 to 9007199254740991'],
    [{ seed: [1, 2] }, 'generate.seed', 'seed is 2, expected one seed, or one for each of the 3 cases'],
    [{ maxNewTokens: 0 }, 'generate.maxNewTokens', 'maxNewTokens is 0, expected an integer from 1 to 64'],
    [{ maxNewTokens: 65 }, 'generate.maxNewTokens', 'maxNewTokens is 65, expected an integer from 1 to 64'],
    [{ forcedBosTokenId: 45 }, 'generate.forcedBosTokenId', 'forcedBosTokenId is 45, expected an integer from 0 to 44'],
    [{ forcedEosTokenId: [1, -1] }, 'generate.forcedEosTokenId', 'forcedEosTokenId is -1, expected an integer from 0 to 44'],
    [{ forcedEosTokenId: [] }, 'generate.forcedEosTokenId', 'forcedEosTokenId is [], expected a token id, or several'],
    [{ minNewTokens: 65 }, 'generate.minNewTokens', 'minNewTokens is 65, expected an integer from 0 to 64'],
    [
      { repetitionPenalty: 0 },
      'generate.repetitionPenalty',
      'repetitionPenalty is 0, expected a number from 0.000001 to 1000000',
    ],
    [
      { beams: 2, rule: 'plain', lengthPenalty: 2 },
      'generate.rule',
      'rule is "plain", expected hf with a length penalty or early stopping',
    ],
    [
      { noRepeatNgramSize: -1 },
      'generate.noRepeatNgramSize',
      'noRepeatNgramSize is -1, expected an integer from 0 to 1073741824',
    ],
    [{ beams: 2, lengthPenalty: Number.NaN }, 'generate.lengthPenalty', 'lengthPenalty is NaN, expected a number from -15 to 15'],
    [{ beams: 2, lengthPenalty: -1e308 }, 'generate.lengthPenalty', 'lengthPenalty is -1e+308, expected a number from -15 to 15'],
  ])('%o', (options, code, message) => {
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code, message, exitCode: 2 }))
  })

  test.each<[Record<string, unknown>, string, string]>([
    [{ beams: 2, earlyStopping: 1 }, 'generate.earlyStopping', 'earlyStopping is 1, expected true, false or never'],
    [{ logprobs: 3 }, 'generate.logprobs', 'logprobs is 3, expected true or false'],
    [{ seed: null }, 'generate.seed', 'seed is null, expected an integer from 0 to 9007199254740991'],
    [{ beams: 2n }, 'generate.beams', 'beams is 2n, expected an integer from 1 to 64'],
    [
      { temperature: Symbol('x') },
      'generate.temperature',
      'temperature is Symbol(x), expected a number from 0.000001 to 1000000',
    ],
    [{ topK: {} }, 'generate.topK', 'topK is {}, expected an integer from 0 to 45'],
  ])('%o', (options, code, message) => {
    expect(() => resolve(options)).toThrow(expect.objectContaining({ code, message, exitCode: 2 }))
  })

  test('a model without an end id needs a limit', () => {
    expect(() => resolveGeneration({}, { ...limits, endTokens: [] })).toThrow(expect.objectContaining({ code: 'generate.end' }))
    expect(resolveGeneration({ maxNewTokens: 3 }, { ...limits, endTokens: [] }).maxNewTokens).toBe(3)
  })
})
