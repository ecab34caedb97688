/**
 * The pipeline of a LLaMA-like model: a model folder becomes an object that continues texts and says how likely they are. Prompts of a batch
 * may have any lengths. What a batch needs on the device is made for each shape and kept while shapes recur.
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
import { heldPrefixes } from './prefix.js'
import { assemblePrompt, assembleSteps, formOf, withCaches } from './programs.js'
import { beamResults, type Chosen, joined, type LlamaResult, newTokens, resultOf, textsOf } from './results.js'
import { firstSegment, nextBeamSegment, nextSegment, type RopeSegment } from './rope_segments.js'
import { openRows, type Rows } from './rows.js'
import { checkPlaces, type Score, scoreRows } from './score.js'
import { batchesOf, checkCapacity, checkInvariant, limited, type RowsShape, shapeOf } from './shapes.js'
import { startStates } from './start.js'
import { llamaInt8, llamaWeights, reachesOf, rotations, usualRotation } from './weights.js'

/** Legs that run together. */
interface SegmentsRun {
  readonly rows: Rows
  readonly generation: Generation
  readonly legs: readonly RopeSegment[]
  readonly prompts: readonly (readonly number[])[]
  /** What each has chosen, none where beams do. */
  words: readonly Chosen[]
  /** Where beams go on behind this. */
  next: readonly RopeSegment[]
}

/** Shapes whose states are kept. */
const keptShapes = 4
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
  const applications = reachesOf(config).flatMap((reach) => [
    ...assemblePrompt(config, plan, 'logits', reach).wired.applications,
    ...assembleSteps(config, plan, anyGeneration, 1, reach).wired.applications,
  ])
  if (multipliesInt8({ applications })) expectInt8(device.info(), plan.name)
  expectPlanTypes(plan.name, applications, { T: dtype }, manifest)
  // Int8 weights are made of the checkpoint's numbers, which storage in half precision would round before.
  const exact = dtype === 'f32' ? weights : llamaWeights(config, checkpoint, 'f32', rotation)
  const int8 = llamaInt8(config, checkpoint)
  const made =
    options.smooth === undefined
      ? { weights, exact }
      : await smoothed(config, { applications, plan: plan.name, dtype, ...options.smooth }, { weights, exact }, signal)
  const prepared = prepareWeights(applications, made.weights, layouts, made.exact, { stored: int8 })
  const session = await openSession({ device, library, manifest, layouts, weights: prepared }, signal)

  const kept = releasingCache<Rows>(keptShapes)
  /** Where memory is short, the shapes that were kept make room: no run uses them now. */
  const rowsFor = (generation: Generation, shape: RowsShape): Promise<Rows> =>
    makingRoom(kept, `${formOf(generation)} ${JSON.stringify(shape)}`, () =>
      openRows({ session, config, plan, generation, shape, dtype }),
    )

  const prefixes = heldPrefixes()
  const turn = runQueue()

  /** Batches of prompts, each with its first tokens cached and the first step not yet taken. */
  async function* batches(cases: readonly TokenCase[], given: LlamaGenerateOptions) {
    expectOptions('generate', generateNames, given)
    const { batch = usualBatch, chunk = usualChunk, signal, progress } = given
    const done = await turn()
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
      for (let legs = waiting.shift(); legs !== undefined; legs = waiting.shift()) {
        signal?.throwIfAborted()
        const prompts = legs.map(({ prompt }) => prompt)
        await last?.idle()
        const rows = await rowsFor(generation, shapeOf(config, legs, generation, given))
        const { pass = 1 } = rows.shape
        const found = prefixes.take(rows, prompts).map((tokens) => tokens - (tokens % pass))
        const carried = legs[0]?.carried
        const cached = given.reuse === true && carried === undefined ? found : found.map(() => 0)
        given.reused?.(cached.reduce((sum, tokens) => sum + tokens, 0))
        await rows.read(
          // Beams of a sequence share what its first one reads, until they have texts of their own.
          (
            carried?.texts.map((ids, row) => ({ row, first: 0, ids: ids.slice(0, -1) })) ??
            prompts.map((ids, i) => ({ row: i * rows.shape.width, first: cached[i] ?? 0, ids: ids.slice(cached[i], -1) }))
          ).filter(({ ids }) => ids.length > 0),
          chunk,
          signal,
        )
        const [numbers, limits] = [legs.map(({ index }) => index), legs.map(({ limit }) => limit)]
        await rows.write(
          startStates(config, generation, rows.shape, { prompts, cases: numbers, limits, carried, chosen: legs[0]?.chosen ?? 0 }),
        )
        const run: SegmentsRun = { rows, generation, legs, prompts, words: [], next: [] }
        last = rows
        yield run
        const { words } = run
        const behind = legs.flatMap(
          (leg, row) => nextSegment(config, leg, words[row]?.ids ?? [], generation.maxNewTokens, config.eos) ?? [],
        )
        const next = [...run.next, ...behind]
        // Each by itself: they are seldom as many tokens into their texts.
        waiting.unshift(...next.map((leg) => [leg]))
        over += legs.length - next.length
        progress?.(over, cases.length)
      }
    } finally {
      // Results need not wait for steps that nobody wants any more, but the next run does: their memory may be given away.
      void Promise.resolve(last?.idle()).then(done)
    }
  }

  /**
   * The best of beams that have ended, by case; none of those that another leg goes on from. Their own tokens lie between those of others: of
   * the caches, the prompts are kept.
   */
  async function searched(run: SegmentsRun, choice: Beams): Promise<(LlamaResult & { readonly index: number })[]> {
    const { rows, legs, prompts, generation } = run
    const [most, cases] = [generation.maxNewTokens, legs.map(({ index }) => index)]
    for (const leg of legs.filter(({ limit }) => limit < most)) {
      const carried = await orForget(kept, carriedBeams(rows, choice, leg))
      if (carried === undefined) continue
      run.next = [nextBeamSegment(config, leg, carried, most)]
      return []
    }
    const found = await orForget(kept, beamResults(config, rows, choice, { most, cases }))
    prefixes.keep(rows, prompts, [])
    return found.map((result, i) => ({ ...result, index: cases[i] ?? 0 }))
  }

  /** Takes the steps of legs, and yields after each run how far they are. */
  function steps({ rows, legs, generation: { choice } }: SegmentsRun, signal: AbortSignal | undefined) {
    const most = Math.max(...legs.map(({ limit }) => limit))
    return runsAhead(rows, { from: legs[0]?.chosen ?? 0, most, whole: choice.kind === 'beams' }, signal)
  }

  /** What legs have chosen so far, which their caches hold now; but steps cache no bit like passes. */
  async function chosen({ rows, legs, prompts }: SegmentsRun, reached: Reached): Promise<Chosen[]> {
    const texts = await orForget(kept, (async () => textsOf(config, rows.shape, legs, reached))())
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
        for (const [row, { index }] of run.legs.entries()) texts[index] = joined(texts[index], run.words[row] ?? { ids: [] })
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
          yield* newTokens(run.legs, run.words, { eos: config.eos, maxNewTokens }, sent)
        }
        if (choice.kind !== 'beams') continue
        for (const { index, ids, finish } of await searched(run, choice)) yield { index, ids, finish }
      }
    },
    async score(cases, given = {}) {
      expectOptions('score', scoreNames, given)
      const { batch = usualBatch, chunk = usualScoredChunk, places = [], signal, progress } = given
      const done = await turn()
      try {
        checkCases({ ...config, continued: true }, cases, batch)
        expectPositive('chunk', chunk)
        checkPlaces(cases, places)
        checkInvariant(config, cases, given, 0)
        const scores: Score[] = []
        const all = cases.map(({ inputIds }, at) => firstSegment(config, at, inputIds, undefined))
        for (const legs of batchesOf(all, { most: Math.min(batch, given.invariant ?? batch) })) {
          signal?.throwIfAborted()
          const [texts, first] = [legs.map(({ prompt }) => prompt), scores.length]
          const rows = await rowsFor(anyGeneration, shapeOf(config, legs, undefined, given))
          prefixes.take(rows, texts)
          scores.push(...(await orForget(kept, scoreRows(rows, texts, { chunk, places, first, vocab: config.vocab }, signal))))
          progress?.(scores.length, cases.length)
        }
        return scores
      } finally {
        done()
      }
    },
    release() {
      void kept.clear()
      session.release()
    },
  }
}
