/** Heads of BERT other than token classifiers, and token types, on the CPU device against the interpreter. */
import { rm } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import { compare } from '../../src/verify/compare.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { interpretBert, randomBert, writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders()
})

const sequences = [[3, 1, 4, 1, 5, 9, 2], [9], [6, 5, 3, 49, 7]]
const types = [[0, 0, 0, 1, 1, 1, 1], [0], [0, 1, 1, 0, 1]]
const cases = sequences.map((inputIds, i) => ({ inputIds, typeIds: types[i] }))
const seq = 7

const heads = {
  'a classifier of sequences': { architectures: ['BertForSequenceClassification'], num_labels: 3 },
  'a head for answers': { architectures: ['BertForQuestionAnswering'] },
  'a classifier of tokens': { architectures: ['BertForTokenClassification'], num_labels: 4 },
} as const

describe.each(Object.entries(heads))('%s', (_, changes) => {
  it.each(inTurn(['unfused', 'ft-v2.1', 'best-encoder']))('matches the interpreter under %s', async (plan) => {
    const model = randomBert({ ...changes, num_hidden_layers: 2 })
    const { config } = model
    const file = { tensors: model.tensors, metadata: {} }
    const logits = async (of: readonly (readonly number[])[]): Promise<number[][]> => {
      const data = Array.from((await interpretBert(config, file, sequences, of)).get('logits')?.data ?? [])
      const row = (at: number): number[] => data.slice(at * config.classes, (at + 1) * config.classes)
      if (config.kind === 'sequence-classifier') return sequences.map((_, i) => row(i))
      return sequences.map(({ length }, i) => Array.from({ length }, (_, token) => row(i * seq + token)).flat())
    }
    const [wanted, others] = [await logits(types), await logits([])]
    const dir = await writeModel(model)
    try {
      for (const dtype of ['f32', 'f16'] as const) {
        const encoder = await load(dir, { dtype, plan, seqStep: 1 })
        const results = await encoder.run(cases)
        const bound = { absolute: modelTolerance(dtype, config.layers).absolute, relative: 0 }
        for (const [i, result] of results.entries()) {
          const found =
            result.kind === 'question-answering'
              ? Array.from(result.begins).flatMap((begin, token) => [begin, result.ends[token] ?? Number.NaN])
              : result.kind === 'encoder'
                ? []
                : result.logits.flatMap((row) => [...row])
          const verdict = compare(found, wanted[i] ?? [], bound)
          expect(verdict.passed, `${dtype}, case ${i}: ${verdict.summary}`).toBe(true)
          if (result.kind === 'sequence-classifier') {
            expect(result.labelId).toBe(found.indexOf(Math.max(...found)))
            expect(result.label).toBe(`LABEL_${result.labelId}`)
          }
        }
        // Types of tokens count: without them the first case has other logits.
        expect(compare(wanted[0] ?? [], others[0] ?? [], bound).passed).toBe(false)
        encoder.release()
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })
})

const faulty: readonly (readonly [Readonly<Record<string, unknown>>, string])[] = [
  ...Object.values(heads).map((changes) => [changes, 'logits'] as const),
  [{}, 'states'],
]

it.each(faulty)('names the case with NaN results: %o', async (changes, what) => {
  const model = randomBert(changes)
  const words = model.tensors.get('embeddings.word_embeddings.weight')
  // A row whose variance is beyond float32, of a token that the last case alone has.
  new Float32Array(words?.data.buffer ?? new ArrayBuffer(0)).fill(3e38, 49 * 128, 49 * 128 + 64)
  const dir = await writeModel(model)
  try {
    const encoder = await load(dir, { seqStep: 1 })
    const wrong = { code: 'run.value', message: `case 2: the ${what} of token 0 hold NaN` }
    await expect(encoder.run(cases)).rejects.toMatchObject(wrong)
    await expect(encoder.run(cases, { batch: 1 })).rejects.toMatchObject(wrong)
    expect(await encoder.run(cases.slice(0, 2))).toHaveLength(2)
    encoder.release()
  } finally {
    await rm(dir, { recursive: true })
  }
})

it('refuses types that are not the tokens', async () => {
  const dir = await writeModel(randomBert({}))
  try {
    const encoder = await load(dir)
    const run = (typeIds: readonly number[]) => encoder.run([{ inputIds: [1, 2, 3], typeIds }])
    await expect(run([0, 1])).rejects.toMatchObject({ code: 'run.type', message: 'case 0 has 3 tokens and 2 token types' })
    await expect(run([0, 1, 2])).rejects.toMatchObject({
      code: 'run.type',
      message: 'case 0: type 2 at position 2 is not in [0, 2)',
    })
    encoder.release()
  } finally {
    await rm(dir, { recursive: true })
  }
})
