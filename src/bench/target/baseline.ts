/**
 * Saved times, and their comparison with new ones. A difference counts if the medians differ by more than a given ratio and a rank test
 * finds it significant: Wilcoxon's rank sum, with the normal approximation, which fits samples of ten and more.
 */
import { readFile } from 'node:fs/promises'
import { cumulativeStdNormalProbability, wilcoxonRankSum } from 'simple-statistics'
import { z } from 'zod'
import { usageError } from '../../errors.js'
import { dtypes } from '../../ir/dtype.js'
import { namedFile } from '../../output.js'
import type { NativeDeviceInfo } from '../../runtime/native.js'
import { summarise } from '../statistics.js'
import type { TargetTimes } from './measure.js'

const result = z.strictObject({
  plan: z.string(),
  dims: z.record(z.string(), z.number()),
  samples: z.array(z.number().positive()).min(1),
})

const schema = z.strictObject({
  version: z.literal(1),
  subject: z.string(),
  device: z.string(),
  dtype: z.enum(dtypes),
  results: z.array(result),
})

export type Baseline = z.infer<typeof schema>

/** Fields of times that baselines store. */
type Timed = Pick<TargetTimes, 'plan' | 'dims' | 'samples'>

/** Name of the device of times: kind and model, so that equal GPUs of two machines compare. */
export const deviceName = ({ kind, name }: Pick<NativeDeviceInfo, 'kind' | 'name'>): string => `${kind} ${name}`

export function baselineOf(subject: string, info: NativeDeviceInfo, dtype: Baseline['dtype'], times: readonly Timed[]): Baseline {
  const results = times.map(({ plan, dims, samples }) => ({ plan, dims: { ...dims }, samples: [...samples] }))
  return { version: 1, subject, device: deviceName(info), dtype, results }
}

/** Returns the writer of a baseline file named by the user. The path is checked before anything is timed. @throws usage `bench.save` */
export async function baselineFile(path: string): Promise<(baseline: Baseline) => Promise<void>> {
  const write = await namedFile(path, 'bench.save')
  return (baseline) => write(`${JSON.stringify(baseline)}\n`)
}

/** @throws usage `bench.baseline` for an invalid file, or one of another subject, device or type */
export async function readBaseline(path: string, now: Omit<Baseline, 'results' | 'version'>): Promise<Baseline> {
  const refuse = (problem: string, cause?: unknown) =>
    usageError('bench.baseline', `${path} ${problem}`, {
      hint: 'write one with --save',
      ...(cause === undefined ? {} : { cause }),
    })
  let parsed: ReturnType<typeof schema.safeParse>
  try {
    parsed = schema.safeParse(JSON.parse(await readFile(path, 'utf8')))
  } catch (cause) {
    throw refuse('cannot be read as a baseline', cause)
  }
  if (!parsed.success) throw refuse('is not a baseline')
  const { data } = parsed
  for (const key of ['subject', 'device', 'dtype'] as const)
    if (data[key] !== now[key]) throw refuse(`has times of ${data[key]}, expected ${now[key]}`)
  if (data.results.some(({ samples }) => samples.length < fewestSamples))
    throw refuse(`has fewer than ${fewestSamples} times, too few to show a difference`)
  return data
}

export interface Comparison {
  readonly plan: string
  readonly dims: Readonly<Record<string, number>>
  /** Ratio of medians, new over old. Above 1 it became slower. */
  readonly ratio: number
  /** Probability of equally different ranks by chance, if nothing changed. */
  readonly chance: number
  readonly verdict: 'slower' | 'faster' | 'same'
}

/** Probability below which a difference counts, and the smallest number of times for which a rank test can reach it. */
const significant = 0.01
export const fewestSamples = 5

/** @param limit largest ratio without a difference, such as 1.05 */
export function compare(before: Baseline, times: readonly Timed[], limit: number): Comparison[] {
  return times.flatMap(({ plan, dims, samples }): Comparison[] => {
    const old = before.results.find((each) => each.plan === plan && sameDims(each.dims, dims))
    if (old === undefined) return []
    return [{ plan, dims, ...judge(samples, old.samples, limit) }]
  })
}

function judge(now: readonly number[], before: readonly number[], limit: number): Omit<Comparison, 'plan' | 'dims'> {
  const ratio = summarise(now).median / summarise(before).median
  const chance = chanceOf(now, before)
  const differs = chance < significant
  return { ratio, chance, verdict: differs && ratio > limit ? 'slower' : differs && ratio < 1 / limit ? 'faster' : 'same' }
}

/** Verdict as in `compare`; undefined if either has too few times for a rank test. */
export function verdictOf(
  now: readonly number[],
  before: readonly number[],
  limit: number,
): Pick<Comparison, 'chance' | 'verdict'> | undefined {
  if (Math.min(now.length, before.length) < fewestSamples) return undefined
  const { chance, verdict } = judge(now, before, limit)
  return { chance, verdict }
}

/** Two-sided probability that the rank sum of the first deviates as far from its mean. */
export function chanceOf(first: readonly number[], second: readonly number[]): number {
  const [n, m] = [first.length, second.length]
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12)
  const z = Math.abs(wilcoxonRankSum([...first], [...second]) - (n * (n + m + 1)) / 2) / deviation
  return 2 * (1 - cumulativeStdNormalProbability(z))
}

const sameDims = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([dim, extent]) => b[dim] === extent)
