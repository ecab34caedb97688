/**
 * Pipeline of a LLaMA-like model: loads a model folder into an object that continues and scores texts. Prompts of a batch may have any
 * lengths. Device programs and states are made per shape and cached while shapes recur.
 */
import { layouts } from '../../../specs/index.js'
import { expectFloatType } from '../../checkpoint/convert.js'
import { usageError } from '../../errors.js'
import { defaultPlan, findPlan } from '../../program/plans.js'
import { expectPlanTypes } from '../../runtime/plan_types.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { openSession } from '../../runtime/session.js'
import { anyGeneration, type Beams, type Generation, resolveGeneration } from '../decoding/generation_options.js'
import { expectInt8, multipliesInt8 } from '../parts/int8_device.js'
import { expectOptions } from '../parts/known_options.js'
import { makingRoom, releasingCache } from '../parts/lru_cache.js'
import { orForget } from '../parts/no_numbers.js'
import { runQueue } from '../parts/run_queue.js'
import { checkCases, expectPositive, type TokenCase } from '../parts/token_cases.js'
import { type Reached, runsAhead } from './ahead.js'
import { carriedBeams } from './beam_segments.js'
import { smoothed } from './calibration.js'
import { generateNames, type Llama, type LlamaGenerateOptions, type LlamaOptions, scoreNames } from './llama_types.js'
import { openLlamaFiles } from './open_files.js'
import { prefixCache } from './prefix.js'
import { assemblePrompt, assembleSteps, formOf, withCaches } from './programs.js'
import { beamResults, type Chosen, joined, type LlamaResult, newTokens, resultOf, textsOf } from './results.js'
import { firstSegment, nextBeamSegment, nextSegment, type RopeSegment } from './rope_segments.js'
import { openRows, type Rows } from './rows.js'
import { checkPlaces, type Score, scoreRows } from './score.js'
import { batchesOf, checkCapacity, checkInvariant, limited, type RowsShape, shapeOf } from './shapes.js'
import { startStates } from './start.js'
import { llamaInt8, llamaWeights, ropeRangesOf, rotations, usualRotation } from './weights.js'

/** Segments that run as a batch. */
interface SegmentsRun {
  readonly rows: Rows
  readonly generation: Generation
  readonly segments: readonly RopeSegment[]
  readonly prompts: readonly (readonly number[])[]
  /** Tokens that each segment has chosen; empty for beams. */
  words: readonly Chosen[]
  /** Segments in which beams continue after this one. */
  next: readonly RopeSegment[]
}

/** Number of cached shapes. */
const cachedShapes = 4
const usualBatch = 8
export const usualChunk = 2048
const usualScoredChunk = 512

/**
 * Loads a LLaMA-like model: a folder, or one GGUF file.
 * @throws finding `weights.value`; usage `config.*`, `safetensors.*`, `checkpoint.*`, `weights.*`, `plan.*`, `run.dtype`; what the device rejects with
 */
export async function loadLlama(dir: string, options: LlamaOptions): Promise<Llama> {
  const { device, library, manifest, dtype = 'f32', rotation = usualRotation, signal } = options
  const plan = findPlan(options.plan ?? defaultPlan, manifest.plans)
  expectFloatType(dtype)
  if (!rotations.includes(rotation)) {
    throw usageError('run.rotation', `unknown rotation ${JSON.stringify(rotation)}`, { hint: `known: ${rotations.join(', ')}` })
  }
  const { config: stored, checkpoint } = await openLlamaFiles(dir, signal)
  const config = withCaches(stored, options.caches ?? 'float')
  const weights = llamaWeights(config, checkpoint, dtype, rotation)
  const applications = ropeRangesOf(config).flatMap((ropeRange) => [
    ...assemblePrompt(config, plan, 'logits', ropeRange).wired.applications,
    ...assembleSteps(config, plan, anyGeneration, 1, ropeRange).wired.applications,
  ])
  if (multipliesInt8({ applications })) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  // Int8 weights are made from the checkpoint's numbers, without rounding them to half precision first.
  const exact = dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', rotation)
  const int8 = llamaInt8(config, checkpoint)
  const made =
    options.smooth === undefined
      ? { weights, exact }
      : await smoothed(config, { applications, plan: plan.name, dtype, ...options.smooth }, { weights, exact }, signal)
  const prepared = prepareWeights(applications, made.weights, layouts, made.exact, { stored: int8 })
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)

  const rowsCache = releasingCache<Rows>(cachedShapes)
  /** Cached shapes are evicted if memory is short: no run uses them now. */
  const rowsFor = (generation: Generation, shape: RowsShape): Promise<Rows> =>
    makingRoom(rowsCache, `${formOf(generation)} ${JSON.stringify(shape)}`, () =>
      openRows({ session, config, plan, generation, shape, dtype }),
    )

  const prefixes = prefixCache()
  const nextRun = runQueue()

  /** Batches of prompts, each read into the caches except for its last token, before the first step. */
  async function* batches(cases: readonly TokenCase[], given: LlamaGenerateOptions) {
    expectOptions('generate', generateNames, given)
    const { batch = usualBatch, chunk = usualChunk, signal, progress } = given
    const done = await nextRun()
    let last: Rows | undefined
    try {
      checkCases({ ...config, continued: true }, cases, batch)
      expectPositive('chunk', chunk)
      const { vocab, positions } = config
      const limits = { vocab, positions, cases: cases.length, endTokens: config.eos }
      const generation = resolveGeneration(limited(config, cases, given), limits)
      checkCapacity(config, cases, generation, given.capacity)
      checkInvariant(config, cases, given, generation.maxNewTokens)
      const most = Math.min(batch, given.invariant ?? batch)
      const waiting = batchesOf(
        cases.map(({ inputIds }, at) => firstSegment(config, at, inputIds, generation)),
        { most, generation, invariant: given.invariant },
      )
      let over = 0
      for (let segments = waiting.shift(); segments !== undefined; segments = waiting.shift()) {
        signal?.throwIfAborted()
        const prompts = segments.map(({ prompt }) => prompt)
        await last?.idle()
        const rows = await rowsFor(generation, shapeOf(config, segments, generation, given))
        const { pass = 1 } = rows.shape
        const found = prefixes.take(rows, prompts).map((tokens) => tokens - (tokens % pass))
        const carried = segments[0]?.carried
        const cached = given.reuse === true && carried === undefined ? found : found.map(() => 0)
        given.reused?.(cached.reduce((sum, tokens) => sum + tokens, 0))
        await rows.read(
          // Beams of a sequence share the cached prompt of its first row until their texts differ.
          (
            carried?.texts.map((ids, row) => ({ row, first: 0, ids: ids.slice(0, -1) })) ??
            prompts.map((ids, i) => ({ row: i * rows.shape.width, first: cached[i] ?? 0, ids: ids.slice(cached[i], -1) }))
          ).filter(({ ids }) => ids.length > 0),
          chunk,
          signal,
        )
        const [numbers, limits] = [segments.map(({ index }) => index), segments.map(({ limit }) => limit)]
        await rows.write(
          startStates(config, generation, rows.shape, {
            prompts,
            cases: numbers,
            limits,
            carried,
            chosen: segments[0]?.chosen ?? 0,
          }),
        )
        const run: SegmentsRun = { rows, generation, segments, prompts, words: [], next: [] }
        last = rows
        yield run
        const { words } = run
        const following = segments.flatMap(
          (segment, row) => nextSegment(config, segment, words[row]?.ids ?? [], generation.maxNewTokens, config.eos) ?? [],
        )
        const next = [...run.next, ...following]
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

  /**
   * The best beams of a finished search, by case; none if another segment continues the search. Tokens of different beams are mixed in the
   * caches, so only the prompts stay reusable.
   */
  async function searched(run: SegmentsRun, choice: Beams): Promise<(LlamaResult & { readonly index: number })[]> {
    const { rows, segments, prompts, generation } = run
    const [most, cases] = [generation.maxNewTokens, segments.map(({ index }) => index)]
    for (const segment of segments.filter(({ limit }) => limit < most)) {
      const carried = await orForget(rowsCache, carriedBeams(rows, choice, segment))
      if (carried === undefined) continue
      run.next = [nextBeamSegment(config, segment, carried, most)]
      return []
    }
    const found = await orForget(rowsCache, beamResults(config, rows, choice, { most, cases }))
    prefixes.keep(rows, prompts, [])
    return found.map((result, i) => ({ ...result, index: cases[i] ?? 0 }))
  }

  /** Takes the steps of segments, and yields their progress after each run. */
  function steps({ rows, segments, generation: { choice } }: SegmentsRun, signal: AbortSignal | undefined) {
    const most = Math.max(...segments.map(({ limit }) => limit))
    return runsAhead(rows, { from: segments[0]?.chosen ?? 0, most, whole: choice.kind === 'beams' }, signal)
  }

  /**
   * Tokens that segments have chosen so far, which their caches hold now. In invariant runs only the prompts stay reusable: steps do not
   * cache bit-identically to passes.
   */
  async function chosen({ rows, segments, prompts }: SegmentsRun, reached: Reached): Promise<Chosen[]> {
    const texts = await orForget(rowsCache, (async () => textsOf(config, rows.shape, segments, reached))())
    prefixes.keep(rows, prompts, rows.shape.pass === undefined ? texts.map(({ ids }) => ids) : [])
    return texts
  }

  return {
    config,
    dtype,
    plan: plan.name,
    rotation,
    weightBytes: session.weightBytes,
    async generate(cases, given = {}) {
      const texts: Chosen[] = []
      const searches: LlamaResult[] = []
      for await (const run of batches(cases, given)) {
        let last: Reached = { step: 0, history: new Int32Array() }
        for await (const reached of steps(run, given.signal)) last = reached
        const { choice } = run.generation
        if (choice.kind === 'beams') {
          for (const { index, ...result } of await searched(run, choice)) searches[index] = result
          continue
        }
        run.words = await chosen(run, last)
        for (const [row, { index }] of run.segments.entries()) texts[index] = joined(texts[index], run.words[row] ?? { ids: [] })
      }
      return searches.length > 0 ? searches : texts.map((text) => resultOf(text, config.eos))
    },
    async *stream(cases, given = {}) {
      const sent: number[] = []
      for await (const run of batches(cases, given)) {
        const { maxNewTokens, choice } = run.generation
        for await (const reached of steps(run, given.signal)) {
          if (choice.kind === 'beams') continue
          run.words = await chosen(run, reached)
          yield* newTokens(run.segments, run.words, { eos: config.eos, maxNewTokens }, sent)
        }
        if (choice.kind !== 'beams') continue
        for (const { index, ids, finish } of await searched(run, choice)) yield { index, ids, finish }
      }
    },
    async score(cases, given = {}) {
      expectOptions('score', scoreNames, given)
      const { batch = usualBatch, chunk = usualScoredChunk, places = [], signal, progress } = given
      const done = await nextRun()
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
          const rows = await rowsFor(anyGeneration, shapeOf(config, segments, undefined, given))
          prefixes.take(rows, texts)
          scores.push(
            ...(await orForget(rowsCache, scoreRows(rows, texts, { chunk, places, first, vocab: config.vocab }, signal))),
          )
          progress?.(scores.length, cases.length)
        }
        return scores
      } finally {
        done()
      }
    },
    release() {
      void rowsCache.clear()
      session.release()
    },
  }
}
