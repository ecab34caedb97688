/**
 * A model's own generation settings together with options: an error about a number out of range names the file, and an option overrides a setting.
 */
import { expect, it } from 'vitest'
import { settingsOf } from '../../src/cli/own_settings.js'
import { parseGenerationSettings } from '../../src/models/decoding/generation_settings.js'
import { refusal } from '../refusal.js'

const asked = (fields: Record<string, unknown>, flags = {}) =>
  settingsOf(flags, { settings: parseGenerationSettings(fields, 'generation_config.json'), vocab: 100 }, () => {})

it('name the file that states a number out of range', () => {
  for (const [fields, code, text] of [
    [{ do_sample: true, temperature: 0 }, 'generate.temperature', 'temperature is 0'],
    [{ do_sample: true, top_p: 1.5 }, 'generate.topP', 'topP is 1.5'],
    [{ do_sample: true, min_p: -1 }, 'generate.minP', 'minP is -1'],
    [{ repetition_penalty: 0 }, 'generate.repetitionPenalty', 'repetitionPenalty is 0'],
  ] as const) {
    expect(refusal(() => asked(fields))).toMatchObject({
      code,
      message: expect.stringContaining(`generation_config.json: ${text}`),
      hint: expect.stringContaining('--no-settings'),
    })
    expect(asked(fields, { settings: false }).options).toEqual({})
  }
})

it('are overridden by options, and have no effect without sampling', () => {
  expect(asked({ do_sample: true, temperature: 0 }, { temperature: 0.5 }).options).toMatchObject({ temperature: 0.5, topK: 50 })
  expect(asked({ do_sample: true, temperature: 0 }, { beam: 2 }).options).toEqual({ beams: 2 })
  expect(asked({ temperature: 0, top_p: 1.5 }).options).toEqual({})
})

/** Options of flags and a file together, of a model of 40 words, and the lines reported. */
function joined(flags: Parameters<typeof settingsOf>[0], file: Record<string, unknown>) {
  const told: string[] = []
  const settings = parseGenerationSettings(file, 'generation_config.json')
  const { options } = settingsOf(flags, { settings, vocab: 40 }, (text) => told.push(text))
  return { options, told: told.join('') }
}

it('a file that asks for more words than the model has samples from all, as in HF', () => {
  expect(joined({}, { do_sample: true, top_k: 1000 }).options).toEqual({ temperature: 1, topK: 40 })
  expect(joined({}, { do_sample: true }).options).toEqual({ temperature: 1, topK: 40 })
  expect(joined({ topK: 50 }, { do_sample: true }).options).toMatchObject({ topK: 50 })
})

it('settings that contradict options are reported', () => {
  const beams = joined({ beam: 2 }, { do_sample: true, temperature: 0.5, repetition_penalty: 1.5 })
  expect(beams.options).toEqual({ beams: 2, repetitionPenalty: 1.5 })
  expect(beams.told).toContain("the model's own temperature 0.5 conflicts with the given options and is ignored")
  expect(beams.told).not.toContain('repetitionPenalty')
  const draws = joined({ seed: 1 }, { num_beams: 3 })
  expect([draws.options, draws.told]).toEqual([{ seed: 1 }, expect.stringContaining('beams 3')])
  expect(joined({ beam: 4 }, { num_beams: 3 }).told).toBe('')
})

it("a minimum beyond the caller's limit is ignored", () => {
  const short = joined({ maxNewTokens: 4 }, { min_new_tokens: 8 })
  expect([short.options, short.told]).toEqual([{ maxNewTokens: 4 }, expect.stringContaining('minNewTokens 8')])
  expect(joined({ maxNewTokens: 8 }, { min_new_tokens: 8 }).options).toEqual({ maxNewTokens: 8, minNewTokens: 8 })
})
