/** An exported generator of a longrope model against the same generations from Node: by either table, and of texts that outgrow the short ones. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama } from '../../src/models/llama/llama_types.js'
import { heddle, repository } from '../cli/host.js'
import { goldenOf } from '../models/llama_host.js'
import { longropeFolder } from '../models/llama_longrope.js'
import { openSimtKernels } from '../models/simt.js'
import { type BuiltGenerator, linkedGenerator } from './built.js'

const original = 24
const { text } = goldenOf('phi3')
const promptOf = (length: number): readonly number[] => text.input_ids.slice(0, length)

const folders: string[] = []
let built: BuiltGenerator
let model: Llama
beforeAll(async () => {
  const folder = await longropeFolder(original)
  const out = await mkdtemp(join(tmpdir(), 'heddle-longrope-export-'))
  folders.push(folder, out)
  const config = JSON.stringify({ choices: ['greedy', 'sample', 'beams', 'hf'], beams: 2 })
  const { exitCode, log } = await heddle([
    'export',
    'llama',
    '--model',
    folder,
    '--out',
    out,
    '--target',
    'simt',
    '--config',
    config,
  ])
  expect(exitCode, log).toBe(0)
  built = await linkedGenerator(repository, out, 'llama')
  model = await loadLlama(folder, { ...(await openSimtKernels()), plan: 'unfused' })
})
afterAll(async () => {
  model.release()
  await Promise.all(folders.map((each) => rm(each, { recursive: true })))
})

const beams = { choice: 2, beams: 2, returned: 2 }

it.each([
  ['short', [promptOf(9), promptOf(original - 3)], 4],
  ['long', [promptOf(original + 1), promptOf(original + 4)], 4],
] as const)('%s texts have the beams of Node, sums to the bit', async (_, prompts, tokens) => {
  await expectBeams(prompts, tokens)
})

/** Beams of C++ and of Node, with their sums. */
async function expectBeams(
  prompts: readonly (readonly number[])[],
  tokens: number,
  options: Readonly<Record<string, number>> = {},
  ofNode: object = {},
): Promise<void> {
  const { texts } = await built.run(prompts, { ...beams, ...options, max_new_tokens: tokens })
  const wanted = await model.generate(
    prompts.map((inputIds) => ({ inputIds })),
    { beams: 2, returned: 2, maxNewTokens: tokens, ...ofNode },
  )
  expect(texts.map(({ ids, logProbability }) => [ids, Math.fround(logProbability)])).toEqual(
    wanted.flatMap(({ beams: found = [] }) => found.map(({ ids, cumLogProb }) => [ids, Math.fround(cumLogProb)])),
  )
}

/** Prompts that cross at different steps, two of them at the same, one that never does, and a long one. */
const mixed = [promptOf(original - 3), promptOf(9), promptOf(original + 2), promptOf(original), promptOf(original - 3)]
const tokens = 9

it('texts that outgrow the short tables have the words of Node, beside others', async () => {
  const { texts } = await built.run(mixed, { max_new_tokens: tokens })
  const wanted = await model.generate(
    mixed.map((inputIds) => ({ inputIds })),
    { maxNewTokens: tokens },
  )
  expect(texts.map(({ ids }) => ids)).toEqual(wanted.map(({ ids }) => ids))
  // Each part is that of one table alone.
  const first = await built.run([promptOf(original - 3)], { max_new_tokens: 4 })
  expect(wanted[0]?.ids.slice(0, 4)).toEqual(first.texts[0]?.ids)
  const long = await model.generate([{ inputIds: [...promptOf(original - 3), ...(wanted[0]?.ids.slice(0, 4) ?? [])] }], {
    maxNewTokens: tokens - 4,
  })
  expect(wanted[0]?.ids.slice(4)).toEqual(long[0]?.ids)
})

it('draws go on with their step and seed', async () => {
  const { texts } = await built.run(mixed, {
    choice: 1,
    top_k: 20,
    temperature: 1.5,
    seed: [5, 6, 7, 8, 9],
    max_new_tokens: tokens,
  })
  const wanted = await model.generate(
    mixed.map((inputIds) => ({ inputIds })),
    { topK: 20, temperature: 1.5, seed: [5, 6, 7, 8, 9], maxNewTokens: tokens },
  )
  expect(texts.map(({ ids }) => ids)).toEqual(wanted.map(({ ids }) => ids))
})

it('beams go on with their scores, and with the pool of the HF rule, sums to the bit', async () => {
  await expectBeams(mixed, tokens)
  await expectBeams(mixed, tokens, { rule: 1, length_penalty: 1 }, { rule: 'hf', lengthPenalty: 1 })
})

it('the words of each step are shown where all texts cross together', async () => {
  const { steps, texts } = await built.run([promptOf(original - 3)], { stream: 100, max_new_tokens: tokens })
  expect(steps.map(([word]) => word)).toEqual(texts[0]?.ids)
  await expect(built.run(mixed, { stream: 100, max_new_tokens: tokens })).rejects.toThrow('generate them apart')
})
