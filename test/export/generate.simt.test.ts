/** Exported generators against the same generations from Node and against goldens: ids equal, sums of beams to the bit. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { beforeEnd, wordsOf } from '../../src/models/decoding/beam_trace.js'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import {
  type GenerateOptions,
  type GenerationResult,
  loadSeq2seq,
  type Seq2seq,
} from '../../src/models/seq2seq/seq2seq_pipeline.js'
import { which } from '../../src/toolchain/compilers.js'
import { findCxx, runTool } from '../../src/toolchain/index.js'
import { heddle, repository } from '../cli/host.js'
import { numberWords } from '../models/seq2seq_fixtures.js'
import { openSimtKernels } from '../models/simt.js'
import { kjvGqa } from '../models/text_fixtures.js'
import { type BuiltGenerator, generatorByCmake, linkedGenerator, type Printed } from './built.js'

const folders: string[] = []
afterAll(() => Promise.all(folders.map((each) => rm(each, { recursive: true, force: true }))))

async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'heddle-generator-'))
  folders.push(made)
  return made
}

async function exported(name: string, model: string, ...argv: string[]): Promise<string> {
  const out = await folder()
  const { exitCode, log } = await heddle(['export', name, '--model', model, '--out', out, '--target', 'simt', ...argv])
  expect(exitCode, log).toBe(0)
  return out
}

const [end, limit, stopped] = [0, 1, 2]

/** Texts of a run in Node, in the format of the example. */
const printed = (results: readonly Pick<GenerationResult, 'ids' | 'finish' | 'beams'>[], most: number): Printed[] =>
  results.flatMap(({ ids, finish, beams }, prompt) =>
    beams === undefined
      ? [{ prompt, finish: finish === 'end' ? end : limit, logProbability: Number.NaN, score: Number.NaN, ids }]
      : beams.map(({ ids, cumLogProb, score }) => ({
          ...{ prompt, finish: ids.length < most ? end : limit, ids },
          ...{ logProbability: Math.fround(cumLogProb), score: Math.fround(score) },
        })),
  )

const read = ({ texts }: Awaited<ReturnType<BuiltGenerator['run']>>): Printed[] =>
  texts.map((text) => ({ ...text, logProbability: Math.fround(text.logProbability), score: Math.fround(text.score) }))

const choice = { sample: 1, beams: 2 }

describe('number-words', () => {
  let built: BuiltGenerator
  let model: Seq2seq
  let cases: readonly { readonly input_ids: readonly number[]; readonly greedy: number[]; readonly beam4: number[][] }[]
  beforeAll(async () => {
    const out = await exported('seq2seq', numberWords, '--config', JSON.stringify({ logprobs: true }))
    built = await generatorByCmake(out)
    model = await loadSeq2seq(numberWords, { ...(await openSimtKernels()), plan: 'unfused' })
    cases = JSON.parse(await readFile(join(numberWords, 'golden.json'), 'utf8')).cases.slice(0, 6)
  })
  afterAll(() => model.release())
  const tokens = 24
  const ran = async (options: Parameters<BuiltGenerator['run']>[1]) =>
    built.run(
      cases.map(({ input_ids: ids }) => ids),
      { max_new_tokens: tokens, ...options },
    )

  it.each<readonly [string, Readonly<Record<string, number>>, GenerateOptions]>([
    ['greedy', {}, {}],
    ['4 beams', { choice: choice.beams, beams: 4, returned: 4 }, { beams: 4, returned: 4 }],
    [
      '3 diverse beams',
      { choice: choice.beams, beams: 3, returned: 3, diversity_rate: -5 },
      { beams: 3, returned: 3, diversityRate: -5 },
    ],
    [
      '4 beams by the HF rule',
      { choice: choice.beams, beams: 4, returned: 2, rule: 1, length_penalty: 2, early_stopping: 2 },
      { beams: 4, returned: 2, rule: 'hf', lengthPenalty: 2, earlyStopping: 'never' },
    ],
    ['a top-k of 4', { choice: choice.sample, top_k: 4, temperature: 4, seed: 7 }, { topK: 4, temperature: 4, seed: 7 }],
    ['any word', { choice: choice.sample, temperature: 3, seed: 2 ** 40 + 5 }, { temperature: 3, seed: 2 ** 40 + 5 }],
  ])('%s', async (_, options, given) => {
    const own = await model.generate(
      cases.map(({ input_ids: inputIds }) => ({ inputIds })),
      { maxNewTokens: tokens, ...given },
    )
    const found = read(await ran(options))
    expect(found).toEqual(printed(own, tokens))
    // Rows end at different steps.
    expect(new Set(found.map(({ ids }) => ids.length)).size).toBeGreaterThan(1)
  })

  it('equals the goldens, and other seeds and rates give other texts', async () => {
    const ids = async (options: Parameters<BuiltGenerator['run']>[1]) => read(await ran(options)).map((text) => text.ids)
    expect(await ids({})).toEqual(cases.map(({ greedy }) => greedy))
    const beams = await ids({ choice: choice.beams, beams: 4, returned: 4 })
    expect(beams).toEqual(cases.flatMap(({ beam4 }) => beam4))
    expect(await ids({ choice: choice.beams, beams: 4, returned: 4, diversity_rate: -5 })).not.toEqual(beams)
    const drawn = (seed: number | readonly number[]) => ids({ choice: choice.sample, temperature: 4, seed })
    expect(await drawn(7)).not.toEqual(await drawn(8))
    const [first, second] = [await drawn(7), await drawn(8)]
    expect(await drawn([7, 8, 7, 8, 7, 8])).toEqual(cases.map((_, i) => (i % 2 === 0 ? first : second)[i]))
  })

  it('reports the words of each step, and ends on request of its caller', async () => {
    const { texts, steps } = await ran({ stream: 100 })
    const ends = texts.map(({ ids }) => ids.length)
    expect(steps).toHaveLength(Math.max(...ends) + 1)
    const columns = texts.map((_, row) => steps.map((words) => words[row]))
    for (const [row, { ids }] of texts.entries()) {
      expect(columns[row]?.slice(0, ids.length)).toEqual(ids)
      expect(columns[row]?.slice(ids.length + 1)).toEqual(new Array(steps.length - ids.length - 1).fill(-1))
    }
    const short = await ran({ stream: 3 })
    expect(short.texts.map(({ ids, finish }) => [ids, finish])).toEqual(texts.map(({ ids }) => [ids.slice(0, 3), stopped]))
  })

  /** Log-probabilities of the ids of a run in Node, by text. */
  const logprobsOf = async (given: GenerateOptions) => {
    const own = await model.generate(
      cases.map(({ input_ids: inputIds }) => ({ inputIds })),
      { maxNewTokens: tokens, logprobs: true, ...given },
    )
    return own.flatMap(({ logprobs, beams = [{ logprobs }] }) => beams.map((beam) => beam.logprobs))
  }

  it('has the log-probability of each token in C++, to the bit', async () => {
    const { path: cxx } = (await findCxx()) ?? { path: 'c++' }
    const [main, made] = [join(import.meta.dirname, 'logprobs.cpp'), join(built.folder, 'logprobs')]
    const include = ['include', 'example'].flatMap((name) => ['-I', join(built.folder, name)])
    const library = join(built.folder, 'build', 'libseq2seq.so')
    const compiled = await runTool(
      cxx,
      [
        '-std=c++17',
        '-O0',
        '-Wall',
        '-Wextra',
        '-Werror',
        ...include,
        main,
        library,
        `-Wl,-rpath,${dirname(library)}`,
        '-o',
        made,
      ],
      {},
    )
    expect(compiled.exitCode, compiled.stderr).toBe(0)
    const file = join(built.folder, 'prompts.txt')
    await writeFile(file, cases.map(({ input_ids: ids }) => `${ids.join(' ')}\n`).join(''))
    const searches: readonly GenerateOptions[] = [
      {},
      { beams: 3, returned: 3 },
      { beams: 3, returned: 3, rule: 'hf', lengthPenalty: 2 },
    ]
    for (const [i, given] of searches.entries()) {
      const argv = [join(built.folder, 'weights.safetensors'), file, ...[i, tokens].map(String)]
      const { exitCode, stdout, stderr } = await runTool(made, argv, {})
      expect(exitCode, stderr).toBe(0)
      expect(
        stdout
          .trimEnd()
          .split('\n')
          .map((line) =>
            line
              .trim()
              .split(' ')
              .map((each) => Math.fround(Number(each))),
          ),
      ).toEqual(await logprobsOf(given))
    }
  })

  it('is a PyTorch op: the same ids, under a stand-in for PyTorch', async () => {
    const python = await which('python3')
    if (python === undefined) return
    const options = [
      {},
      { choice: choice.beams, beams: 4, returned: 4 },
      { choice: choice.sample, top_k: 4, temperature: 4, seed: 7 },
    ]
    const expected = []
    for (const each of options) expected.push(read(await ran(each)).map(({ ids }) => ids))
    const given: readonly GenerateOptions[] = [{}, { beams: 4, returned: 4 }, { topK: 4, temperature: 4, seed: 7 }]
    const likely: unknown[] = []
    for (const each of given) likely.push(await logprobsOf(each))
    const file = join(await folder(), 'given.json')
    const refused = { choice: choice.beams, beams: 5, returned: 1 }
    const prompts = cases.map(({ input_ids: ids }) => ids)
    await writeFile(file, JSON.stringify({ prompts, tokens, options: [...options, refused] }))
    const script = join(import.meta.dirname, 'python/run_generator.py')
    const { exitCode, stdout, stderr } = await runTool(python, ['-B', script, built.folder, 'seq2seq', file], {})
    expect(exitCode, stderr).toBe(0)
    expect(JSON.parse(stdout)).toEqual({
      texts: [...expected, expect.stringMatching(/^HeddleError: 5 beams, expected at most 4/)],
      logprobs: likely,
    })
  })

  it('refuses incompatible options by name', async () => {
    const refused = (options: Parameters<BuiltGenerator['run']>[1]) => expect(ran(options)).rejects
    await refused({ choice: choice.beams, beams: 4, top_k: 3 }).toThrow('status 111: top_k does not go with choice 2')
    await refused({ beams: 4 }).toThrow('status 111: beams does not go with choice 0')
    await refused({ choice: choice.beams, beams: 5 }).toThrow('status 111: 5 beams, expected at most 4')
    await refused({ choice: choice.beams, beams: 2, returned: 3 }).toThrow('3 texts are returned of 2 beams')
    await refused({ choice: choice.sample, seed: [1, 2] }).toThrow('there are 2 seeds, expected one, or one for each of 6')
    await refused({ max_new_tokens: 5000 }).toThrow('status 110')
    await expect(built.run([[1, 5000]], {})).rejects.toThrow('status 110: token 1 of prompt 0 is 5000')
    await expect(built.run([[1], []], {})).rejects.toThrow('status 110: prompt 1 has no tokens')
  })

  it('has an example of 60 lines at most', async () => {
    expect((await readFile(join(built.folder, 'example/main.cpp'), 'utf8')).trimEnd().split('\n').length).toBeLessThanOrEqual(60)
  })
})

describe('kjv-gqa', () => {
  let built: BuiltGenerator
  let model: Llama
  let prompts: readonly (readonly number[])[]
  let goldens: readonly (readonly number[])[]
  beforeAll(async () => {
    built = await linkedGenerator(repository, await exported('llama', kjvGqa), 'llama')
    model = await loadLlama(kjvGqa, { ...(await openSimtKernels()), plan: 'unfused' })
    const { cases, long }: Record<'cases' | 'long', { input_ids: number[]; greedy_ids: number[] }[]> = JSON.parse(
      await readFile(join(kjvGqa, 'golden.json'), 'utf8'),
    )
    const chosen = [...cases.slice(0, 3), ...long.slice(0, 1)]
    prompts = chosen.map(({ input_ids: ids }) => ids)
    goldens = chosen.map(({ greedy_ids: ids }) => ids)
  })
  afterAll(() => model.release())
  const tokens = 12

  it.each<readonly [string, Readonly<Record<string, number>>, GenerateOptions & { readonly chunk?: number }]>([
    ['greedy', {}, {}],
    ['greedy behind prompts that are read in parts', { chunk: 40 }, { chunk: 40 }],
    ['3 beams', { choice: choice.beams, beams: 3, returned: 3 }, { beams: 3, returned: 3 }],
    ['the likeliest nine tenths', { choice: choice.sample, top_p: 0.9, seed: 7 }, { topP: Math.fround(0.9), seed: 7 }],
    ['a top-k of 3', { choice: choice.sample, top_k: 3, seed: 11 }, { topK: 3, seed: 11 }],
  ])('%s', async (_, options, given) => {
    const own = await model.generate(
      prompts.map((inputIds) => ({ inputIds })),
      { maxNewTokens: tokens, ...given },
    )
    const found = read(await built.run(prompts, { max_new_tokens: tokens, ...options }))
    expect(found).toEqual(
      printed(
        own.map((result) => ({ beams: undefined, ...result })),
        tokens,
      ),
    )
    if (options.choice !== undefined) return
    const eos = model.config.eos
    expect(found.map(({ ids }) => ids)).toEqual(goldens.map((ids) => beforeEnd(ids, eos).slice(0, tokens)))
    expect(new Set(found.map(({ finish }) => finish))).toEqual(new Set([end, limit]))
  })

  it('chats: the earlier text is the prompt of the next turn', async () => {
    const [first = [], second = []] = prompts
    const answered = async (ids: readonly number[]) => read(await built.run([ids], { max_new_tokens: 8 }))[0]?.ids ?? []
    const said = [...first, ...(await answered(first)), ...model.config.eos.slice(0, 1), ...second]
    const [own] = await model.generate([{ inputIds: said }], { maxNewTokens: 8 })
    expect(await answered(said)).toEqual(own?.ids)
  })
})

describe('the trace of beams in C', () => {
  it('equals that of Node, and differs with another parent', async () => {
    const [steps, rows, width] = [5, 6, 3]
    const words = Array.from({ length: steps }, (_, step) => Array.from({ length: rows }, (_, row) => step * 10 + row))
    const parents = Array.from({ length: steps }, (_, step) =>
      Array.from({ length: rows }, (_, row) => row - (row % width) + ((row * 2 + step) % width)),
    )
    const out = await folder()
    const source = join(out, 'trace.c')
    const list = (values: readonly (readonly number[])[]) => values.flat().join(', ')
    const traced = async (tree: readonly (readonly number[])[]): Promise<string> => {
      const text = `#include <stdio.h>
#include "heddle/gather_tree.h"
int main(void) {
  const int32_t words[] = {${list(words)}}, parents[] = {${list(tree)}};
  int32_t texts[${steps * rows}];
  if (heddle_gather_tree(words, parents, ${steps}, ${rows}, ${width}, texts) != 0) return 1;
  for (int i = 0; i < ${steps * rows}; ++i) printf("%d ", texts[i]);
  return 0;
}
`
      await writeFile(source, text)
      const include = join(repository, 'native/include')
      const { exitCode, stderr } = await runTool('cc', [
        '-std=c99',
        '-Wall',
        '-Wextra',
        '-Werror',
        '-I',
        include,
        source,
        '-o',
        join(out, 'trace'),
      ])
      expect(exitCode, stderr).toBe(0)
      const ran = await runTool(join(out, 'trace'), [])
      return ran.exitCode === 0 ? ran.stdout.trim() : 'refused'
    }
    const own = Array.from({ length: rows }, (_, row) => wordsOf({ words, parents }, steps, row, width))
    expect(await traced(parents)).toBe(own.flat().join(' '))
    const other = parents.map((row, step) => (step === 3 ? row.with(0, ((row[0] ?? 0) + 1) % width) : row))
    expect(await traced(other)).not.toBe(own.flat().join(' '))
    expect(await traced(parents.map((row, step) => (step === 3 ? row.with(0, width) : row)))).toBe('refused')
  })
})
