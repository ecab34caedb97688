/**
 * Times kept in a file, and times of today held against them. A difference counts when the medians differ by more than a stated ratio and
 * a rank test says that it is none of chance: Wilcoxon's rank sum, with the normal approximation that fits samples of ten and more.
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

/** What baselines hold of times. */
type Timed = Pick<TargetTimes, 'plan' | 'dims' | 'samples'>

/** Which device times are of: of the same make, since no two machines have the same GPU. */
export const deviceName = ({ kind, name }: Pick<NativeDeviceInfo, 'kind' | 'name'>): string => `${kind} ${name}`

export function baselineOf(subject: string, info: NativeDeviceInfo, dtype: Baseline['dtype'], times: readonly Timed[]): Baseline {
  const results = times.map(({ plan, dims, samples }) => ({ plan, dims: { ...dims }, samples: [...samples] }))
  return { version: 1, subject, device: deviceName(info), dtype, results }
}

/** What saves times in a file that the user named, which is looked at before anything is timed. @throws usage `bench.save` */
export async function baselineFile(path: string): Promise<(baseline: Baseline) => Promise<void>> {
  const write = await namedFile(path, 'bench.save')
  return (baseline) => write(`${JSON.stringify(baseline)}\n`)
}

/** @throws usage `bench.baseline` for what is none, or of something else than is timed now */
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
  if (!parsed.success) throw refuse('is no baseline')
  const { data } = parsed
  for (const key of ['subject', 'device', 'dtype'] as const)
    if (data[key] !== now[key]) throw refuse(`holds times of ${data[key]}, not of ${now[key]}`)
  if (data.results.some(({ samples }) => samples.length < fewestSamples))
    throw refuse(`holds fewer than ${fewestSamples} times, of which no test can tell a difference`)
  return data
}

export interface Comparison {
  readonly plan: string
  readonly dims: Readonly<Record<string, number>>
  /** Medians: today over before. Above 1 it became slower. */
  readonly ratio: number
  /** How likely ranks as different are by chance, where nothing changed. */
  readonly chance: number
  readonly verdict: 'slower' | 'faster' | 'same'
}

/** Chance below which a difference counts, and the fewest times of which a rank test can say so. */
const significant = 0.01
export const fewestSamples = 5

/** @param limit the ratio that is no difference yet, such as 1.05 */
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

/** As `compare` judges; undefined where either has too few times for a rank test to tell. */
export function verdictOf(
  now: readonly number[],
  before: readonly number[],
  limit: number,
): Pick<Comparison, 'chance' | 'verdict'> | undefined {
  if (Math.min(now.length, before.length) < fewestSamples) return undefined
  const { chance, verdict } = judge(now, before, limit)
  return { chance, verdict }
}

/** Both sides: how likely the rank sum of the first lies as far from its mean. */
export function chanceOf(first: readonly number[], second: readonly number[]): number {
  const [n, m] = [first.length, second.length]
  const deviation = Math.sqrt((n * m * (n + m + 1)) / 12)
  const z = Math.abs(wilcoxonRankSum([...first], [...second]) - (n * (n + m + 1)) / 2) / deviation
  return 2 * (1 - cumulativeStdNormalProbability(z))
}

const sameDims = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean =>
  Object.keys(a).length === Object.keys(b).length && Object.entries(a).every(([dim, extent]) => b[dim] === extent)
