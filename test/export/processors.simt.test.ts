/** Exported generators with logits processors and with int8 caches against the same generations from Node: ids equal, sums of beams to the bit. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import { type GenerateOptions, loadSeq2seq, type Seq2seq } from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { heddle, repository } from '../cli/host.js'
import { folderOf, goldenOf } from '../models/llama_host.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { openSimtKernels } from '../models/simt.js'
import { type BuiltGenerator, linkedGenerator } from './built.js'

type Given = Parameters<BuiltGenerator['run']>[1]

const processors = { penalised: true, ngrams: 1, minimum: true, forced: true }
const folders: string[] = []
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))))

async function exported(name: string, model: string, config: object, plan = 'unfused'): Promise<BuiltGenerator> {
  const out = await mkdtemp(join(tmpdir(), 'heddle-processors-'))
  folders.push(out)
  const argv = [
    'export',
    name,
    '--model',
    model,
    '--out',
    out,
    '--target',
    'simt',
    '--plan',
    plan,
    '--config',
    JSON.stringify(config),
  ]
  const { exitCode, log } = await heddle(argv)
  expect(exitCode, log).toBe(0)
  return linkedGenerator(repository, out, name)
}

const tokens = 12
const hf = { choice: 2, beams: 3, returned: 2, rule: 1, length_penalty: 1 }
const hfOf = { beams: 3, returned: 2, rule: 'hf', lengthPenalty: 1 } as const
const penalty = Math.fround(1.75)

/** Options of an export, and the same in Node. */
const changes: readonly (readonly [string, Given, GenerateOptions])[] = [
  ['a penalty on repetitions', { repetition_penalty: penalty }, { repetitionPenalty: penalty }],
  ['no repeated words', { no_repeat_ngram_size: 1 }, { noRepeatNgramSize: 1 }],
  ['no repeated pairs', { no_repeat_ngram_size: 2 }, { noRepeatNgramSize: 2 }],
]
const least = { min_new_tokens: 10 }
const leastOf = { minNewTokens: 10 }
/** Words that are forced at both ends of a text of four. */
const forced = { forced_first: 5, forced_last: [7, 9], max_new_tokens: 4 }
const forcedOf = { forcedBosTokenId: 5, forcedEosTokenId: [7, 9], maxNewTokens: 4 }

describe('number-words', () => {
  const prompts = [
    [5, 9, 4],
    [12, 7, 6, 8],
  ]
  let built: BuiltGenerator
  let model: Seq2seq
  beforeAll(async () => {
    built = await exported('seq2seq', numberWords, { choices: ['greedy', 'hf'], processors, beams: 3 })
    model = await loadSeq2seq(numberWords, { ...(await openSimtKernels()), plan: 'unfused' })
  })
  afterAll(() => model.release())

  const own = async (given: GenerateOptions) =>
    (
      await model.generate(
        prompts.map((inputIds) => ({ inputIds })),
        { maxNewTokens: tokens, ...given },
      )
    ).flatMap(({ ids, beams }) =>
      beams === undefined ? [{ ids }] : beams.map((beam) => ({ ids: beam.ids, sum: Math.fround(beam.cumLogProb) })),
    )
  const found = async (given: Given) => {
    const { texts } = await built.run(prompts, { max_new_tokens: tokens, ...given })
    const isSearch = given.beams !== undefined
    return texts.map(({ ids, logProbability }) => (isSearch ? { ids, sum: Math.fround(logProbability) } : { ids }))
  }

  it('without a processor in use is as without any', async () => {
    expect(await found({})).toEqual(await own({}))
  })

  it.each<readonly [string, Given, GenerateOptions, GenerateOptions]>([
    ['a least number of words', least, leastOf, {}],
    ['forced words', forced, forcedOf, { maxNewTokens: 4 }],
    ...changes.map(([name, options, given]) => [name, { ...least, ...options }, { ...leastOf, ...given }, leastOf] as const),
  ])('%s', async (_, options, given, without) => {
    const greedy = await own(given)
    expect(await found(options)).toEqual(greedy)
    expect(greedy).not.toEqual(await own(without))
    expect(await found({ ...hf, ...options })).toEqual(await own({ ...hfOf, ...given }))
  })

  it('refuses processors out of their range', async () => {
    await expect(found({ repetition_penalty: -1 })).rejects.toThrow('repetition_penalty is -1, expected 1e-6 to 1e6')
    await expect(found({ min_new_tokens: 13 })).rejects.toThrow('min_new_tokens is 13, expected at most the 12 tokens of a text')
    await expect(found({ forced_first: 99_999 })).rejects.toThrow('forced id 99999')
  })
})

describe.each(['best-llama', 'unfused'])('llama3 under %s', (plan) => {
  const prompts = goldenOf('llama3')
    .cases.slice(0, 3)
    .map(({ input_ids: ids }) => ids)
  let built: BuiltGenerator
  let model: Llama
  beforeAll(async () => {
    const config = { choices: ['greedy'], processors: { penalised: true, ngrams: 1 }, caches: 'int8' }
    built = await exported('llama', folderOf('llama3'), config, plan)
    model = await loadLlama(folderOf('llama3'), { ...(await openSimtKernels()), plan, caches: 'int8' })
  })
  afterAll(() => model.release())

  it('int8 caches, with and without processors', async () => {
    const both = { repetitionPenalty: penalty, noRepeatNgramSize: 1 }
    const ids = async (generating: GenerateOptions) => {
      const cases = prompts.map((inputIds) => ({ inputIds }))
      return (await model.generate(cases, { maxNewTokens: 6, ...generating })).map((result) => result.ids)
    }
    const found = async (options: Given) =>
      (await built.run(prompts, { max_new_tokens: 6, ...options })).texts.map((text) => text.ids)
    expect(await found({ repetition_penalty: penalty, no_repeat_ngram_size: 1 })).toEqual(await ids(both))
    expect(await found({})).toEqual(await ids({}))
  })

  it('refuses a processor that the export lacks', async () => {
    await expect(built.run(prompts, { min_new_tokens: 2 })).rejects.toThrow(
      'status 111: min_new_tokens needs "minimum" in the processors of this export: export with it',
    )
  })
})
