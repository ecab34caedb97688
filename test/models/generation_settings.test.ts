import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { resolveGeneration } from '../../src/models/decoding/generation_options.js'
import { parseGenerationSettings, readGenerationSettings } from '../../src/models/decoding/generation_settings.js'
import { refusal } from '../refusal.js'
import { kjvGqa } from './text_fixtures.js'

const parse = (fields: Record<string, unknown>) => parseGenerationSettings(fields, 'generation_config.json')

describe('generation settings of a model', () => {
  it('have their meaning in HF', () => {
    // As Llama 3.1 and Qwen 3 have them: HF's default of top_k is 50.
    expect(
      parse({ do_sample: true, temperature: 0.6, top_p: 0.9, eos_token_id: [1, 2], transformers_version: '4.42.3' }),
    ).toEqual({
      options: { temperature: 0.6, topK: 50, topP: 0.9 },
      ...{ stop: [], ignored: [], file: 'generation_config.json' },
    })
    expect(parse({ no_repeat_ngram_size: 3 }).options).toEqual({ noRepeatNgramSize: 3 })
    expect(parse({ do_sample: true, top_k: 20, min_p: 0.05, repetition_penalty: 1.1 }).options).toEqual({
      ...{ temperature: 1, topK: 20, minP: 0.05, repetitionPenalty: 1.1 },
    })
    expect(parse({ do_sample: true, top_k: 0, top_p: 1, min_p: 0 }).options).toEqual({ temperature: 1, topK: 0 })
    expect(parse({ max_new_tokens: 64, min_new_tokens: 0, repetition_penalty: 1 }).options).toEqual({ maxNewTokens: 64 })
    expect(parse({ num_beams: 4, length_penalty: 0.8, early_stopping: true, num_return_sequences: 2 }).options).toEqual({
      ...{ beams: 4, rule: 'hf', lengthPenalty: 0.8, earlyStopping: true, returned: 2 },
    })
    expect(parse({ forced_bos_token_id: 5, forced_eos_token_id: [2, 3] }).options).toEqual({
      ...{ forcedBosTokenId: 5, forcedEosTokenId: [2, 3] },
    })
    expect(parse({ stop_strings: 'User:' }).stop).toEqual(['User:'])
    expect(parse({ stop_strings: ['a', 'b'] }).stop).toEqual(['a', 'b'])
  })

  it('are options that generation takes', () => {
    const limits = { vocab: 100, positions: 50, cases: 1, endTokens: [2] }
    const sampling = parse({ do_sample: true, temperature: 0.6, top_p: 0.9 }).options
    expect(resolveGeneration(sampling, limits).choice).toMatchObject({ kind: 'sampling', topK: 50, topP: 0.9 })
    expect(resolveGeneration(parse({}).options, limits).choice).toEqual({ kind: 'greedy' })
    expect(resolveGeneration(parse({ num_beams: 3 }).options, limits).choice).toMatchObject({
      kind: 'beams',
      rule: 'hf',
      width: 3,
    })
  })

  it('are reported if unsupported', () => {
    const { options, ignored } = parse({
      ...{ temperature: 0.7, top_p: 1, typical_p: 0.9, no_repeat_ngram_size: 0, max_length: 512, forced_eos_token_id: null },
      ...{ sequence_bias: {}, diversity_penalty: 0, what_is_this: [1, 2] },
    })
    expect(options).toEqual({})
    expect(ignored).toEqual([
      'generation_config.json: typical_p 0.9 is not supported and is ignored',
      'generation_config.json: what_is_this [1,2] is not supported and is ignored',
      'generation_config.json: max_length 512 is not supported and is ignored',
      'generation_config.json: temperature 0.7 has no effect without do_sample',
    ])
    const both = parse({ do_sample: true, num_beams: 2, temperature: 0.7 })
    expect(both.options).toEqual({ beams: 2, rule: 'hf' })
    expect(both.ignored).toEqual([
      'generation_config.json: do_sample true has no effect with num_beams 2: beam search does not sample',
    ])
  })

  it('of a model with a decoder count generated tokens, with beams too', () => {
    const answer = (fields: Record<string, unknown>) => parseGenerationSettings(fields, 'file', { positions: 64 })
    expect(answer({ max_length: 20, min_length: 6 })).toMatchObject({
      options: { maxNewTokens: 19, minNewTokens: 5 },
      ignored: [],
    })
    expect(answer({ max_length: 512 }).options).toEqual({ maxNewTokens: 63 })
    expect(answer({ max_length: 512, max_new_tokens: 8 }).options).toEqual({ maxNewTokens: 8 })
    expect(
      answer({ num_beams: 6, min_length: 6, repetition_penalty: 1.2, stop_strings: 'x', forced_bos_token_id: 3 }),
    ).toMatchObject({
      options: { beams: 6, rule: 'hf', minNewTokens: 5, repetitionPenalty: 1.2, forcedBosTokenId: 3 },
      ignored: ['file: stop_strings "x" is not supported and is ignored'],
    })
    expect(parse({ min_length: 6 }).ignored).toHaveLength(1)
  })

  it('that are wrong are refused by their field and value', () => {
    for (const [fields, texts] of [
      [{ temperature: 'hot' }, ['temperature', '"hot"']],
      [{ top_k: 1.5 }, ['top_k', '1.5']],
      [{ do_sample: 1 }, ['do_sample', '1']],
      [{ early_stopping: 'soon' }, ['early_stopping']],
    ] as const) {
      const { code, message } = refusal(() => parse(fields))
      expect(code).toBe('config.field')
      for (const text of texts) expect(message).toContain(text)
    }
  })

  it('are read from a folder, including the defaults of an old class, and may be ignored', async () => {
    expect(await readGenerationSettings(kjvGqa)).toEqual({
      options: {},
      stop: [],
      ignored: [],
      file: expect.stringContaining('generation_config.json'),
    })
    const dir = await mkdtemp(join(tmpdir(), 'heddle-settings-'))
    try {
      expect(await readGenerationSettings(dir)).toEqual({
        options: {},
        stop: [],
        ignored: [],
        file: expect.stringContaining('generation_config.json'),
      })
      await writeFile(join(dir, 'config.json'), '{"num_beams": 4, "typical_p": 0.3, "d_model": 8}')
      expect(await readGenerationSettings(dir)).toEqual({
        options: { beams: 4, rule: 'hf' },
        stop: [],
        ignored: [expect.stringMatching(/config\.json: typical_p 0.3 is not supported/)],
        file: join(dir, 'config.json'),
      })
      const ended = async () => (await readGenerationSettings(dir, { positions: 64, classEnd: 1 })).options.forcedEosTokenId
      expect(await ended()).toBe(1)
      await writeFile(join(dir, 'config.json'), '{"forced_eos_token_id": null}')
      expect(await ended()).toBeUndefined()
      await writeFile(join(dir, 'config.json'), '{"forced_eos_token_id": 3}')
      expect(await ended()).toBe(3)
      // A settings file is the only source of settings.
      await writeFile(join(dir, 'generation_config.json'), '{}')
      expect(await ended()).toBeUndefined()
      expect((await readGenerationSettings(dir)).options).toEqual({})
      await writeFile(join(dir, 'generation_config.json'), '{"top_k": 1, "top_k": 2}')
      await expect(readGenerationSettings(dir)).rejects.toMatchObject({ code: 'config.json' })
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})
