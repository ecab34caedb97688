/**
 * Dependence of a result on more than its own tokens. Rows of another length may be summed by another schedule, which groups float32 sums
 * differently; within one schedule a result has the same bits, regardless of its padding or batch. Plans that fuse attention compute no padded rows.
 */
import { describe, expect, it } from 'vitest'
import { type EncoderResult, loadEncoder } from '../../src/models/encoder/encoder_pipeline.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { exampleModel } from './fixtures.js'
import { openSimtKernels } from './simt.js'

const simt = await openSimtKernels()
const first = { inputIds: [2, 117, 254, 9, 1300, 77, 40, 1201, 618, 33, 912, 71, 506, 1999, 3] }
const second = { inputIds: [2, 90, 18, 640, 33, 3] }

const logitsOf = (result: EncoderResult | undefined): number[] =>
  result?.kind === 'token-classifier' ? result.logits.flatMap((row) => [...row]) : []

/** Logits of the first case, padded to a multiple of `seqStep`, alone or after another one. */
async function logits(plan: string, seqStep: number, alone = true): Promise<number[]> {
  const encoder = await loadEncoder(exampleModel, { ...simt, plan, seqStep })
  try {
    const results = await encoder.run(alone ? [first] : [second, first])
    return logitsOf(results.at(-1))
  } finally {
    encoder.release()
  }
}

/** Rows of attention that one schedule of softmax takes: at most 16 elements, and at most 128. */
const schedules = [[16], [24, 64, 120]]

describe('a result', () => {
  it.each(['unfused', 'ft-v1', 'ft-v2.1'])('under %s is the same bits within a schedule, and close beyond', async (plan) => {
    const byLength = new Map<number, number[]>()
    for (const seq of schedules.flat()) byLength.set(seq, await logits(plan, seq))
    for (const lengths of schedules) {
      const [shortest = 0, ...others] = lengths
      for (const seq of others) expect(byLength.get(seq), `${shortest} and ${seq}`).toEqual(byLength.get(shortest))
    }
    expect(await logits(plan, 16, false)).toEqual(byLength.get(16))
    const [short, long] = [byLength.get(16) ?? [], byLength.get(24) ?? []]
    expect(short).not.toEqual(long)
    const result = compare(short, long, tolerance({ dtype: 'f32', class: 'model', length: 2 }))
    expect(result.passed, result.summary).toBe(true)
  })

  it.each(['best-encoder', 'best-encoder-library', 'auto'])('under %s is the same bits at any padding', async (plan) => {
    const alone = await logits(plan, 8)
    expect(await logits(plan, 24)).toEqual(alone)
    expect(await logits(plan, 24, false)).toEqual(alone)
  })
})
