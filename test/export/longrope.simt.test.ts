/** An exported generator of a longrope model against the same generations from Node, by either table; texts that would need both are refused. */
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
  const config = JSON.stringify({ choices: ['beams'], beams: 2 })
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
  const { texts } = await built.run(prompts, { ...beams, max_new_tokens: tokens })
  const wanted = await model.generate(
    prompts.map((inputIds) => ({ inputIds })),
    { beams: 2, returned: 2, maxNewTokens: tokens },
  )
  expect(texts.map(({ ids, logProbability }) => [ids, Math.fround(logProbability)])).toEqual(
    wanted.flatMap(({ beams: found = [] }) => found.map(({ ids, cumLogProb }) => [ids, Math.fround(cumLogProb)])),
  )
})

it('texts of both ranges, and a text that outgrows the short tables, are refused with what fits', async () => {
  const refused = (prompts: readonly (readonly number[])[], tokens: number) =>
    expect(built.run(prompts, { ...beams, max_new_tokens: tokens })).rejects
  await refused([promptOf(9), promptOf(original + 1)], 2).toThrow(
    'status 110: prompts 0 and 1 use different tables of the rotation, since one has more than 24 tokens: generate them apart',
  )
  await refused([promptOf(9), promptOf(original - 3)], 5).toThrow(
    'prompt 1 has 21 tokens, and 5 more reach the tables for texts of more than 24: generate at most 4, then continue the text as a prompt',
  )
})
