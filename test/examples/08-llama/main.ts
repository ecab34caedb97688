import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openLlama } from 'heddle/commands'
import { makeModel } from './make_model.js'
import { greedy } from './reference.js'

const prompts = [
  [1, 20, 33, 7],
  [1, 5, 5, 60, 12, 40, 41],
]
const expected = prompts.map((prompt) => greedy(prompt, 8))

const folder = await mkdtemp(join(tmpdir(), 'small-llama-'))
await makeModel(folder)
try {
  // #region plans
  for (const plan of ['unfused', 'best-llama', 'best-llama-int8w']) {
    const { model, close } = await openLlama(folder, { device: 'simt', dtype: 'f32', plan })
    const cases = prompts.map((inputIds) => ({ inputIds }))
    const results = await model.generate(cases, { maxNewTokens: 8 })
    console.log(`${plan}, ${model.weightBytes} bytes of weights: ${results.map(({ ids }) => ids.join(' ')).join(' | ')}`)
    assert.deepEqual(
      results.map(({ ids }) => ids),
      expected,
    )
    close()
  }
  // #endregion
} finally {
  await rm(folder, { recursive: true })
}
