/** A model's own generation settings beside options: numbers that are out of range name the file, and an option takes their place. */
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

it('give way to options, and mean nothing without a draw', () => {
  expect(asked({ do_sample: true, temperature: 0 }, { temperature: 0.5 }).options).toMatchObject({ temperature: 0.5, topK: 50 })
  expect(asked({ do_sample: true, temperature: 0 }, { beam: 2 }).options).toEqual({ beams: 2 })
  expect(asked({ temperature: 0, top_p: 1.5 }).options).toEqual({})
})
