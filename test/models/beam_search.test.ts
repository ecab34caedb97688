/** Beam search by the bodies of its ops: against the rules written out, against exhaustive search, and with planted mistakes. */
import { describe, expect, it } from 'vitest'
import { beamCandidates } from '../../specs/ops/beam_candidates.js'
import { beamSelect } from '../../specs/ops/beam_select.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { countFor } from '../../src/ir/top_k.js'
import { runOp } from '../../src/lang/run.js'
import { beamParts, beamSizes } from '../../src/models/decoding/beam_search.js'
import { beforeEnd, type Hypothesis, traceBeams, tracePool } from '../../src/models/decoding/beam_trace.js'
import { exhaustive, hfRule, markovModel, plainRule, runSearch, type Search, type Step, stepByBodies } from './beam_search.js'

const search = (name: string, vocab: number, width: number, rest: Partial<Search> = {}): Search => ({
  rule: 'plain',
  models: [0, 1, 2].map((i) => markovModel(`${name} ${i}`, vocab)),
  vocab,
  width,
  steps: 6,
  ends: [1],
  p: 2,
  k: countFor(rest.rule === 'hf' ? 2 * width : width),
  ...rest,
})

/** Equal ids in equal order, and scores as close as sums of doubles are. */
function expectSame(found: readonly (readonly Hypothesis[])[], wanted: readonly (readonly Hypothesis[])[], what: string): void {
  const ids = (lists: typeof found) => lists.map((list) => list.map((each) => each.ids))
  expect(ids(found), what).toEqual(ids(wanted))
  const scores = (lists: typeof found) => lists.flatMap((list) => list.flatMap(({ score, cumLogProb }) => [score, cumLogProb]))
  const [a, b] = [scores(found), scores(wanted)]
  // Scores are rounded to float32 at the start of a search.
  expect(Math.max(...a.map((value, i) => Math.abs(value - (b[i] ?? 0)))), what).toBeLessThan(1e-5)
}

describe('the plain rule', () => {
  it.each([1, 2, 3, 4, 5, 7])('with %i beams equals the written-out form', async (width) => {
    for (const vocab of [16, 17, 45]) {
      const given = search(`plain ${vocab}`, vocab, width)
      const { found } = await runSearch(given)
      expectSame(
        found,
        given.models.map((model) => plainRule(model, given)),
        `vocabulary ${vocab}`,
      )
    }
  })

  it('finds the result of an exhaustive search if the beam is wide enough', async () => {
    for (const [vocab, steps, width] of [
      [2, 5, 16],
      [3, 4, 27],
      [4, 4, 64],
      [8, 3, 64],
    ] as const) {
      const given = search(`whole ${vocab}`, vocab, width, { steps })
      const { found } = await runSearch(given)
      const best = given.models.map((model) => exhaustive(model, given).slice(0, width))
      const full = found.map((list, b) => list.slice(0, best[b]?.length))
      expectSame(full, best, `vocabulary ${vocab}`)
    }
  })

  it('finds the best of 8 ids and 5 steps, and greedy is a beam of one', async () => {
    for (const vocab of [5, 6, 7, 8]) {
      const given = search(`deep ${vocab}`, vocab, 64, { steps: 5 })
      const best = given.models.map((model) => exhaustive(model, given).slice(0, 4))
      expectSame(
        (await runSearch(given)).found.map((list) => list.slice(0, 4)),
        best,
        `vocabulary ${vocab}`,
      )
    }
    const greedy = search('greedy', 8, 1, { steps: 5 })
    const { found } = await runSearch(greedy)
    for (const [b, model] of greedy.models.entries()) {
      const ids: number[] = []
      while (ids.length < 5 && !ids.includes(1)) {
        const logits = model(ids)
        ids.push(logits.indexOf(Math.max(...logits)))
      }
      expect(found[b]?.[0]?.ids).toEqual(ids.filter((id) => id !== 1))
    }
  })

  it('prefers the lower beam and the lower id in ties, and never chooses -Infinity while another is left', async () => {
    const even = () => [2, 2, 2, Number.NEGATIVE_INFINITY, 2, 2, 2, 2]
    const given = search('even', 8, 3, { models: [even], steps: 1, ends: [7] })
    expect((await runSearch(given)).found[0]?.map(({ ids }) => ids)).toEqual([[0], [1], [2]])
    const one = () => [...Array.from({ length: 7 }, () => Number.NEGATIVE_INFINITY), 1]
    const { outputs } = await runSearch({ ...given, models: [one], ends: [0] })
    expect(outputs[0]?.words?.data[0]).toBe(7)
    // Beams that start as copies of the first one have a far lower score than it, but a higher one than beams of probability 0.
    const scores = Array.from(outputs[0]?.cumulative?.data ?? [])
    expect(scores[0]).toBe(0)
    expect(Math.max(...scores.slice(1))).toBeLessThan(-1e19)
    expect((await runSearch({ ...given, models: [one], ends: [0], width: 1 })).found[0]?.[0]?.ids).toEqual([7])
  })

  it('does not depend on the number of parts, on other sequences, or on more candidates than it needs', async () => {
    const given = search('parts', 45, 4)
    const { found } = await runSearch(given)
    expectSame((await runSearch({ ...given, p: 1 })).found, found, 'one part')
    expectSame((await runSearch({ ...given, p: 7, k: 16 })).found, found, 'parts of 8 and 16 candidates')
    expectSame((await runSearch({ ...given, models: given.models.slice(1) })).found, found.slice(1), 'alone')
  })

  it('ends with any of several end ids', async () => {
    const given = search('ends', 12, 4, { ends: [3, 5], steps: 8 })
    const wanted = given.models.map((model) => plainRule(model, given))
    expect(wanted.flat().some(({ ids }) => ids.length < 8)).toBe(true)
    expectSame((await runSearch(given)).found, wanted, 'two end ids')
  })
})

describe('the plain rule with a rate of diversity', () => {
  const rates = [-5, -0.7, -0.1, 0.3, 2]

  it.each([1, 2, 3, 5, 7])('with %i beams equals the written-out form', async (width) => {
    for (const diversityRate of rates) {
      for (const [vocab, p] of [
        [16, 1],
        [45, 5],
      ] as const) {
        const given = search(`diverse ${vocab}`, vocab, width, { diversityRate, p })
        const wanted = given.models.map((model) => plainRule(model, given))
        expectSame((await runSearch(given)).found, wanted, `rate ${diversityRate}, vocabulary ${vocab}`)
      }
    }
  })

  it('of 0 gives the bits of the rule without one', async () => {
    const given = search('none', 45, 4, { p: 3 })
    const [plain, diverse] = [await runSearch(given), await runSearch({ ...given, diversityRate: 0 })]
    expect(diverse.outputs).toEqual(plain.outputs)
  })

  it('below 0 leaves no two children of one beam with a steep rate, and does not change ended beams', async () => {
    // Scores differ by less than the rate from the first step on: every beam has one child.
    const given = search('steep', 12, 3, { diversityRate: -1000, ends: [], models: [markovModel('steep', 12)] })
    const { outputs } = await runSearch(given)
    for (const { parents } of outputs.slice(1)) expect(new Set(Array.from(parents?.data ?? [])).size).toBe(3)
    const ends = search('ended', 12, 4, { diversityRate: -0.4, ends: [3, 5], steps: 8 })
    const wanted = ends.models.map((model) => plainRule(model, ends))
    expect(wanted.flat().some(({ ids }) => ids.length < 8)).toBe(true)
    expectSame((await runSearch(ends)).found, wanted, 'ended beams')
  })

  it('differs from the rule without one', async () => {
    const given = search('diverse 45', 45, 5, { diversityRate: -0.7 })
    const { found } = await runSearch(given)
    const ids = (lists: readonly (readonly Hypothesis[])[]) => lists.map((list) => list.map((each) => each.ids))
    expect(ids(found)).not.toEqual(ids(given.models.map((model) => plainRule(model, { ...given, diversityRate: 0 }))))
    expect(ids(found)).not.toEqual(ids(given.models.map((model) => plainRule(model, { ...given, diversityRate: 0.7 }))))
  })
})

describe('the rule of generate', () => {
  it.each([1, 2, 3, 4, 5, 7])('with %i beams equals the written-out form', async (width) => {
    for (const earlyStopping of [0, 1, 2]) {
      for (const lengthPenalty of [1, 0, 2, -0.5]) {
        const given = search('hf', 17, width, { rule: 'hf', earlyStopping, lengthPenalty })
        const { found } = await runSearch(given)
        const wanted = given.models.map((model) => hfRule(model, given))
        expectSame(found, wanted, `early stopping ${earlyStopping}, length penalty ${lengthPenalty}`)
      }
    }
  })

  it('considers more candidates if there are more end ids', async () => {
    const given = search('hf ends', 16, 4, { rule: 'hf', ends: [1, 2, 3], k: 16, steps: 7 })
    const wanted = given.models.map((model) => hfRule(model, given))
    expectSame((await runSearch(given)).found, wanted, 'three end ids')
  })

  it('does not change a pool once the sequence is finished', async () => {
    const given = search('hf over', 17, 3, { rule: 'hf', earlyStopping: 1, steps: 12 })
    const { found } = await runSearch(given)
    for (const [b, model] of given.models.entries()) {
      expectSame((await runSearch({ ...given, models: [model] })).found, found.slice(b, b + 1), `sequence ${b} alone`)
    }
  })
})

describe('a planted mistake is found', () => {
  /** A step whose inputs or outputs are tampered with. */
  const tampered =
    (change: (name: string, data: Float64Array, given: Search) => void): Step =>
    async (inputs, given) => {
      const made = await stepByBodies(inputs, given)
      for (const [name, { data }] of Object.entries(made)) if (data instanceof Float64Array) change(name, data, given)
      return made
    }

  it('in a parent that is off by one', async () => {
    const given = search('plain 17', 17, 4)
    const off = tampered((name, data, { width }) => {
      if (name === 'parents')
        for (const [i, parent] of data.entries()) data[i] = parent % width === width - 1 ? parent : parent + 1
    })
    const wanted = given.models.map((model) => plainRule(model, given))
    const { found } = await runSearch(given, off)
    expect(found.map((list) => list.map(({ ids }) => ids))).not.toEqual(wanted.map((list) => list.map(({ ids }) => ids)))
  })

  it('in the last candidate of a part that is dropped', async () => {
    const given = search('plain 17', 17, 4, { p: 1, steps: 1 })
    const [values, ids] = ['values', 'ids'] as const
    const dropping: Step = (inputs, { models, width, p, k }) => {
      const { logits, ...state } = inputs
      if (logits === undefined) throw new Error('no logits')
      const { tops, sums, ...made } = runOp(beamCandidates, { logits }, { dims: { p, k } })
      const dropped = (name: typeof values | typeof ids, by: number) =>
        Float64Array.from(made[name]?.data ?? [], (value, i) => (i % k === k - 1 ? by : value))
      const b = models.length
      const byBeam = ({ data } = { data: [], shape: [] } as HostTensor): HostTensor => ({ data, shape: [b, width] })
      const { words, parents, scores, ended } = runOp(beamSelect, {
        ...state,
        cumulative: byBeam(state.cumulative),
        finished: byBeam(state.finished),
        values: { data: dropped(values, Number.NEGATIVE_INFINITY), shape: [b, width * p * k] },
        ids: { data: dropped(ids, -1), shape: [b, width, p, k] },
        tops: { data: tops?.data ?? [], shape: [b, width, p] },
        sums: { data: sums?.data ?? [], shape: [b, width, p] },
      })
      const rows = ({ data } = { data: [], shape: [] } as HostTensor): HostTensor => ({ data, shape: [b * width] })
      return { words: rows(words), parents: rows(parents), cumulative: rows(scores), finished: rows(ended) }
    }
    const wanted = given.models.map((model) => plainRule(model, given))
    const { found } = await runSearch(given, dropping)
    expect(found.map((list) => list.map(({ ids }) => ids))).not.toEqual(wanted.map((list) => list.map(({ ids }) => ids)))
  })

  it('in a history whose row continues another sequence', () => {
    const options = { batch: 2, width: 2, ends: [], count: 2 }
    const history = { words: [[4, 5, 6, 7]], parents: [[0, 1, 1, 3]] }
    expect(() => traceBeams(history, [0, 0, 0, 0], options)).toThrow('step 0: row 2 continues row 1, sequence 1 has 2 rows')
  })

  it('in a pool whose last word no row of its step has', () => {
    const options = { batch: 1, width: 2, ends: [9], count: 1, lengthPenalty: 1 }
    const history = {
      words: [
        [4, 5],
        [6, 7],
      ],
      parents: [
        [0, 0],
        [1, 0],
      ],
      losses: [
        [0.5, 0.25],
        [1, 2],
      ],
    }
    const pool = (word: number) => ({ scores: [-1], steps: [1], rows: [1], words: [word] })
    expect(tracePool(history, pool(6), options)).toEqual([[{ ids: [5, 6], logprobs: [-0.25, -1], cumLogProb: -2, score: -1 }]])
    // An end id has no log-probability, and need not be in a row.
    expect(tracePool(history, pool(9), options)).toMatchObject([[{ ids: [5], logprobs: [-0.25] }]])
    expect(() => tracePool(history, pool(7), options)).toThrow('step 1: no row continues row 1 with token 7')
  })

  it('in a history with a step that had no word', () => {
    const options = { batch: 1, width: 1, ends: [9], count: 1 }
    const history = { words: [[4], [-1], [9]], parents: [[0], [0], [0]] }
    expect(() => traceBeams(history, [0], options)).toThrow('the logits of token 2 contain NaN: no token can be chosen')
    expect(beforeEnd([4, 9, -1], [9])).toEqual([4])
  })
})

describe('the extents of a search', () => {
  it('follow from vocabulary and width', () => {
    expect(beamSizes({ width: 3, vocab: 30_000, ends: 1, rule: 'plain' })).toEqual({ p: 15, k: 4 })
    expect(beamSizes({ width: 3, vocab: 17, ends: 1, rule: 'hf' })).toEqual({ p: 1, k: 8 })
    expect(beamSizes({ width: 4, vocab: 50_257, ends: 3, rule: 'hf' })).toEqual({ p: 25, k: 16 })
    expect(beamParts(1)).toBe(1)
  })

  it('refuses widths there are no kernels for', () => {
    const refuses = (width: number, rule: 'plain' | 'hf', vocab = 1000) =>
      expect(() => beamSizes({ width, vocab, ends: 1, rule }))
    refuses(65, 'plain').toThrow('beam width is 65, expected an integer from 1 to 64')
    refuses(33, 'hf').toThrow('from 1 to 32')
    refuses(9, 'plain', 17).toThrow('from 1 to 8')
    refuses(0, 'plain').toThrow('beam width is 0')
    refuses(2.5, 'plain').toThrow('beam width is 2.5')
  })
})
