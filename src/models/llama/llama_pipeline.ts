/**
 * Pipeline of a LLaMA-like model: loads a model folder into an object that continues and scores texts. Prompts of a batch may have any
 * lengths. Device programs and states are made per shape and cached while shapes recur.
 */
import { anyGeneration } from '../decoding/generation_options.js'
import { expectOptions } from '../parts/known_options.js'
import { orForget } from '../parts/no_numbers.js'
import { checkCases, expectPositive, type TokenCase } from '../parts/token_cases.js'
import type { Reached } from './ahead.js'
import { type Llama, type LlamaGenerateOptions, type LlamaOptions, type ScoreOptions, scoreNames } from './llama_types.js'
import { openModel } from './open_model.js'
import { type Chosen, joined, type LlamaResult, type LlamaTokens, newTokens, resultOf } from './results.js'
import { firstSegment } from './rope_segments.js'
import { checkPlaces, type Score, scoreRows } from './score.js'
import { chosenBy, type SharedRows, searched, segmentRuns, sharedRows, stepsOf, usualBatch } from './segment_runs.js'
import { batchesOf, checkInvariant, shapeOf } from './shapes.js'

export { usualChunk } from './segment_runs.js'

const usualScoredChunk = 512

/**
 * Loads a LLaMA-like model: a folder, or one GGUF file.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.*`, `run.dtype`; what the device
 * rejects with
 */
export async function loadLlama(dir: string, options: LlamaOptions): Promise<Llama> {
  const model = await openModel(dir, options)
  const { session, config, plan, dtype, rotation } = model
  const shared = sharedRows(model)
  return {
    config,
    dtype,
    plan: plan.name,
    rotation,
    weightBytes: session.weightBytes,
    generate: (cases, given = {}) => generated(shared, cases, given),
    stream: (cases, given = {}) => streamed(shared, cases, given),
    score: (cases, given = {}) => scored(shared, cases, given),
    release() {
      void shared.cache.clear()
      session.release()
    },
  }
}

/** The text of each case, in order. */
async function generated(shared: SharedRows, cases: readonly TokenCase[], given: LlamaGenerateOptions): Promise<LlamaResult[]> {
  const texts: Chosen[] = []
  const searches: LlamaResult[] = []
  for await (const run of segmentRuns(shared, cases, given)) {
    let last: Reached = { step: 0, history: new Int32Array() }
    for await (const reached of stepsOf(run, given.signal)) last = reached
    const { choice } = run.generation
    if (choice.kind === 'beams') {
      for (const { index, ...result } of await searched(shared, run, choice)) searches[index] = result
      continue
    }
    run.words = await chosenBy(shared, run, last)
    for (const [row, { index }] of run.segments.entries()) texts[index] = joined(texts[index], run.words[row] ?? { ids: [] })
  }
  return searches.length > 0 ? searches : texts.map((text) => resultOf(text, shared.config.eos))
}

/** Tokens of the cases as they are chosen; results of beam search are returned complete. */
async function* streamed(
  shared: SharedRows,
  cases: readonly TokenCase[],
  given: LlamaGenerateOptions,
): AsyncGenerator<LlamaTokens, void> {
  const { eos } = shared.config
  const sent: number[] = []
  for await (const run of segmentRuns(shared, cases, given)) {
    const { maxNewTokens, choice } = run.generation
    for await (const reached of stepsOf(run, given.signal)) {
      if (choice.kind === 'beams') continue
      run.words = await chosenBy(shared, run, reached)
      yield* newTokens(run.segments, run.words, { eos, maxNewTokens }, sent)
    }
    if (choice.kind !== 'beams') continue
    for (const { index, ids, finish } of await searched(shared, run, choice)) yield { index, ids, finish }
  }
}

/** The score of each case, in order. */
async function scored(shared: SharedRows, cases: readonly TokenCase[], given: ScoreOptions): Promise<Score[]> {
  expectOptions('score', scoreNames, given)
  const { config, cache, prefixes } = shared
  const { batch = usualBatch, chunk = usualScoredChunk, places = [], signal, progress } = given
  const done = await shared.nextRun()
  try {
    checkCases({ ...config, continued: true }, cases, batch)
    expectPositive('chunk', chunk)
    checkPlaces(cases, places)
    checkInvariant(config, cases, given, 0)
    const scores: Score[] = []
    const all = cases.map(({ inputIds }, at) => firstSegment(config, at, inputIds, undefined))
    for (const segments of batchesOf(all, { most: Math.min(batch, given.invariant ?? batch) })) {
      signal?.throwIfAborted()
      const [texts, first] = [segments.map(({ prompt }) => prompt), scores.length]
      const rows = await shared.rowsFor(anyGeneration, shapeOf(config, segments, undefined, given))
      prefixes.take(rows, texts)
      scores.push(...(await orForget(cache, scoreRows(rows, texts, { chunk, places, first, vocab: config.vocab }, signal))))
      progress?.(scores.length, cases.length)
    }
    return scores
  } finally {
    done()
  }
}
