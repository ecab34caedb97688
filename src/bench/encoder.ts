/**
 * Times encoder plans on a device: whole forward passes, token ids to outputs, replayed without copies. The plans of a shape are timed interleaved,
 * in alternating order, so that changes of the device's clock affect all of them. Every round has its own ids, and rotation.ts ensures that no pass
 * finds its inputs and weights in the cache.
 */
import { usageError } from '../errors.js'
import { hasInt8Weights } from '../runtime/program_wiring.js'
import { assemble, type Candidate, type EncoderBench, openSessions, prepare, refresh, release } from './candidates.js'
import { floorOf, workloadOf } from './floor.js'
import { type EncoderTimes, type Shape, type StepTime, shapeName } from './result.js'
import type { Rotation } from './rotation.js'
import { summarise } from './statistics.js'
import { stepTimes } from './step_times.js'
import { syntheticScales } from './synthetic_scales.js'

/** Callbacks for the progress of a benchmark, which can take minutes. */
export interface BenchObserver {
  /** Called with the current stage: `building ft-v1 32x128 (3 of 4)`. */
  readonly onStage?: (stage: string) => void
  readonly onResult?: (times: EncoderTimes) => void
}

const rounds = 5
const warmup = 3

/** Runs the benchmark and reports each plan and shape after measuring it. @throws usage `plan.unknown`, `bench.shape` */
export async function benchEncoder(bench: EncoderBench, observer: BenchObserver = {}): Promise<EncoderTimes[]> {
  const { config, shapes } = bench
  const tooLong = shapes.find(({ seq }) => seq > config.positions)
  if (tooLong !== undefined) {
    throw usageError('bench.shape', `sequence ${tooLong.seq} is longer than the model's ${config.positions} positions`)
  }
  const models = assemble(bench, await syntheticScales(bench, observer.onStage))
  const sessions = await openSessions(bench, models)
  const results: EncoderTimes[] = []
  try {
    for (const [i, shape] of shapes.entries()) {
      const candidates: Candidate[] = []
      try {
        for (const [j, model] of models.entries()) {
          const place = `(${i * models.length + j + 1} of ${shapes.length * models.length})`
          observer.onStage?.(`building ${model.plan} ${shapeName(shape)} ${place}`)
          candidates.push(await prepare(bench, sessions, model, shape))
        }
        for (const times of await measure(bench, sessions.rotation, shape, candidates, observer)) {
          observer.onResult?.(times)
          results.push(times)
        }
      } finally {
        for (const candidate of candidates) release(candidate)
      }
    }
  } finally {
    sessions.single.release()
    sessions.chain?.release()
  }
  return results
}

async function measure(
  bench: EncoderBench,
  rotation: Rotation,
  shape: Shape,
  candidates: readonly Candidate[],
  { onStage }: BenchObserver,
): Promise<EncoderTimes[]> {
  const samples = new Map<Candidate, number[]>(candidates.map((candidate) => [candidate, []]))
  const perRound = Math.ceil(bench.repeats / rounds)
  for (let round = 0; round * perRound < bench.repeats; round++) {
    onStage?.(`timing ${shapeName(shape)}, round ${round + 1} of ${Math.ceil(bench.repeats / perRound)}`)
    for (const candidate of round % 2 === 0 ? candidates : candidates.toReversed()) {
      bench.signal?.throwIfAborted()
      if (round > 0) await refresh(bench, rotation, shape, candidate, round)
      const times = await candidate.timed.time(Math.min(perRound, bench.repeats - round * perRound), warmup)
      samples.get(candidate)?.push(...times.map((milliseconds) => milliseconds / rotation.passes))
    }
  }
  const results: EncoderTimes[] = []
  for (const candidate of candidates) {
    bench.signal?.throwIfAborted()
    if (bench.profile) onStage?.(`profiling ${candidate.model.plan} ${shapeName(shape)}`)
    const profile = bench.profile ? stepTimes(candidate.single, await candidate.single.profile(bench.repeats)) : undefined
    results.push(describe(bench, rotation, shape, candidate, samples.get(candidate) ?? [], profile))
  }
  return results
}

function describe(
  { config, dtype, lengths: draw, ceilings }: EncoderBench,
  rotation: Rotation,
  shape: Shape,
  { model, single, timed, memory }: Candidate,
  samples: readonly number[],
  profile: readonly StepTime[] | undefined,
): EncoderTimes {
  const { steps } = single
  const total = (of: (step: (typeof steps)[number]) => number): number => steps.reduce((sum, step) => sum + of(step), 0)
  const lengths = draw(shape.batch, shape.seq)
  const milliseconds = summarise(samples)
  const weights = hasInt8Weights(model) ? 'i8' : dtype
  const workload = workloadOf(config, lengths, dtype, weights)
  const floor = ceilings === undefined ? undefined : floorOf(workload, ceilings, weights)
  return {
    plan: model.plan,
    ...shape,
    meanLength: lengths.reduce((sum, length) => sum + length, 0) / lengths.length,
    milliseconds,
    kernels: steps.filter(({ kind }) => kind === 'kernel').length,
    matmuls: steps.filter(({ kind }) => kind === 'matmul').length,
    captured: timed.captured,
    memory,
    work: { bytes: total(({ bytes }) => bytes), flops: total(({ flops }) => flops) },
    workload,
    floor,
    fraction: floor === undefined ? undefined : floor.milliseconds / milliseconds.median,
    rotation,
    profile,
  }
}
