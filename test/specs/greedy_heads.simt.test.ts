/**
 * Heads that choose words, on the simt device: words and ends are those of stored logits, with ties, NaN, infinities and finished rows; losses are within
 * the tolerance of a reduction. The last of equals, which the head must not choose, is another word.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { biasedLanguageModelHead } from '../../specs/graphs/decoder.js'
import { greedyHeads } from '../../specs/graphs/greedy_heads.js'
import { greedy } from '../../specs/ops/sample.js'
import { wordLoss } from '../../specs/ops/token_loss.js'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { tolerance } from '../../src/verify/tolerance.js'
import { root } from '../conformance/simt.js'
import { noise } from '../models/fixtures.js'

const [v, k] = [77, 16]
const plan = 'best-decoder'

let device: Device
beforeAll(async () => {
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device?.close()
})

const next = noise(11)
/** Small integers. */
const whole = (count: number): number[] => Array.from({ length: count }, () => Math.round(2 * next()))

/** Weights with a bias, or one that leaves no word. Every word but the last has an equal. */
function weightsOf(bias: number) {
  const [words, biases] = [whole(Math.floor(v / 2) * k), whole(Math.floor(v / 2))]
  return {
    weight: tensor('f32', [v, k], [...words, ...words, ...Array.from({ length: k }, () => 0)]),
    bias: tensor(
      'f32',
      [v],
      [...biases, ...biases, -100].map((value) => value + bias),
    ),
  }
}

/** Inputs of rows: one is NaN, one infinite, one has finished, and one is at its last word. */
function inputsOf(rows: number) {
  const x = whole(rows * k)
  x[k] = Number.NaN
  x[2 * k + 1] = Number.POSITIVE_INFINITY
  const flags = (at: number, value: number, others: number) => Array.from({ length: rows }, (_, r) => (r === at ? value : others))
  return {
    x: tensor('f32', [rows, k], x),
    step: tensor('i32', [1], [3]),
    finished: tensor('i32', [rows], flags(3, 1, 0)),
    limit: tensor('i32', [rows], flags(4, 4, 100)),
    ends: tensor('i32', [2], [5, 70]),
  }
}

/** Dimensions of a decoder whose rows have k elements. */
const dimsOf = (rows: number) => ({ b: rows, w: 1, h: 1, d: k })

async function both(rows: number, bias: number) {
  const weights = weightsOf(bias)
  const { x, ...ending } = inputsOf(rows)
  const of = { plan, weights, dims: dimsOf(rows) }
  const head = await (await device.load(biasedLanguageModelHead, of)).run({ x })
  const logits = tensor('f32', [rows, v], toNumbers(head.logits))
  const stored = await device.call(greedy, { logits, ...ending })
  const { y: losses } = await device.call(wordLoss, { logits, words: tensor('i32', [rows], toNumbers(stored.words)) })
  const words = await (await device.load(greedyHeads.words.biased, of)).run({ x, ...ending })
  const lost = await (await device.load(greedyHeads.losses.biased, of)).run({ x, ...ending })
  return { logits, stored, losses, words, lost }
}

describe.each([5, 12, 40])('a head of %i rows', (rows) => {
  it('chooses the words of stored logits', async () => {
    const { stored, losses, words, lost, logits } = await both(rows, 0)
    for (const { words: chosen, finished } of [words, lost]) {
      expect(chosen.data).toEqual(stored.words.data)
      expect(finished.data).toEqual(stored.finishedAfter.data)
    }
    const bound = tolerance({ dtype: 'f32', class: 'reduction', length: v })
    expect(compare(toNumbers(lost.loss), toNumbers(losses), bound, 'equals')).toMatchObject({ passed: true })
    const last = Array.from({ length: rows }, (_, r) => {
      const row = Array.from(logits.data).slice(r * v, (r + 1) * v)
      return row.lastIndexOf(Math.max(...row))
    })
    expect(last.some((word, r) => word !== stored.words.data[r] && (r === 0 || r > 3))).toBe(true)
  })

  it('has no word where none is left', async () => {
    const { stored, words } = await both(rows, Number.NEGATIVE_INFINITY)
    expect(Array.from(words.words.data).filter((_, r) => r !== 3)).toEqual(Array.from({ length: rows - 1 }, () => -1))
    expect(words.words.data).toEqual(stored.words.data)
    expect(words.finished.data).toEqual(stored.finishedAfter.data)
  })
})
