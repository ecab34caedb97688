/**
 * Batches of RoPE segments on an open model. Each batch is read into the caches of rows, decoded by the caller, and followed by the segments
 * that continue its texts. Runs share rows and cached prefixes, so they are serialised.
 */
import { type Beams, type Generation, resolveGeneration } from '../decoding/generation_options.js'
import { expectOptions } from '../parts/known_options.js'
import { type Cache, makingRoom, releasingCache } from '../parts/lru_cache.js'
import { orForget } from '../parts/no_numbers.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, expectPositive, type TokenCase } from '../parts/token_cases.js'
import { type Reached, runsAhead } from './ahead.js'
import { carriedBeams } from './beam_segments.js'
import type { LlamaConfig } from './config.js'
import { generateNames, type LlamaGenerateOptions } from './llama_types.js'
import type { OpenModel } from './open_model.js'
import type { Unread } from './passes.js'
import { type PrefixCache, prefixCache } from './prefix.js'
import { formOf } from './programs.js'
import { beamResults, type Chosen, type LlamaResult, textsOf } from './results.js'
import { firstSegment, nextBeamSegment, nextSegment, type RopeSegment } from './rope_segments.js'
import { openRows, type Rows } from './rows.js'
import { batchesOf, checkCapacity, checkInvariant, limited, type RowsShape, shapeOf } from './shapes.js'
import { startStates } from './start.js'

/** State shared by the runs of a model. */
export interface SharedRows {
  readonly config: LlamaConfig
  readonly cache: Cache<Rows>
  /** Rows of a shape, from the cache or newly made. Cached shapes are evicted if memory is short: no run uses them then. */
  rowsFor(generation: Generation, shape: RowsShape): Promise<Rows>
  readonly prefixes: PrefixCache
  /** Waits for earlier runs, and returns the function that lets the next run begin. */
  nextRun(): Promise<() => void>
}

/** Segments that run as a batch. */
export interface SegmentsRun {
  readonly rows: Rows
  readonly generation: Generation
  readonly segments: readonly RopeSegment[]
  readonly prompts: readonly (readonly number[])[]
  /** Tokens that each segment has chosen; empty for beams. Set by the caller. */
  words: readonly Chosen[]
  /** Segments in which beams continue after this one. */
  next: readonly RopeSegment[]
}

/** Number of cached shapes. */
const cachedShapes = 4
export const usualBatch = 8
export const usualChunk = 2048

export function sharedRows({ session, config, plan, dtype }: OpenModel): SharedRows {
  const cache = releasingCache<Rows>(cachedShapes)
  return {
    config,
    cache,
    rowsFor: (generation, shape) =>
      makingRoom(cache, `${formOf(generation)} ${JSON.stringify(shape)}`, () =>
        openRows({ session, config, plan, generation, shape, dtype }),
      ),
    prefixes: prefixCache(),
    nextRun: runQueue(),
  }
}

/** Batches of prompts, each read into the caches except for its last token, before the first step. */
export async function* segmentRuns(
  shared: SharedRows,
  cases: readonly TokenCase[],
  given: LlamaGenerateOptions,
): AsyncGenerator<SegmentsRun, void> {
  expectOptions('generate', generateNames, given)
  const { signal, progress } = given
  const done = await shared.nextRun()
  let last: Rows | undefined
  try {
    const { generation, waiting } = plannedBatches(shared.config, cases, given)
    let over = 0
    for (let segments = waiting.shift(); segments !== undefined; segments = waiting.shift()) {
      signal?.throwIfAborted()
      await last?.idle()
      const run = await readSegments(shared, generation, segments, given)
      last = run.rows
      yield run
      const next = [...run.next, ...followingSegments(shared.config, run)]
      // Each runs alone: they have seldom generated equally many tokens.
      waiting.unshift(...next.map((segment) => [segment]))
      over += segments.length - next.length
      progress?.(over, cases.length)
    }
  } finally {
    // Results need not wait for steps that are no longer needed, but the next run must, because it may reuse their memory.
    void Promise.resolve(last?.idle()).then(done)
  }
}

/** Checks the cases and options of a run. @returns the resolved generation and the batches of first segments */
function plannedBatches(config: LlamaConfig, cases: readonly TokenCase[], given: LlamaGenerateOptions) {
  const { batch = usualBatch, chunk = usualChunk, invariant } = given
  checkCases({ ...config, continued: true }, cases, batch)
  expectPositive('chunk', chunk)
  const { vocab, positions } = config
  const limits = { vocab, positions, cases: cases.length, endTokens: config.eos }
  const generation = resolveGeneration(limited(config, cases, given), limits)
  checkCapacity(config, cases, generation, given.capacity)
  checkInvariant(config, cases, given, generation.maxNewTokens)
  const segments = cases.map(({ inputIds }, at) => firstSegment(config, at, inputIds, generation))
  const waiting = batchesOf(segments, { most: Math.min(batch, invariant ?? batch), generation, invariant })
  return { generation, waiting }
}

/** Reads the prompts of segments into rows, and writes the states that their steps begin with. */
async function readSegments(
  { config, rowsFor, prefixes }: SharedRows,
  generation: Generation,
  segments: readonly RopeSegment[],
  given: LlamaGenerateOptions,
): Promise<SegmentsRun> {
  const prompts = segments.map(({ prompt }) => prompt)
  const rows = await rowsFor(generation, shapeOf(config, segments, generation, given))
  const { pass = 1, width } = rows.shape
  const found = prefixes.take(rows, prompts).map((tokens) => tokens - (tokens % pass))
  const { carried, chosen = 0 } = segments[0] ?? {}
  const cached = given.reuse === true && carried === undefined ? found : found.map(() => 0)
  given.reused?.(cached.reduce((sum, tokens) => sum + tokens, 0))
  // Beams of a sequence share the cached prompt of its first row until their texts differ.
  const unread: readonly Unread[] =
    carried?.texts.map((ids, row) => ({ row, first: 0, ids: ids.slice(0, -1) })) ??
    prompts.map((ids, i) => ({ row: i * width, first: cached[i] ?? 0, ids: ids.slice(cached[i], -1) }))
  await rows.read(
    unread.filter(({ ids }) => ids.length > 0),
    given.chunk ?? usualChunk,
    given.signal,
  )
  const [numbers, limits] = [segments.map(({ index }) => index), segments.map(({ limit }) => limit)]
  await rows.write(startStates(config, generation, rows.shape, { prompts, cases: numbers, limits, carried, chosen }))
  return { rows, generation, segments, prompts, words: [], next: [] }
}

/** Segments that continue the texts of a run, except for beams. */
const followingSegments = (config: LlamaConfig, { segments, words, generation }: SegmentsRun): RopeSegment[] =>
  segments.flatMap(
    (segment, row) => nextSegment(config, segment, words[row]?.ids ?? [], generation.maxNewTokens, config.eos) ?? [],
  )

/** Takes the steps of segments, and yields their progress after each run. */
export function stepsOf(
  { rows, segments, generation: { choice } }: SegmentsRun,
  signal: AbortSignal | undefined,
): AsyncGenerator<Reached, void> {
  const most = Math.max(...segments.map(({ limit }) => limit))
  return runsAhead(rows, { from: segments[0]?.chosen ?? 0, most, whole: choice.kind === 'beams' }, signal)
}

/**
 * The best beams of a finished search, by case; none if another segment continues the search. Tokens of different beams are mixed in the
 * caches, so only the prompts stay reusable.
 */
export async function searched(
  { config, cache, prefixes }: SharedRows,
  run: SegmentsRun,
  choice: Beams,
): Promise<(LlamaResult & { readonly index: number })[]> {
  const { rows, segments, prompts, generation } = run
  const [most, cases] = [generation.maxNewTokens, segments.map(({ index }) => index)]
  for (const segment of segments.filter(({ limit }) => limit < most)) {
    const carried = await orForget(cache, carriedBeams(rows, choice, { ...segment, logprobs: generation.logprobs }))
    if (carried === undefined) continue
    run.next = [nextBeamSegment(config, segment, carried, most)]
    return []
  }
  const found = await orForget(cache, beamResults(config, rows, choice, { most, cases, logprobs: generation.logprobs }))
  prefixes.keep(rows, prompts, [])
  return found.map((result, i) => ({ ...result, index: cases[i] ?? 0 }))
}

/**
 * Tokens that segments have chosen so far, which their caches hold now. In invariant runs only the prompts stay reusable: steps do not
 * cache bit-identically to passes.
 */
export async function chosenBy(
  { config, cache, prefixes }: SharedRows,
  { rows, segments, prompts }: SegmentsRun,
  reached: Reached,
): Promise<Chosen[]> {
  const texts = await orForget(cache, (async () => textsOf(config, rows.shape, segments, reached))())
  prefixes.keep(rows, prompts, rows.shape.pass === undefined ? texts.map(({ ids }) => ids) : [])
  return texts
}
