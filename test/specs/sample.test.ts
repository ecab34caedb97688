/** Sampling by definition: the bodies of the ops, run by Node, against probabilities by sorting. */
import { describe, expect, it } from 'vitest'
import { suppressEnds } from '../../specs/ops/ends.js'
import { markSeen, penalise } from '../../specs/ops/penalise.js'
import { greedy, sample } from '../../specs/ops/sample.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { uniform } from '../../src/ir/philox.js'
import { runOp } from '../../src/lang/run.js'
import { plain, probabilities, type Request } from '../../src/verify/probabilities.js'
import { numbers, wordAt } from './sampling.js'

/** Ends of rows, if a test sets them. */
interface Ending {
  readonly step?: number
  readonly finished?: number
  readonly limit?: number
  readonly ends?: readonly number[]
}

const scalar = (value: number): HostTensor => ({ shape: [1], data: [value] })

const endingOf = ({ step = 0, finished = 0, limit = 1000, ends = [0] }: Ending) => ({
  step: scalar(step),
  finished: scalar(finished),
  limit: scalar(limit),
  ends: { shape: [ends.length], data: ends },
})

const rowOf = (logits: readonly number[]): HostTensor => ({ shape: [1, logits.length], data: logits })

const outcome = (outputs: Record<string, HostTensor>): { word: number; finished: number } => ({
  word: outputs.words?.data[0] ?? Number.NaN,
  finished: outputs.finishedAfter?.data[0] ?? Number.NaN,
})

const takeGreedy = (logits: readonly number[], ending: Ending = {}) =>
  outcome(runOp(greedy, { logits: rowOf(logits), ...endingOf(ending) }))

function draw(logits: readonly number[], request: Partial<Request>, seed: number, ending: Ending = {}) {
  const { temperature, topK, topP, minP } = { ...plain, ...request }
  const inputs = {
    logits: rowOf(logits),
    temperature: scalar(temperature),
    topK: scalar(topK),
    topP: scalar(topP),
    minP: scalar(minP),
    seedsLow: scalar(seed),
    seedsHigh: scalar(3),
    ...endingOf(ending),
  }
  return outcome(runOp(sample, inputs))
}

/** Every token that some seed draws. */
const reached = (logits: readonly number[], request: Partial<Request>, ending: Ending = {}): number[] =>
  [...new Set(Array.from({ length: 300 }, (_, seed) => draw(logits, request, seed, ending).word))].sort((a, b) => a - b)

describe('sample', () => {
  it('draws the word that its random number falls on', () => {
    const next = numbers(5)
    for (let round = 0; round < 500; round++) {
      const logits = Array.from({ length: 1 + Math.floor(next() * 20) }, () => 8 * next() - 4)
      const request: Request = {
        temperature: 0.3 + 2 * next(),
        topK: next() < 0.5 ? 0 : 1 + Math.floor(next() * 25),
        topP: next() < 0.5 ? 1 : 0.05 + 0.9 * next(),
        minP: next() < 0.5 ? 0 : 0.5 * next(),
      }
      const step = Math.floor(next() * 100)
      const wanted = wordAt(probabilities(logits, request), uniform(round, 3, step))
      expect(draw(logits, request, round, { step }).word, JSON.stringify({ logits, request })).toBe(wanted)
    }
  })

  it('keeps words as likely as the k-th', () => {
    expect(reached([1, 3, 2, 2, 0], { topK: 2 })).toEqual([1, 2, 3])
    expect(reached([1, 1, 1], { topK: 1 })).toEqual([0, 1, 2])
  })

  it('takes the most likely word for a top-k of 1, whatever the seed', () => {
    expect(reached([1, 3, 2, 2, 0], { topK: 1, temperature: 5 })).toEqual([1])
  })

  it('always keeps the most likely word', () => {
    expect(reached([0, 1, 2], { topP: 1e-6 })).toEqual([2])
    expect(reached([0, 1, 2], { minP: 1 })).toEqual([2])
  })

  it('never draws a word of logit -Infinity', () => {
    expect(reached([Number.NEGATIVE_INFINITY, 0, Number.NEGATIVE_INFINITY], { temperature: 100 })).toEqual([1])
  })

  it('has no word if a logit is NaN, if the largest is infinite or if none has a chance, and ends the row', () => {
    for (const row of [
      [Number.NaN, Number.NaN],
      [0, Number.NaN, 1],
      [0, Number.POSITIVE_INFINITY, 1],
      [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
    ])
      for (const request of [{}, { topK: 1, topP: 0.5 }])
        expect(draw(row, request, 1, { ends: [1] })).toEqual({ word: -1, finished: 1 })
  })
})

describe('rows end', () => {
  const logits = [0, 5, 4]

  it('with an end id, and stay finished', () => {
    expect(takeGreedy(logits, { ends: [2, 1] })).toEqual({ word: 1, finished: 1 })
    expect(takeGreedy(logits, { ends: [2] })).toEqual({ word: 1, finished: 0 })
    expect(takeGreedy(logits, { ends: [2, 0], finished: 1 })).toEqual({ word: 2, finished: 1 })
    expect(draw(logits, { topK: 1 }, 1, { ends: [1] })).toEqual({ word: 1, finished: 1 })
    expect(draw(logits, {}, 1, { ends: [0, 2], finished: 1 })).toEqual({ word: 0, finished: 1 })
  })

  it('with their last token', () => {
    expect(takeGreedy(logits, { limit: 4, step: 2 })).toEqual({ word: 1, finished: 0 })
    expect(takeGreedy(logits, { limit: 4, step: 3 })).toEqual({ word: 1, finished: 1 })
    expect(draw(logits, {}, 1, { limit: 4, step: 3 }).finished).toBe(1)
  })
})

describe('greedy', () => {
  it('takes the lowest id among equals', () => {
    expect(takeGreedy([1, 2, 2]).word).toBe(1)
  })

  it('has no word if a logit is NaN or the largest is infinite, and ends the row', () => {
    expect(takeGreedy([Number.NaN, 2], { ends: [1] })).toEqual({ word: -1, finished: 1 })
    expect(takeGreedy([Number.NaN, Number.NaN], { ends: [1], finished: 1 })).toEqual({ word: 1, finished: 1 })
    expect(takeGreedy([0, Number.POSITIVE_INFINITY], { ends: [1] })).toEqual({ word: -1, finished: 1 })
    expect(takeGreedy([Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY], { ends: [1] })).toEqual({ word: -1, finished: 1 })
    expect(takeGreedy([Number.NEGATIVE_INFINITY, -3e38], { ends: [0] })).toEqual({ word: 1, finished: 0 })
  })
})

describe('the repetition penalty', () => {
  it('makes seen words less likely on either side of zero', () => {
    const { y } = runOp(penalise, {
      logits: { shape: [2, 3], data: [4, -4, 4, 1, -1, 0] },
      seen: { shape: [2, 3], data: [1, 3, 0, 1, 0, 1] },
      penalty: { shape: [2], data: [2, 0.5] },
    })
    expect(Array.from(y?.data ?? [])).toEqual([2, -8, 4, 2, -1, 0])
  })

  it('marks the new word of each row', () => {
    const inputs = { seen: { shape: [2, 3], data: [1, 0, 0, 0, 0, 1] }, words: { shape: [2], data: [2, 2] } }
    expect(Array.from(runOp(markSeen, inputs).y?.data ?? [])).toEqual([1, 0, 1, 0, 0, 1])
  })
})

describe('suppress_ends', () => {
  const open = (minimum: readonly number[], step: number) =>
    Array.from(
      runOp(suppressEnds, {
        logits: { shape: [2, 3], data: [0, 5, 4, 3, 2, 1] },
        step: scalar(step),
        minimum: { shape: [2], data: minimum },
        ends: { shape: [2], data: [1, 0] },
      }).y?.data ?? [],
    )

  it('excludes end ids from rows with fewer than their minimum of tokens', () => {
    expect(open([3, 0], 2)).toEqual([-Infinity, -Infinity, 4, 3, 2, 1])
    expect(open([3, 4], 3)).toEqual([0, 5, 4, -Infinity, -Infinity, 1])
    expect(open([0, 3], 3)).toEqual([0, 5, 4, 3, 2, 1])
  })
})
