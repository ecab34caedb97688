/** Models of the BERT family on the CPU device, under plans of every kind, against results of HF transformers in float64. */
import { readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { readSafetensors } from '../../src/checkpoint/safetensors.js'
import type { EncoderResult } from '../../src/models/encoder/encoder_pipeline.js'
import { compare } from '../../src/verify/compare.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { type FamilyCase, familyCases, familyFolder, familyNames } from './family.js'
import { writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders()
})

const plans = ['unfused', 'best-encoder', 'ft-v1', 'ft-v2.1']

const numbersOf = (result: EncoderResult | undefined): number[] => {
  if (result?.kind === 'question-answering') return [...result.begins, ...result.ends]
  return result === undefined || result.kind === 'encoder' ? [] : result.logits.flatMap((row) => [...row])
}

const wantedOf = ({ logits, begins = [], ends = [] }: FamilyCase): readonly number[] => logits ?? [...begins, ...ends]

const runnable = async (name: string) => (await familyCases(name)).filter(({ refused }) => refused === undefined)

/** Compares the results of a model folder in float32 with a model's goldens, case by case. */
async function compareWithGoldens(name: string, folder: string, plan: string, typed = true) {
  const cases = await runnable(name)
  const encoder = await load(folder, { plan })
  try {
    const given = cases.map(({ input_ids: inputIds = [], token_type_ids: typeIds }) => ({
      inputIds,
      typeIds: typed ? typeIds : undefined,
    }))
    const results = await encoder.run(given, { batch: 5 })
    const { absolute } = modelTolerance('f32', encoder.config.layers)
    return cases.map((wanted, i) => compare(numbersOf(results[i]), wantedOf(wanted), { absolute, relative: 0 }))
  } finally {
    encoder.release()
  }
}

describe.each(familyNames)('%s', (name) => {
  it.each(plans)('matches HF under %s', async (plan) => {
    const verdicts = await compareWithGoldens(name, familyFolder(name), plan)
    expect(verdicts.length).toBeGreaterThan(8)
    for (const [i, { passed, summary }] of verdicts.entries()) expect(passed, `case ${i}: ${summary}`).toBe(true)
  })
})

/** A copy of a model with another configuration. */
async function changed(name: string, changes: Readonly<Record<string, unknown>>): Promise<string> {
  const folder = familyFolder(name)
  const json = JSON.parse(await readFile(join(folder, 'config.json'), 'utf8')) as Record<string, unknown>
  return writeModel({
    json: { ...json, ...changes },
    tensors: (await readSafetensors(join(folder, 'model.safetensors'))).tensors,
  })
}

describe('the goldens tell a wrong model', () => {
  it('without types of tokens', async () => {
    const verdicts = await compareWithGoldens('bert-pairs', familyFolder('bert-pairs'), 'unfused', false)
    expect(verdicts.some(({ passed }) => !passed)).toBe(true)
  })

  it.each([
    ['roberta-pairs', 'with positions that begin elsewhere', { pad_token_id: 2 }],
    ['roberta-answers', 'with another epsilon', { layer_norm_eps: 1e-2 }],
    ['distilbert-answers', 'with another activation', { activation: 'gelu' }],
  ])('%s %s', async (name, _, changes) => {
    const folder = await changed(name, changes)
    try {
      // The end of a text is not padding under the wrong configuration of positions.
      const verdicts = await compareWithGoldens(name, folder, 'unfused').catch((error: unknown) => error)
      if (Array.isArray(verdicts)) expect(verdicts.some(({ passed }) => !passed)).toBe(true)
      else expect(verdicts).toMatchObject({ code: 'run.token' })
    } finally {
      await rm(folder, { recursive: true })
    }
  })
})

it('refuses padding if positions depend on the other tokens, and types if there are none', async () => {
  const roberta = await load(familyFolder('roberta-pairs'))
  await expect(roberta.run([{ inputIds: [0, 5, 1, 2] }])).rejects.toMatchObject({
    code: 'run.token',
    message: 'case 0: token id 1 at position 2 is the padding token',
  })
  roberta.release()
  const distilbert = await load(familyFolder('distilbert-pairs'))
  await expect(distilbert.run([{ inputIds: [2, 5, 3], typeIds: [0, 0, 0] }])).rejects.toMatchObject({ code: 'run.type' })
  distilbert.release()
})
