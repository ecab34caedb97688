/** Steps of beam search by the generated kernels on simt: each computes the same as the bodies on the same inputs. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readManifest } from '../../src/cli/pipeline.js'
import type { DType } from '../../src/ir/dtype.js'
import { beamSizes } from '../../src/models/decoding/beam_search.js'
import { decode } from '../../src/runtime/buffer.js'
import { encodeNumbers, roundTo } from '../../src/runtime/numbers.js'
import { buildProgram } from '../../src/runtime/program.js'
import { openSession, type Session } from '../../src/runtime/session.js'
import { compare } from '../../src/verify/compare.js'
import { betweenResults, tolerance } from '../../src/verify/tolerance.js'
import { openSubject, root } from '../conformance/simt.js'
import { applicationOf, dimsOf, markovModel, plainRule, runSearch, type Search, type Step, stepByBodies } from './beam_search.js'

let session: Session
let close: () => void

beforeAll(async () => {
  const manifest = await readManifest(root)
  const { device, library, layouts } = await openSubject()
  session = await openSession({ device, library, manifest, layouts, weights: {} })
  close = () => {
    session.release()
    device.close()
  }
})
afterAll(() => close())

const search = (vocab: number, width: number, rest: Partial<Search> = {}): Search => {
  const rule = rest.rule ?? 'plain'
  const ends = [1]
  const models = [0, 1].map((i) => markovModel(`device ${vocab} ${width} ${i}`, vocab))
  return { rule, models, vocab, width, steps: 3, ends, ...beamSizes({ width, vocab, ends: 1, rule }), ...rest }
}

/** A step by the kernels. Logits are those that `T` holds, in float32. */
const stepOnDevice =
  (T: DType): Step =>
  async (inputs, given) => {
    // A name in a program belongs to one value, so the result of a step has a new name.
    const { outputs: after, ...applied } = applicationOf(given)
    const outputs = Object.fromEntries(Object.keys(after).map((name) => [name, `${name} after`]))
    const application = { ...applied, outputs }
    const program = await buildProgram({
      session,
      applications: [application],
      inputs: Object.keys(application.inputs),
      outputs: Object.values(outputs),
      dims: dimsOf(given),
      types: { T },
    })
    try {
      const stored = Object.entries(program.inputs).map(([name, { dtype }]) => [
        name,
        encodeNumbers(dtype, inputs[name]?.data ?? []),
      ])
      const made = await program.run(Object.fromEntries(stored))
      return Object.fromEntries(
        Object.entries(outputs).flatMap(([name, wire]) => {
          const value = program.outputs[wire]
          const bytes = made[wire]
          if (value === undefined || bytes === undefined) return []
          return [[name, { data: Array.from(decode(value.dtype, bytes)), shape: value.shape }]]
        }),
      )
    } finally {
      program.release()
    }
  }

/** Both ways on the same inputs; the kernels' outputs lead on. */
const stepBoth =
  (T: DType): Step =>
  async (inputs, given) => {
    const { logits } = inputs
    if (logits === undefined) throw new Error('no logits')
    const rounded = { ...inputs, logits: { ...logits, data: roundTo(T, logits.data) } }
    const [made, wanted] = [await stepOnDevice(T)(rounded, given), await stepByBodies(rounded, given)]
    const bound = betweenResults(tolerance({ dtype: 'f32', class: 'reduction', length: given.vocab, scale: 1 }))
    for (const [name, { data }] of Object.entries(wanted)) {
      const exact = name === 'cumulative' || name === 'poolScores' ? bound : tolerance({ dtype: 'i32', class: 'exact' })
      const result = compare(made[name]?.data ?? [], data, exact)
      expect(result.passed, `${name} of ${given.width} beams over ${given.vocab}: ${result.summary}`).toBe(true)
    }
    return made
  }

describe('kernels of a step equal its bodies', () => {
  it.each([
    [17, [1, 3, 4, 5, 7]],
    [45, [1, 3, 4, 5, 7]],
    [1000, [1, 3, 4, 5, 7, 64]],
  ])('over %i ids', async (vocab, widths) => {
    for (const width of widths) await runSearch(search(vocab, width), stepBoth('f32'))
  })

  it.each([17, 1000])('over %i ids by the rule of generate', async (vocab) => {
    for (const width of [1, 4, 7]) await runSearch(search(vocab, width, { rule: 'hf' }), stepBoth('f32'))
  })

  it.each([17, 1000])('over %i ids with a rate of diversity', async (vocab) => {
    for (const width of [1, 3, 7]) {
      for (const diversityRate of [-0.5, 0.25]) await runSearch(search(vocab, width, { diversityRate, p: 3 }), stepBoth('f32'))
    }
  })

  it('over 50257 ids, with logits in half precision', async () => {
    const models = [markovModel('large', 50_257)]
    await runSearch(search(50_257, 4, { models, steps: 1 }), stepBoth('f16'))
  })

  it('match the rule', async () => {
    const given = search(45, 5, { steps: 6 })
    const { found } = await runSearch(given, stepOnDevice('f32'))
    const wanted = given.models.map((model) => plainRule(model, given))
    expect(found.map((list) => list.map(({ ids }) => ids))).toEqual(wanted.map((list) => list.map(({ ids }) => ids)))
  })
})

describe('ties and logits without probability', () => {
  const step = stepOnDevice('f16')

  it('choose the lower id and the lower beam', async () => {
    const even = () => Array.from({ length: 1000 }, (_, id) => (id % 3 === 0 ? 1 : 0))
    const given = search(1000, 4, { models: [even], steps: 2 })
    const { outputs } = await runSearch(given, step)
    expect(Array.from(outputs[0]?.words?.data ?? [])).toEqual([0, 3, 6, 9])
    expect(Array.from(outputs[1]?.words?.data ?? [])).toEqual([0, 3, 6, 9])
    expect(Array.from(outputs[1]?.parents?.data ?? [])).toEqual([0, 0, 0, 0])
  })

  it('are taken last', async () => {
    const few = () => Array.from({ length: 45 }, (_, id) => (id === 44 || id === 7 ? id : Number.NEGATIVE_INFINITY))
    const { outputs } = await runSearch(search(45, 2, { models: [few], steps: 1 }), step)
    expect(Array.from(outputs[0]?.words?.data ?? [])).toEqual([44, 7])
  })
})

it('refuses counts that no kernel is compiled for, and names those there are', async () => {
  await expect(runSearch(search(45, 3, { k: 3 }), stepOnDevice('f32'))).rejects.toMatchObject({
    code: 'bind.extent',
    message: 'beam_step/candidates: dimension k is 3, kernels of beam_candidates are compiled for 1, 2, 4, 8, 16, 32, 64',
  })
})
