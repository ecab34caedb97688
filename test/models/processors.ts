/**
 * The processors of Hugging Face's `generate` written out in double precision over lists of ids, in its order. Greedy and draws change logits
 * by them, its beams log-probabilities, which are not normalised again.
 */
import type { LogitOptions } from '../../src/models/decoding/logit_changes.js'
import type { Model } from './beam_search.js'

export interface Processed extends LogitOptions {
  /** Ids before the first that is generated: the start token of a decoder, or a prompt. */
  readonly start: readonly number[]
  readonly ends: readonly number[]
  /** Tokens that the model never generates. */
  readonly banned?: readonly number[]
  readonly maxNewTokens: number
}

const only = (scores: readonly number[], ids: readonly number[]): number[] =>
  scores.map((_, id) => (ids.includes(id) ? 0 : Number.NEGATIVE_INFINITY))

const without = (scores: readonly number[], ids: readonly number[]): number[] =>
  scores.map((score, id) => (ids.includes(id) ? Number.NEGATIVE_INFINITY : score))

/** Tokens that would repeat `size` tokens of a text. */
const repeating = (text: readonly number[], size: number): number[] =>
  text.filter((_, i) => {
    if (size === 0 || i < size - 1) return false
    const before = text.slice(i - size + 1, i)
    return before.every((id, j) => id === text[text.length - size + 1 + j])
  })

/** Scores after the generated ids, with all requested processors. */
export function changedScores(given: readonly number[], generated: readonly number[], asked: Processed): readonly number[] {
  const { start, ends, maxNewTokens, repetitionPenalty: penalty = 1, noRepeatNgramSize = 0, minNewTokens = 0 } = asked
  const { banned = [], forcedBosTokenId: first, forcedEosTokenId: last } = asked
  const all = [...start, ...generated]
  const penalised = (score: number): number => (score < 0 ? score * penalty : score / penalty)
  let scores: readonly number[] = given.map((score, id) => (all.includes(id) ? penalised(score) : score))
  scores = without(scores, [...repeating(all, noRepeatNgramSize), ...banned])
  if (generated.length < minNewTokens) scores = without(scores, ends)
  if (first !== undefined && all.length === 1) scores = only(scores, [first])
  if (last !== undefined && generated.length === maxNewTokens - 1) scores = only(scores, [last].flat())
  return scores
}

/** A model whose logits are changed. */
export const changedModel =
  (model: Model, asked: Processed): Model =>
  (ids) =>
    changedScores(model(ids), ids, asked)

/** Greedy ids, before an end. */
export function greedyIds(model: Model, asked: Processed): readonly number[] {
  let ids: readonly number[] = []
  while (ids.length < asked.maxNewTokens) {
    const scores = changedScores(model(ids), ids, asked)
    const next = scores.indexOf(Math.max(...scores))
    if (asked.ends.includes(next)) break
    ids = [...ids, next]
  }
  return ids
}
