/** LLaMA-like models of the test data on simt, HF's results for them, and the comparison of both. */
import { readFileSync } from 'node:fs'
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { z } from 'zod'
import { loadLlama } from '../../src/models/llama/llama_pipeline.js'
import type { Llama, LlamaOptions } from '../../src/models/llama/llama_types.js'
import { openSimtKernels } from './simt.js'

export const families = ['linear', 'llama3', 'mistral', 'phi3', 'qwen2', 'qwen3', 'smollm', 'yarn'] as const
export type FamilyName = (typeof families)[number]

export const folderOf = (name: FamilyName): string =>
  fileURLToPath(new URL(`../data/models/llama-families/${name}`, import.meta.url))

const ids = z.array(z.int())
const cases = z.array(z.object({ input_ids: ids, greedy_ids: ids, smallest_gap: z.number() }))
const goldenSchema = z.object({
  cases,
  /** Longer prompts. */
  long: cases.default([]),
  text: z.object({ input_ids: ids, mean_nll: z.number().optional(), places: ids, logits: z.array(z.array(z.number())) }),
})

/** HF's results for a model that computes in float32: tokens after prompts, logits at some positions of a text, and its likelihood. */
export const readGolden = (folder: string) => goldenSchema.parse(JSON.parse(readFileSync(`${folder}/golden.json`, 'utf8')))

export const goldenOf = (name: FamilyName) => readGolden(folderOf(name))

/** Those of some models are of ones that were cast as a whole, inverse frequencies too; the others were loaded in float32. */
const rotationOf = (name: FamilyName) => (name === 'linear' ? 'stored' : 'float32')

/** A copy of a model with other end ids in its settings. */
export const withEnds = (name: FamilyName, ends: readonly number[]): Promise<string> => withFields(name, { eos_token_id: ends })

/** A copy of a model whose configuration and settings say other things too. */
export async function withFields(name: FamilyName, fields: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-ends-'))
  await cp(folderOf(name), folder, { recursive: true })
  for (const file of ['config.json', 'generation_config.json']) {
    const path = `${folder}/${file}`
    const said = z.looseObject({}).parse(JSON.parse(await readFile(path, 'utf8')))
    await writeFile(path, JSON.stringify({ ...said, ...fields }))
  }
  return folder
}

/** Loads a model whose inverse frequencies are those of its golden tokens, uses it, and frees it. `dir`: folder of a changed copy. */
export async function withLlama<T>(
  name: FamilyName,
  { dir = folderOf(name), ...options }: Partial<LlamaOptions> & { readonly dir?: string },
  use: (model: Llama) => Promise<T>,
): Promise<T> {
  const model = await loadLlama(dir, { rotation: rotationOf(name), ...(await openSimtKernels()), ...options })
  try {
    return await use(model)
  } finally {
    model.release()
  }
}

/** The largest distance of logits, by 1 + the largest golden one. */
export function farthest(found: ArrayLike<number>, golden: readonly number[]): number {
  const scale = 1 + golden.reduce((most, value) => Math.max(most, Math.abs(value)), 0)
  return golden.reduce((most, value, i) => {
    const distance = Math.abs((found[i] ?? Number.NaN) - value) / scale
    return Number.isNaN(distance) ? Number.POSITIVE_INFINITY : Math.max(most, distance)
  }, 0)
}
