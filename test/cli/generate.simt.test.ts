/** `heddle run` of a model that generates text: its lines, and its errors about options and cases that it cannot use. */
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { heddle, punctuationModel } from './host.js'

let work: string
beforeAll(async () => {
  const { exitCode, log } = await heddle(['build', '--target', 'simt', '--for', numberWords])
  expect({ exitCode, log }).toMatchObject({ exitCode: 0 })
  work = await mkdtemp(join(tmpdir(), 'heddle-generate-'))
})
afterAll(() => rm(work, { recursive: true }))

async function writeCases(...lines: readonly object[]): Promise<string> {
  const file = join(work, 'cases.jsonl')
  await writeFile(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  return file
}

const twelve = { input_ids: [4, 5, 1] }

async function expectRefusal(argv: readonly string[], code: string, message: RegExp, model = numberWords): Promise<void> {
  const outcome = await heddle(['run', model, '--device', 'simt', ...argv])
  expect(outcome).toMatchObject({ exitCode: 2, out: '' })
  const [line = '', ...rest] = outcome.log.split('\n').filter((text) => text !== '' && !/^simt/.test(text))
  expect(line).toContain(`error[${code}]: `)
  expect(line).toMatch(message)
  expect(rest.every((text) => text.startsWith('hint: '))).toBe(true)
}

test('settings of the model are followed, reported if unsupported, and ignored on request', async () => {
  const model = join(work, 'settings')
  await cp(numberWords, model, { recursive: true })
  const path = join(model, 'generation_config.json')
  const own = { num_beams: 4, length_penalty: 0.5, max_length: 4, no_repeat_ngram_size: 1, typical_p: 0.2 }
  await writeFile(path, JSON.stringify({ ...JSON.parse(await readFile(path, 'utf8')), ...own }))
  const file = await writeCases(twelve)
  const run = (folder: string, ...argv: readonly string[]) =>
    heddle(['run', folder, '--cases', file, '--device', 'simt', '--json', ...argv])
  const followed = await run(model)
  const flags = ['--beams', '4', '--length-penalty', '0.5', '--max-new-tokens', '3', '--no-repeat-ngram-size', '1']
  const asked = await run(numberWords, ...flags)
  expect([followed.exitCode, followed.out]).toEqual([0, asked.out])
  expect(followed.log).toContain('typical_p 0.2 is not supported and is ignored')
  const greedy = await run(numberWords)
  expect((await run(model, '--no-settings')).out).toBe(greedy.out)
  expect(greedy.out).not.toBe(asked.out)
})

test('log-probabilities of tokens are printed on request', async () => {
  const argv = ['run', numberWords, '--cases', await writeCases(twelve), '--device', 'simt']
  const plain = await heddle(argv)
  const { exitCode, out } = await heddle([...argv, '--logprobs'])
  const { logprobs, ...rest } = JSON.parse(out)
  expect([exitCode, rest]).toEqual([0, JSON.parse(plain.out)])
  expect(logprobs).toHaveLength(rest.ids.length)
  expect(Math.max(...logprobs)).toBeLessThanOrEqual(0)
})

describe('options', () => {
  test.each([
    [['--beam', '23'], 'generate.beams', /beams is 23, expected at most 22, half of the model's 45 words/],
    [['--beam', '1.5'], 'generate.beams', /beams is 1\.5/],
    [['--beam', '4', '--return', '5'], 'generate.returned', /returned is 5, expected an integer from 1 to 4/],
    [['--beam', '4', '--top-k', '3'], 'generate.beams', /not drawn|beams is 4/],
    [['--temperature', '-1'], 'generate.temperature', /temperature is -1, expected a number from 0\.000001 to 1000000/],
    [['--top-p', '0'], 'generate.topP', /topP is 0/],
    [['--top-p', '1.2'], 'generate.topP', /topP is 1\.2, expected a number above 0 and at most 1/],
    [['--seed', '0.5'], 'generate.seed', /seed is 0\.5, expected an integer/],
    [['--max-new-tokens', '0'], 'generate.maxNewTokens', /maxNewTokens is 0, expected an integer from 1 to 64/],
    [['--scales', 'x.json'], 'run.option', /--scales/],
  ])('%o', async (argv, code, message) => {
    await expectRefusal(['--cases', await writeCases(twelve), ...argv], code, message)
  })

  test('that are not numbers are refused by the command line', async () => {
    const file = await writeCases(twelve)
    const { exitCode, out, log } = await heddle(['run', numberWords, '--cases', file, '--seed', 'many'])
    expect({ exitCode, out }).toEqual({ exitCode: 2, out: '' })
    expect(log).toMatch(/--seed.*Expected a number/)
  })

  test('of generation for a model that generates nothing', async () => {
    await expectRefusal(
      ['--text', 'x', '--beam', '4'],
      'run.option',
      /--beam applies to models that generate text/,
      punctuationModel,
    )
    await expectRefusal(['--text', 'x', '--max-new-tokens', '4'], 'run.option', /--max-new-tokens/, punctuationModel)
  })

  test('without a limit for a model without an end id', async () => {
    const model = join(work, 'endless')
    await cp(numberWords, model, { recursive: true })
    for (const name of ['config.json', 'generation_config.json']) {
      const config: object = JSON.parse(await readFile(join(model, name), 'utf8'))
      await writeFile(join(model, name), JSON.stringify({ ...config, eos_token_id: [] }))
    }
    await expectRefusal(['--cases', await writeCases(twelve)], 'generate.end', /no end id/, model)
    const file = await writeCases(twelve)
    const { exitCode, out } = await heddle(['run', model, '--device', 'simt', '--cases', file, '--json', '--max-new-tokens', '5'])
    expect(exitCode).toBe(0)
    expect(JSON.parse(out).ids).toHaveLength(5)
  })
})

describe('cases', () => {
  test('that are empty', async () => {
    await expectRefusal(['--cases', await writeCases()], 'run.empty', /empty batch/)
    await expectRefusal(['--cases', await writeCases({ input_ids: [] })], 'run.case', /cases\.jsonl:1/)
  })

  test('with a token id outside of the vocabulary', async () => {
    await expectRefusal(
      ['--cases', await writeCases(twelve, { input_ids: [4, 45] })],
      'run.token',
      /case 1: token id 45.*\[0, 45\)/,
    )
  })

  test('longer than the position table', async () => {
    const input_ids = Array.from({ length: 65 }, () => 4)
    await expectRefusal(['--cases', await writeCases({ input_ids })], 'run.sequence', /65 tokens, the model has 64 positions/)
  })
})

describe('lines', () => {
  interface Line {
    readonly ids: readonly number[]
    readonly text: string
    readonly beams?: readonly { readonly ids: readonly number[]; readonly cumLogProb: number }[]
  }
  const run = async (...argv: readonly string[]): Promise<Line[]> => {
    const { exitCode, out, log } = await heddle(['run', numberWords, '--device', 'simt', '--plan', 'ft-v2.1', ...argv])
    expect(exitCode, log).toBe(0)
    return out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
  }

  test('have ids without start and end, the text, and beams with their scores', async () => {
    const { cases }: { cases: { input_ids: number[]; greedy: number[]; greedy_text: string; beam4: number[][] }[] } = JSON.parse(
      await readFile(join(numberWords, 'golden.json'), 'utf8'),
    )
    const chosen = cases.slice(0, 3)
    const file = await writeCases(...chosen.map(({ input_ids }) => ({ input_ids })))
    const greedy = await run('--cases', file, '--json')
    expect(greedy).toEqual(chosen.map((golden) => ({ ids: golden.greedy, text: golden.greedy_text })))
    expect(await run('--cases', file, '--json', '--top-k', '1', '--seed', '5', '--batch', '2')).toEqual(greedy)
    const beams = await run('--cases', file, '--json', '--beam', '4', '--return', '2')
    expect(beams.map((line) => Object.keys(line))).toEqual(chosen.map(() => ['ids', 'text', 'beams']))
    expect(beams.map((line) => line.beams?.map(({ ids }) => ids))).toEqual(chosen.map(({ beam4 }) => beam4.slice(0, 2)))
    for (const { ids, text, beams: [best, second] = [] } of beams) {
      expect(best?.ids).toEqual(ids)
      expect(text).not.toBe('')
      expect(best?.cumLogProb).toBeGreaterThan(second?.cumLogProb ?? 0)
      expect(Object.keys(best ?? {})).toEqual(['ids', 'cumLogProb'])
    }
  })

  test('print only the text with --text', async () => {
    const { exitCode, out } = await heddle(['run', numberWords, '--device', 'simt', '--text', '6387969'])
    expect({ exitCode, out }).toEqual({
      exitCode: 0,
      out: 'six million three hundred and eighty seven thousand nine hundred and sixty nine\n',
    })
  })
})
