import { expect, it } from 'vitest'
import { settingsOf } from '../../src/cli/own_settings.js'
import { parseGenerationSettings } from '../../src/models/decoding/generation_settings.js'

/** What flags and a file ask for together, of a model of 40 words, and what is told. */
function asked(flags: Parameters<typeof settingsOf>[0], file: Record<string, unknown>) {
  const told: string[] = []
  const settings = parseGenerationSettings(file, 'generation_config.json')
  const { options } = settingsOf(flags, { settings, vocab: 40 }, (text) => told.push(text))
  return { options, told: told.join('') }
}

it('a file draws from all words where it asks for more than the model has, as HF does', () => {
  expect(asked({}, { do_sample: true, top_k: 1000 }).options).toEqual({ temperature: 1, topK: 40 })
  expect(asked({}, { do_sample: true }).options).toEqual({ temperature: 1, topK: 40 })
  expect(asked({ topK: 50 }, { do_sample: true }).options).toMatchObject({ topK: 50 })
})

it('what a file asks for and does not go with what the caller asks for is told', () => {
  const beams = asked({ beam: 2 }, { do_sample: true, temperature: 0.5, repetition_penalty: 1.5 })
  expect(beams.options).toEqual({ beams: 2 })
  expect(beams.told).toContain("the model's own temperature 0.5 does not go with what is asked for, and is left out")
  expect(beams.told).toContain('repetitionPenalty 1.5')
  const draws = asked({ seed: 1 }, { num_beams: 3 })
  expect([draws.options, draws.told]).toEqual([{ seed: 1 }, expect.stringContaining('beams 3')])
  expect(asked({ beam: 4 }, { num_beams: 3 }).told).toBe('')
})
