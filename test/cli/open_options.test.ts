/** Opening models from Node: unknown options and folders of another kind are refused before a device is opened. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { openGenerator, openLlama, openPipeline } from '../../src/cli/index.js'

const folder = fileURLToPath(new URL('../data/models/llama-families/smollm', import.meta.url))
type Open = (folder: string, options: object) => Promise<unknown>

describe('opening a model', () => {
  it.each([
    ['openLlama', openLlama as Open, 'rotation'],
    ['openGenerator', openGenerator as Open, 'plan'],
    ['openPipeline', openPipeline as Open, 'scales'],
  ] as const)('%s refuses options that it does not have', async (name, open, known) => {
    await expect(open(folder, { device: 'simt', dtyp: 'f16' })).rejects.toMatchObject({
      code: 'run.option',
      message: `${name} has no option dtyp`,
      hint: expect.stringMatching(new RegExp(`^did you mean dtype\\? options are .*${known}`)),
    })
  })

  it('refuses options of runs', async () => {
    const open: Open = openLlama
    await expect(open(folder, { device: 'simt', invariant: 4 })).rejects.toMatchObject({
      code: 'run.option',
      message: 'openLlama has no option invariant',
    })
  })

  it('names the function that opens a LLaMA-like model', async () => {
    await expect(openGenerator(folder, { device: 'simt' })).rejects.toMatchObject({
      code: 'config.model_type',
      message: expect.stringContaining('is a LLaMA-like model'),
      hint: expect.stringContaining('openLlama'),
    })
  })

  it('refuses a folder without a model', async () => {
    const open = openLlama as (folder: unknown) => Promise<unknown>
    await expect(open(undefined)).rejects.toMatchObject({ code: 'run.model' })
  })
})
