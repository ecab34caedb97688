/** Tokens chosen by way of parts of rows, by definition, run by Node: they are those of `greedy` and `sample`, which look at whole rows. */
import { describe, expect, it } from 'vitest'
import { beamCandidates } from '../../specs/ops/beam_candidates.js'
import { peaks } from '../../specs/ops/row_parts.js'
import { greedy, greedyOfPeaks, sample } from '../../specs/ops/sample.js'
import { sampleNarrowed, sampleParts, weighParts } from '../../specs/ops/sample_parts.js'
import type { HostTensor } from '../../src/ir/evaluate.js'
import { runOp } from '../../src/lang/run.js'
import { plain, type Request } from '../../src/verify/probabilities.js'
import { numbers } from './sampling.js'

type Tensors = Readonly<Record<string, HostTensor>>

const scalar = (value: number): HostTensor => ({ shape: [1], data: [value] })
const rowOf = (data: readonly number[]): HostTensor => ({ shape: [1, data.length], data })
const ending = { step: scalar(3), finished: scalar(0), limit: scalar(1000), ends: { shape: [2], data: [5, 1] } }
const outcome = ({ words, finishedAfter }: Tensors) => [words?.data[0], finishedAfter?.data[0]]

const byPeaks = (logits: HostTensor, p: number) =>
  outcome(runOp(greedyOfPeaks, { ...runOp(peaks, { logits }, { dims: { p } }), ...ending }))

interface Draw extends Request {
  readonly seed: number
  readonly p: number
  readonly k: number
}

/** Parameters of a draw, for the ops that use them. */
function asked({ temperature, topK, topP, minP, seed }: Draw) {
  const seeded = { temperature: scalar(temperature), seedsLow: scalar(seed), seedsHigh: scalar(3), ...ending }
  return { seeded, narrowed: { ...seeded, topK: scalar(topK), topP: scalar(topP), minP: scalar(minP) } }
}

const whole = (logits: HostTensor, draw: Draw) => outcome(runOp(sample, { logits, ...asked(draw).narrowed }))

function byParts(logits: HostTensor, draw: Draw) {
  const { seeded } = asked(draw)
  const parts = runOp(weighParts, { logits, temperature: seeded.temperature }, { dims: { p: draw.p } })
  return outcome(runOp(sampleParts, { logits, ...parts, ...seeded }))
}

/** @param change applied to the candidates; @param seen the logits that are searched if there are too few candidates */
function byCandidates(
  logits: HostTensor,
  draw: Draw,
  change: (values: readonly number[]) => readonly number[] = (v) => v,
  seen = logits,
) {
  const { p, k } = draw
  const { seeded, narrowed } = asked(draw)
  const parts = runOp(weighParts, { logits, temperature: seeded.temperature }, { dims: { p } })
  const { values } = runOp(beamCandidates, { logits }, { dims: { p, k } })
  const kept = change(Array.from(values?.data ?? []))
  const few = { values: rowOf(kept), ranked: { shape: [1, p, k], data: kept } }
  return outcome(runOp(sampleNarrowed, { logits: seen, ...parts, ...few, ...narrowed }))
}

const next = numbers(31)
const of = <T>(...values: readonly [T, ...T[]]): T => values[Math.floor(next() * values.length)] ?? values[0]

/** A row of 1 to 60 logits: some alike, some without a chance. */
const someLogits = (): HostTensor =>
  rowOf(
    Array.from({ length: 1 + Math.floor(next() * 60) }, () =>
      next() < 0.1 ? Number.NEGATIVE_INFINITY : next() < 0.2 ? of(1, 2, 3) : 10 * next() - 5,
    ),
  )

const hostile: readonly (readonly number[])[] = [
  [0, Number.NaN, 1],
  [Number.NaN],
  [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY],
  [1, Number.POSITIVE_INFINITY, 3],
  [...Array.from({ length: 20 }, () => -1), Number.NaN],
]

describe('by parts of any number', () => {
  it('the likeliest word is that of the whole row', () => {
    for (const logits of [...Array.from({ length: 200 }, someLogits), ...hostile.map(rowOf)])
      for (const p of [1, 3, 9])
        expect(byPeaks(logits, p), `${logits.data}`).toEqual(outcome(runOp(greedy, { logits, ...ending })))
  })

  it('draws that nothing narrows are those of the whole row', () => {
    for (const logits of [...Array.from({ length: 300 }, someLogits), ...hostile.map(rowOf)]) {
      const draw = { ...plain, temperature: of(0.3, 1, 2), seed: Math.floor(next() * 1e6), p: of(1, 2, 5), k: 1 }
      expect(byParts(logits, draw), `${logits.data}`).toEqual(whole(logits, draw))
    }
  })

  it('so do narrowed draws, if the candidates are all that remains or not', () => {
    for (const logits of [...Array.from({ length: 600 }, someLogits), ...hostile.map(rowOf)]) {
      const narrowing = { topK: of(0, 1, 3, 20), topP: of(1, 0.3, 0.613, 0.907), minP: of(0, 0, 0.02, 0.3) }
      const rest = { temperature: of(0.3, 1, 2), seed: Math.floor(next() * 1e6), p: of(1, 2, 5), k: of(1, 4, 16) }
      const draw = { ...narrowing, ...rest }
      expect(byCandidates(logits, draw), JSON.stringify({ draw, logits: logits.data })).toEqual(whole(logits, draw))
    }
  })
})

describe('candidates', () => {
  /** Two parts of eight tokens; those of the second have hardly a chance. */
  const logits = rowOf([9, 8.5, 8, 7, 3, 2, 1, 0, -9, -8, -9, -8, -9, -8, -9, -8])
  const draw = { ...plain, topP: 0.9, p: 2, k: 4 }
  const seeds = Array.from({ length: 40 }, (_, seed) => seed)

  it('are the only ones considered if they are all that remains', () => {
    // A value that is likely in the row, but not among the candidates, is found when the row is searched.
    const changed = rowOf(Array.from(logits.data, (x, i) => (i === 15 ? 9 : x)))
    for (const seed of seeds)
      expect(byCandidates(logits, { ...draw, seed }, undefined, changed)).toEqual(whole(logits, { ...draw, seed }))
    const few = { ...draw, k: 1 }
    const words = seeds.map((seed) => byCandidates(logits, { ...few, seed }, undefined, changed)[0])
    expect(words).toContain(15)
  })

  it('that are mistaken for all words of their parts draw others', () => {
    const wide = { ...draw, topP: 0.999, k: 2 }
    const claimed = (values: readonly number[]) => values.map((x, i) => (i % 2 === 1 ? Number.NEGATIVE_INFINITY : x))
    const words = (change?: typeof claimed) => seeds.map((seed) => byCandidates(logits, { ...wide, seed }, change)[0])
    const right = seeds.map((seed) => whole(logits, { ...wide, seed })[0])
    expect(words()).toEqual(right)
    expect(words(claimed)).not.toEqual(right)
  })
})
