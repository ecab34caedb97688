/**
 * Models on simt whose logits overflow: every decoding method refuses them, under every plan. Suppressed tokens have logits of -Infinity, and stay
 * legal.
 */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { LlamaGenerateOptions } from '../../src/models/llama/llama_types.js'
import { random, unit } from '../../src/verify/random.js'
import { inTurn } from '../turns.js'
import { writeModel } from './fixtures.js'
import { smallCheckpoint, smallLlama } from './llama_fixtures.js'
import { withLlama } from './llama_host.js'

/** Two tokens, one with a logit of Infinity and one of -Infinity, after any text. */
const overflowing = [5, 6] as const

/** Writes a model of random weights whose head overflows at two tokens; the channel they read is never 0. */
async function writeOverflowing(settings: Record<string, unknown>): Promise<string> {
  const { tensors } = smallCheckpoint(smallLlama)
  const next = random('overflowing head')
  const { hidden_size: width } = smallLlama
  for (const [name, { data, shape }] of tensors) {
    const values = new Float32Array(data.buffer, data.byteOffset, data.byteLength / 4)
    for (const [i] of values.entries()) values[i] = shape.length === 1 ? 1 : (unit(next) - 0.5) * 0.4
    if (name === 'model.norm.weight') values[0] = 1e20
    if (name !== 'lm_head.weight') continue
    for (const [i] of values.entries()) if (i % width === 0) values[i] = 0
    for (const [sign, token] of [
      [1, overflowing[0]],
      [-1, overflowing[1]],
    ] as const) {
      values.fill(0, token * width, (token + 1) * width)
      values[token * width] = sign * 1e30
    }
  }
  const dir = await writeModel({ json: smallLlama, tensors })
  await writeFile(join(dir, 'generation_config.json'), JSON.stringify(settings))
  return dir
}

async function withOverflow<T>(settings: Record<string, unknown>, use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await writeOverflowing(settings)
  try {
    return await use(dir)
  } finally {
    await rm(dir, { recursive: true })
  }
}

const choices: Readonly<Record<string, LlamaGenerateOptions>> = {
  greedy: {},
  penalised: { repetitionPenalty: 1.2 },
  minimum: { minNewTokens: 2 },
  drawn: { seed: 1 },
  nucleus: { topP: 0.9, seed: 1 },
  'top-k': { topK: 5, seed: 1 },
  beams: { beams: 2 },
  'beams by the rule hf': { beams: 2, returned: 2, rule: 'hf' },
}
const cases = [{ inputIds: [3, 4] }, { inputIds: [7] }]

describe.each(inTurn(['unfused', 'best-llama', 'best-llama-int8w', 'fasterllama-v1']))('under %s', (plan) => {
  it('words chosen by logits that are infinite are a finding', async () => {
    await withOverflow({}, (dir) =>
      withLlama('smollm', { dir, plan }, async (model) => {
        const finding = {
          code: 'run.value',
          message: expect.stringMatching(/^case 0: .*(not|no beam has a) finite|^case 0: the score/),
        }
        for (const [name, options] of Object.entries(choices))
          await expect(model.generate(cases, { maxNewTokens: 3, ...options }), name).rejects.toMatchObject(finding)
        await expect(model.score([{ inputIds: [3, 4, 7] }])).rejects.toMatchObject({ code: 'run.value' })
      }),
    )
  })
})

it('logits of suppressed words may have any value', async () => {
  await withOverflow({ suppress_tokens: [...overflowing] }, (dir) =>
    withLlama('smollm', { dir }, async (model) => {
      for (const [name, options] of Object.entries(choices).filter(([, { beams }]) => beams === undefined)) {
        const results = await model.generate(cases, { maxNewTokens: 3, ...options })
        expect(
          results.map(({ ids }) => ids.length > 0 && !ids.some((id) => overflowing.some((each) => each === id))),
          name,
        ).toEqual([true, true])
      }
    }),
  )
})
