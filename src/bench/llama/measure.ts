/**
 * Times LLaMA-like models from the perspective of a caller of the pipeline. Prompts are processed in its passes. Steps are whole iterations of its
 * loop: eight steps per replay, tokens chosen on the device, and a check for ended texts after each replay while the next one runs. Caches are filled
 * to the context by processing tokens. No text ends before its steps are done.
 */
import { usageError } from '../../errors.js'
import { runsAhead } from '../../models/llama/ahead.js'
import { usualChunk } from '../../models/llama/llama_pipeline.js'
import { firstSegment } from '../../models/llama/rope_segments.js'
import { openRows, type Rows } from '../../models/llama/rows.js'
import { capacityFor, checkInvariant, shapeOf, stepsPerRun } from '../../models/llama/shapes.js'
import { startStates } from '../../models/llama/start.js'
import type { Program } from '../../runtime/program.js'
import { integer, random } from '../../verify/random.js'
import type { Ceilings } from '../floor.js'
import { type Shape, shapeName } from '../result.js'
import { cacheOf } from '../rotation.js'
import { summarise } from '../statistics.js'
import { stepTimes } from '../step_times.js'
import { generationOf, type LlamaModelSource, openTimedModel, type TimedModel } from './model.js'
import type { LlamaPlanTimes, LlamaTimes } from './result.js'
import { cacheBytes, floorOf, promptWork, stepWork, weightBytes } from './work.js'

export interface LlamaBench extends LlamaModelSource {
  readonly ceilings: Ceilings | undefined
  readonly plans: readonly string[]
  /** Batch x context of steps. */
  readonly steps: readonly Shape[]
  /** Batch x tokens of prompts. */
  readonly prompts: readonly Shape[]
  /** Prompt tokens processed at a time; default: the pipeline's. */
  readonly chunk?: number | undefined
  /** Fixed number of rows of every computation, used or not, so that results are bitwise identical. */
  readonly invariant?: number | undefined
  /** Steps of a window, whose middle step has the requested context. A multiple of the steps of a replay. */
  readonly window: number
  /** Number of timed windows and of timed prompt passes. */
  readonly repeats: number
  /** Also times every kernel of a step, and of the first pass over prompts, separately. */
  readonly profile: boolean
}

export interface LlamaObserver {
  readonly onStage?: (stage: string) => void
  readonly onResult?: (times: LlamaTimes) => void
}

const warmup = 2

/** @throws usage `bench.shape`, `bench.window`, `plan.*`; environment `states.memory`, `device.*`; the signal's reason */
export async function benchLlama(bench: LlamaBench, observer: LlamaObserver = {}): Promise<LlamaPlanTimes[]> {
  check(bench)
  const results: LlamaPlanTimes[] = []
  for (const name of bench.plans) {
    observer.onStage?.(`loading the weights of ${name}`)
    const free = bench.device.info().memoryFreeBytes
    const model = await openTimedModel(bench, name)
    const { plan, products, loading } = model
    const times: LlamaTimes[] = []
    const timed: Timed = { bench, model, free, observer }
    const add = (result: LlamaTimes): void => {
      observer.onResult?.(result)
      times.push(result)
    }
    try {
      for (const shape of bench.steps) add(await timeSteps(timed, shape))
      for (const shape of bench.prompts) add(await timePrompts(timed, shape))
    } finally {
      model.session.release()
    }
    results.push({ plan: plan.name, products, loading, times })
  }
  return results
}

interface Timed {
  readonly bench: LlamaBench
  readonly model: TimedModel
  /** Free memory of the device before loading the weights. */
  readonly free: number
  readonly observer: LlamaObserver
}

/** Tokens in the caches at the begin and end of a window. */
const windowAround = (context: number, window: number) => {
  const first = Math.max(context - window / 2, 1)
  return { first, last: first + window }
}

function check({ config, steps, prompts, window, invariant }: LlamaBench): void {
  checkInvariant(config, [], { invariant }, 0)
  const large = [...steps, ...prompts].find(({ batch }) => batch > (invariant ?? batch))
  if (large !== undefined) {
    throw usageError('bench.invariant', `${shapeName(large)} does not fit into ${invariant} rows`)
  }
  if (window % stepsPerRun !== 0) {
    throw usageError('bench.window', `a window of ${window} steps is not a multiple of a replay`, {
      hint: `a replay has ${stepsPerRun} steps`,
    })
  }
  const longest = [...steps.map(({ seq }) => windowAround(seq, window).last), ...prompts.map(({ seq }) => seq + stepsPerRun)]
  const most = Math.max(...longest)
  if (most <= config.positions) return
  throw usageError('bench.shape', `texts of ${most} tokens are longer than the model's ${config.positions} positions`, {
    hint: `steps reach ${window / 2} positions beyond their context`,
  })
}

/** Rows of caches with room for these texts and `more` tokens. */
function openTimedRows(
  { bench: { config, dtype, invariant }, model: { session, plan } }: Timed,
  prompts: readonly (readonly number[])[],
  more: number,
) {
  const generation = generationOf(config, more)
  const places = Math.max(...prompts.map(({ length }) => length)) + more
  const capacity = invariant === undefined ? undefined : capacityFor(places, config.positions)
  const segments = prompts.map((prompt, index) => firstSegment(config, index, prompt, generation))
  const shape = shapeOf(config, segments, generation, { capacity, invariant })
  return openRows({ session, config, plan, generation, shape, dtype })
}

/** Random ids, different for each row. */
function idsOf({ vocab }: LlamaBench['config'], rows: number, length: number): number[][] {
  const next = random(`ids ${rows}x${length}`)
  return Array.from({ length: rows }, () => Array.from({ length }, () => integer(next, 0, vocab - 1)))
}

async function timeSteps(timed: Timed, shape: Shape): Promise<LlamaTimes> {
  const { bench, model, observer } = timed
  const { config, dtype, window, repeats, signal, chunk = usualChunk } = bench
  const { first } = windowAround(shape.seq, window)
  observer.onStage?.(`${model.plan.name}: filling caches of ${shapeName(shape)}`)
  const prompts = idsOf(config, shape.batch, first)
  const opened = performance.now()
  const rows = await openTimedRows(timed, prompts, window)
  const setup = performance.now() - opened
  try {
    const unread = prompts.map((ids, row) => ({ row, first: 0, ids: ids.slice(0, -1) }))
    await rows.read(
      unread.filter(({ ids }) => ids.length > 0),
      chunk,
      signal,
    )
    const begin = startStates(config, generationOf(config, window), rows.shape, { prompts, cases: prompts.map((_, row) => row) })
    observer.onStage?.(`${model.plan.name}: timing steps of ${shapeName(shape)}`)
    const samples: number[] = []
    for (let round = 0; round < repeats + warmup; round++) {
      await rows.write(begin)
      const began = performance.now()
      for await (const _ of runsAhead(rows, { from: 0, most: window, whole: true }, signal));
      if (round >= warmup) samples.push((performance.now() - began) / window)
    }
    const { begun } = rows.steps
    const replays: number[] = []
    for (let round = 0; round < repeats; round++) {
      signal?.throwIfAborted()
      await rows.write(begin)
      replays.push(...(await rows.steps.time(window / stepsPerRun, 0)))
    }
    await rows.write(begin)
    const profile = bench.profile ? stepTimes(rows.steps, await rows.steps.profile(1), stepsPerRun) : undefined
    const work = stepWork(config, dtype, model.products, shape.batch, shape.seq)
    const cache = cacheOf(bench.device.info())
    return {
      ...{ what: 'step', ...shape, setup, profile },
      ...describe(timed, rows, samples, work, shape.batch),
      device: summarise(replays.map((milliseconds) => milliseconds / stepsPerRun)),
      launches: launchesOf(rows.steps) / stepsPerRun,
      captured: rows.steps.captured,
      begun,
      evicts: cache === undefined ? undefined : work.bytes > 2 * cache,
    }
  } finally {
    rows.release()
  }
}

async function timePrompts(timed: Timed, shape: Shape): Promise<LlamaTimes> {
  const { bench, model, observer } = timed
  const { config, dtype, repeats, signal, chunk = usualChunk } = bench
  observer.onStage?.(`${model.plan.name}: timing prompts of ${shapeName(shape)}`)
  const prompts = idsOf(config, shape.batch, shape.seq)
  const rows = await openTimedRows(timed, prompts, stepsPerRun)
  try {
    const unread = prompts.map((ids, row) => ({ row, first: 0, ids }))
    const opened = performance.now()
    for (const pass of rows.passes(unread, chunk)) await rows.reader(pass, chunk)
    const setup = performance.now() - opened
    const samples: number[] = []
    for (let round = 0; round < repeats + warmup; round++) {
      const began = performance.now()
      await rows.read(unread, chunk, signal)
      if (round >= warmup) samples.push(performance.now() - began)
    }
    const [pass = []] = rows.passes(unread, chunk)
    const reader = await rows.reader(pass, chunk)
    // The profile uses the values of this run.
    await rows.read(pass, chunk, signal)
    const profile = bench.profile ? stepTimes(reader, await reader.profile(1)) : undefined
    const work = promptWork(config, dtype, model.products, shape.batch, shape.seq)
    return {
      ...{
        what: 'prompt',
        ...shape,
        device: undefined,
        launches: launchesOf(reader),
        captured: false,
        begun: undefined,
        evicts: undefined,
        setup,
        profile,
      },
      ...describe(timed, rows, samples, work, shape.batch * shape.seq),
    }
  } finally {
    rows.release()
  }
}

/** Number of kernels and matmuls. */
const launchesOf = ({ steps }: Program): number => steps.filter(({ kind }) => kind !== 'copy').length

/** @param tokens of a sample */
function describe(
  { bench, model: { plan, products, session }, free }: Timed,
  rows: Rows,
  samples: readonly number[],
  work: Parameters<typeof floorOf>[0],
  tokens: number,
) {
  const { config, dtype, ceilings, device, chunk = usualChunk } = bench
  const milliseconds = summarise(samples)
  const floor = ceilings === undefined ? undefined : floorOf(work, ceilings, dtype, products)
  const { stateBytes, arenaBytes, shape } = rows
  const expectedBytes = weightBytes(config, dtype, products) + cacheBytes(config, dtype, shape) + arenaBytes
  return {
    plan: plan.name,
    milliseconds,
    samples,
    tokensPerSecond: (1e3 * tokens) / milliseconds.median,
    floor,
    fraction: floor === undefined ? undefined : floor.milliseconds / milliseconds.median,
    capacity: shape.capacity,
    chunk: shape.pass ?? chunk,
    memory: {
      ...{ weightBytes: session.weightBytes, stateBytes, arenaBytes, expectedBytes },
      usedBytes: free - device.info().memoryFreeBytes,
      ratio: (session.weightBytes + stateBytes + arenaBytes) / expectedBytes,
    },
  }
}
