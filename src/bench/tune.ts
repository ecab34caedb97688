/**
 * Measurements of `heddle tune`: every candidate is first compared with the result of the rules and refused if it differs. Then its timings are
 * interleaved with those of the rules, over buffers that together exceed twice the device's cache. The fastest candidates are timed again. Runs on
 * the machine with the device; needs no front end and no compiler.
 */
import type { KernelEntry, Manifest } from '../emit/manifest/manifest.js'
import { HeddleError, usageError } from '../errors.js'
import { decode } from '../runtime/buffer.js'
import { architectureOf } from '../runtime/device.js'
import type { NativeDeviceInfo, NativeProgram, NativeStep } from '../runtime/native.js'
import type { TuningEntry } from '../schedule/tuning/tuning.js'
import { compare } from '../verify/compare.js'
import { ruleOf } from '../verify/rules.js'
import { betweenResults, tolerance } from '../verify/tolerance.js'
import { cacheOf, rotationOf } from './rotation.js'
import { summarise } from './statistics.js'
import { bytesOf, type Dims, dimsOf, type Launches, openLaunches, ruleFor, type Size, type Stage } from './tune_launch.js'
import type { TuneCandidate, TuneKernel, TunePlan } from './tune_plan.js'
import { finalists, selectTiles, selectVariants, type TimesAtRows } from './tune_select.js'

export interface TuneBench extends Stage {
  /** Manifest of the candidates' library. */
  readonly manifest: Manifest
  readonly plan: TunePlan
  /** Numbers of rows to measure. */
  readonly rows: readonly number[]
  /** Timed replays of each candidate. */
  readonly repeats: number
  readonly signal?: AbortSignal | undefined
}

export interface TuneResult {
  readonly kernel: string
  readonly dtype: string
  readonly length: number
  readonly depth?: number | undefined
  readonly times: readonly (TimesAtRows & { readonly bytes: number })[]
  readonly refused: readonly { readonly key: string; readonly detail: string }[]
  readonly variants: TuningEntry['variants']
}

/** Rows of the small launch for the comparison of results. */
const comparedRows = 37
const rounds = 4

/**
 * Measures a plan. A candidate that faults or computes another result is refused, with its message.
 * @throws usage `tune.plan` if the manifest lacks a kernel of the plan; environment `device.memory`; the signal's reason
 */
export async function tune(bench: TuneBench, onResult?: (result: TuneResult) => void): Promise<TuneResult[]> {
  const results: TuneResult[] = []
  for (const kernel of bench.plan.kernels) {
    const entry = entryOf(bench.manifest, kernel.rules)
    for (const { length, depth, candidates } of kernel.lengths) {
      bench.signal?.throwIfAborted()
      const { accepted, refused } = await examine(bench, kernel, entry, { rows: comparedRows, length, depth }, candidates)
      const heat = async (runners: readonly TuneCandidate[]): Promise<TuneResult['times']> => {
        const times: TuneResult['times'][number][] = []
        for (const rows of bench.rows) {
          const size = { rows, length, depth }
          const bytes = bytesOf(bench.layouts, entry, dimsOf(kernel, size, entry))
          times.push({ rows, bytes, ...(await timeAll(bench, kernel, entry, size, runners)) })
        }
        return times
      }
      // The fastest of many is often the luckiest: the leading ones run again, and only the second timing counts.
      const best = finalists(await heat(accepted), accepted)
      const times = await heat(best)
      const { kernel: name, dtype } = kernel
      const variants = kernel.kind === 'rows' ? selectVariants(times, best) : selectTiles(times, best)
      const result = { kernel: name, dtype, length, depth, times, refused, variants }
      onResult?.(result)
      results.push(result)
    }
  }
  return results
}

function entryOf({ kernels }: Manifest, key: string): KernelEntry {
  const entry = kernels.find((candidate) => candidate.key === key)
  if (entry === undefined)
    throw usageError('tune.plan', `the manifest has no kernel ${key}`, { hint: 'run `heddle tune --prepare` again' })
  return entry
}

/** Separates candidates whose results agree with the rules' from the others. */
async function examine(
  stage: Stage,
  kernel: TuneKernel,
  entry: KernelEntry,
  size: Size,
  candidates: readonly TuneCandidate[],
): Promise<{ accepted: TuneCandidate[]; refused: TuneResult['refused'] }> {
  const dims = dimsOf(kernel, size, entry)
  const launches = await openLaunches(stage, entry, ruleFor(kernel, size, entry), dims, 1)
  const results = async (key: string): Promise<Uint8Array[]> => {
    const program = stage.device.program(stepsOf(kernel, launches, key))
    try {
      return await program.run(
        [launches.initial],
        launches.outputs.map(({ slice }) => slice),
      )
    } finally {
      program.release()
    }
  }
  try {
    const expected = await results(kernel.rules)
    const accepted: TuneCandidate[] = []
    const refused: { key: string; detail: string }[] = []
    for (const candidate of candidates) {
      const detail = await results(candidate.key).then(
        (found) =>
          difference(
            entry,
            launches.outputs.map(({ buffer }) => buffer),
            found,
            expected,
            dims,
          ),
        (error: unknown) => (error instanceof Error ? error.message : String(error)),
      )
      if (detail === undefined) accepted.push(candidate)
      else refused.push({ key: candidate.key, detail })
    }
    return { accepted, refused }
  } finally {
    launches.release()
  }
}

/** Launches of a key. For the rules, those of the untuned default, which may be the library. */
const stepsOf = ({ rules, library }: TuneKernel, launches: Launches, key: string): NativeStep[] =>
  library === true && key === rules ? launches.products() : launches.steps(key)

/** Describes a difference from the rules' results that is larger than between two correct results; undefined if there is none. */
function difference(
  entry: KernelEntry,
  outputs: KernelEntry['buffers'],
  found: readonly Uint8Array[],
  expected: readonly Uint8Array[],
  dims: Dims,
): string | undefined {
  const { results } = ruleOf(entry)
  for (const [i, { name, dtype }] of outputs.entries()) {
    const result = results[name]
    if (result === undefined) throw new Error(`internal: ${entry.key} has no output ${name}`)
    // Inputs are not small integers, so that arithmetic rounds.
    const { class: opClass, scale, roots, rounded } = result
    const bound = betweenResults(tolerance({ dtype, class: opClass, length: result.length(dims), scale, roots, rounded }))
    const [ours, theirs] = [found[i], expected[i]].map((bytes) => decode(dtype, bytes ?? new Uint8Array()))
    const { passed, summary } = compare(...sameNaN(ours ?? [], theirs ?? []), bound)
    if (!passed) return `${name}: ${summary}`
  }
  return undefined
}

/** Replaces NaN in both results by 0, so that equal NaNs compare as equal. */
function sameNaN(a: ArrayLike<number>, b: ArrayLike<number>): [ArrayLike<number>, ArrayLike<number>] {
  const known = (of: ArrayLike<number>) =>
    Float64Array.from(of, (value, i) => (Number.isNaN(a[i]) && Number.isNaN(b[i]) ? 0 : value))
  return [known(a), known(b)]
}

/** Median microseconds of a launch of the rules and of each candidate that supports this number of rows. */
async function timeAll(
  { device, library, layouts, repeats, signal }: TuneBench,
  kernel: TuneKernel,
  entry: KernelEntry,
  size: Size,
  candidates: readonly TuneCandidate[],
): Promise<Pick<TimesAtRows, 'rules' | 'candidates'>> {
  const dims = dimsOf(kernel, size, entry)
  const sets = rotationOf(bytesOf(layouts, entry, dims), cacheOf(device.info())).passes
  const { rules } = kernel
  const launches = await openLaunches({ device, library, layouts }, entry, ruleFor(kernel, size, entry), dims, sets)
  const programs = new Map<string, { program: NativeProgram; samples: number[] }>()
  try {
    for (const key of [rules, ...candidates.map((candidate) => candidate.key)]) {
      const program = device.program(stepsOf(kernel, launches, key))
      try {
        await program.run([], [])
        await program.capture()
      } catch (error) {
        program.release()
        // A candidate for few rows may not support many; it has no time there.
        if (key !== rules && error instanceof HeddleError && error.code === 'device.invalid') continue
        throw error
      }
      programs.set(key, { program, samples: [] })
    }
    const perRound = Math.ceil(repeats / rounds)
    for (let round = 0; round * perRound < repeats; round++) {
      signal?.throwIfAborted()
      const turn = [...programs.values()]
      for (const { program, samples } of round % 2 === 0 ? turn : turn.reverse())
        samples.push(...(await program.time(perRound, 1)))
    }
    const median = (key: string): number => (1000 * summarise(programs.get(key)?.samples ?? []).median) / sets
    const timed = candidates.filter(({ key }) => programs.has(key))
    return { rules: median(rules), candidates: new Map(timed.map(({ key }) => [key, median(key)])) }
  } finally {
    for (const { program } of programs.values()) program.release()
    launches.release()
  }
}

/** Entries for a tuning file, one per key with variants. */
export const tuningEntries = (results: readonly TuneResult[], info: NativeDeviceInfo): TuningEntry[] =>
  results
    .filter(({ variants }) => variants.length > 0)
    .map(({ kernel, dtype, length, depth, variants }) => ({
      kernel,
      dtype,
      length,
      ...(depth === undefined ? {} : { depth }),
      architecture: architectureOf(info),
      device: info.name,
      variants,
    }))
