/** Embeddings of ragged batches on the CPU device, against rows that are pooled here, in double precision, of the interpreter's states. */
import { rm } from 'node:fs/promises'
import { beforeAll, describe, expect, it } from 'vitest'
import type { EmbedOptions } from '../../src/models/encoder/encoder_pipeline.js'
import { compare } from '../../src/verify/compare.js'
import { modelTolerance } from '../../src/verify/tolerance.js'
import { inTurn } from '../turns.js'
import { encodedBy } from './bert_reference.js'
import { interpretBert, randomBert, writeModel } from './fixtures.js'
import { simtEncoders } from './simt.js'

let load: Awaited<ReturnType<typeof simtEncoders>>
beforeAll(async () => {
  load = await simtEncoders()
})

const sequences = [[3, 1, 4, 1, 5, 9, 2], [9], [6, 5, 3, 49, 7]]
const cases = sequences.map((inputIds) => ({ inputIds }))
const [seq, hidden] = [7, 128]

/** Rows of tokens as one. */
const pools: Readonly<Record<string, (tokens: readonly (readonly number[])[]) => number[]>> = {
  mean: (tokens) => Array.from({ length: hidden }, (_, c) => tokens.reduce((sum, row) => sum + (row[c] ?? 0), 0) / tokens.length),
  cls: (tokens) => [...(tokens[0] ?? [])],
  last: (tokens) => [...(tokens.at(-1) ?? [])],
}
const unit = (row: readonly number[]): number[] => row.map((value) => value / Math.hypot(...row))

const ways = (['mean', 'cls', 'last'] as const).flatMap((pooling) =>
  [false, true].map((normalize) => ({ pooling, normalize }) satisfies EmbedOptions),
)

describe.each(inTurn(['unfused', 'ft-v2.1', 'best-encoder']))('under %s', (plan) => {
  it.each(['f32', 'f16'] as const)('rows are those of the interpreter in %s', async (dtype) => {
    const model = randomBert({ num_hidden_layers: 2 })
    const { data = [] } = (await interpretBert(model.config, { tensors: model.tensors }, sequences)).get('states') ?? {}
    const states = sequences.map(({ length }, i) =>
      Array.from({ length }, (_, token) => Array.from(data).slice((i * seq + token) * hidden, (i * seq + token + 1) * hidden)),
    )
    const dir = await writeModel(model)
    const encoder = await load(dir, { dtype, plan, seqStep: 1 })
    try {
      const bound = { absolute: modelTolerance(dtype, 2).absolute, relative: 0 }
      for (const way of ways) {
        const rows = await encoder.embed(cases, way)
        for (const [i, tokens] of states.entries()) {
          const pooled = pools[way.pooling]?.(tokens) ?? []
          const verdict = compare([...(rows[i] ?? [])], way.normalize ? unit(pooled) : pooled, bound)
          expect(verdict.passed, `${JSON.stringify(way)}, case ${i}: ${verdict.summary}`).toBe(true)
        }
      }
      // A sum over all positions, or over those of another case, is not within the bound.
      expect(compare(pools.mean?.(states[2] ?? []) ?? [], pools.mean?.([...(states[2] ?? []), []]) ?? [], bound).passed).toBe(
        false,
      )
    } finally {
      encoder.release()
      await rm(dir, { recursive: true })
    }
  })
})

describe('masked tokens', () => {
  const masks = [
    [0, 1, 1, 0, 1, 1, 0],
    undefined,
    [
      [1, 0, 1, 0, 0],
      [1, 0, 1, 0, 0],
      [1, 0, 1, 0, 0],
      [0, 0, 0, 1, 0],
      [0, 0, 0, 1, 0],
    ],
  ]
  const kept = [[1, 2, 4, 5], [0], [0, 2, 3]]
  const masked = sequences.map((inputIds, i) => ({ inputIds, attentionMask: masks[i] }))

  it.each(inTurn(['unfused', 'ft-v2.1', 'best-encoder']))('are not pooled under %s', async (plan) => {
    const model = randomBert({ num_hidden_layers: 2 })
    const { layers, heads, eps } = model.config
    const states = sequences.map((ids, i) => {
      const mask = masks[i]?.map((row) => (typeof row === 'number' ? (masks[i] as number[]) : row)) ?? [[1]]
      return encodedBy({ layers, heads, eps }, model.tensors, ids, mask)
    })
    const dir = await writeModel(model)
    const encoder = await load(dir, { plan })
    try {
      const bound = { absolute: modelTolerance('f32', 2).absolute, relative: 0 }
      for (const way of ways) {
        const rows = await encoder.embed(masked, way)
        for (const [i, tokens] of states.entries()) {
          const [pool, unmasked] = [tokens.filter((_, t) => kept[i]?.includes(t)), tokens].map((all) => {
            const pooled = pools[way.pooling]?.(all) ?? []
            return way.normalize ? unit(pooled) : pooled
          })
          const verdict = compare([...(rows[i] ?? [])], pool ?? [], bound)
          expect(verdict.passed, `${JSON.stringify(way)}, case ${i}: ${verdict.summary}`).toBe(true)
          if (i === 0) expect(compare([...(rows[i] ?? [])], unmasked ?? [], bound).passed).toBe(false)
        }
      }
      // Cases without a hole have the same rows, beside cases that have one or not.
      expect(await encoder.embed(cases)).toHaveLength(3)
      await expect(encoder.embed([{ inputIds: [1, 2], attentionMask: [0, 0] }])).rejects.toMatchObject({
        code: 'run.mask',
        message: 'case 0: its mask removes every token',
      })
    } finally {
      encoder.release()
      await rm(dir, { recursive: true })
    }
  })
})

it("a classifier's rows are those of its layers", async () => {
  const bare = randomBert({})
  const classifier = randomBert({ architectures: ['BertForTokenClassification'], num_labels: 4 })
  const dirs = [
    await writeModel(bare),
    await writeModel({ ...classifier, tensors: new Map([...classifier.tensors, ...bare.tensors]) }),
  ]
  const rows: Float32Array[][] = []
  for (const dir of dirs) {
    const encoder = await load(dir)
    rows.push(await encoder.embed(cases))
    // The pipeline's main task still works: its programs exist side by side.
    expect(await encoder.run(cases)).toHaveLength(3)
    expect(await encoder.embed(cases, { batch: 2 })).toEqual(rows.at(-1))
    encoder.release()
    await rm(dir, { recursive: true })
  }
  expect(rows[1]).toEqual(rows[0])
})

it('unknown poolings and options are refused, and invalid numbers are named', async () => {
  const model = randomBert({})
  new Float32Array(model.tensors.get('embeddings.word_embeddings.weight')?.data.buffer ?? new ArrayBuffer(0)).fill(
    3e38,
    49 * 128,
    49 * 128 + 64,
  )
  const dir = await writeModel(model)
  const encoder = await load(dir)
  try {
    const embed = (options: object) => encoder.embed(cases, options)
    await expect(embed({ pooling: 'max' })).rejects.toMatchObject({ code: 'embed.pooling' })
    await expect(embed({ normalise: true })).rejects.toMatchObject({
      code: 'run.option',
      hint: expect.stringContaining('did you mean normalize?'),
    })
    await expect(embed({})).rejects.toMatchObject({ code: 'run.value', message: 'case 2: the embedding holds NaN' })
    await expect(encoder.embed([])).rejects.toMatchObject({ code: 'run.batch' })
  } finally {
    encoder.release()
    await rm(dir, { recursive: true })
  }
})
