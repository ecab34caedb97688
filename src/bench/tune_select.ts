/**
 * Selects entries of a tuning file from measured times. Choices with the rules' order of combination may serve some numbers of rows and
 * leave the others to the rules. A choice with another order serves all numbers or none, so that results never depend on the number of rows.
 */
import { fewRows } from '../schedule/rules.js'
import type { TunedVariant } from '../schedule/tuning/tuning.js'
import type { TuneCandidate } from './tune_plan.js'

/** Smallest share of time that a choice must save: less is within the repeatability of measurements. */
export const leastGain = 0.03

/** Times at one number of rows. */
export interface TimesAtRows {
  readonly rows: number
  /** Microseconds of a launch that follows the rules. */
  readonly rules: number
  /** Microseconds of each candidate with the same results as the rules, by key. */
  readonly candidates: ReadonlyMap<string, number>
}

/** Number of leading candidates per criterion. */
const leading = 3

/** Candidates that may be selected by these times: the fastest at some number of rows, and those with the largest total gain. */
export function finalists(times: readonly TimesAtRows[], candidates: readonly TuneCandidate[]): TuneCandidate[] {
  const lead = (group: readonly TuneCandidate[], some: readonly TimesAtRows[]) =>
    [...group].sort((a, b) => logGain(timesOf(some, b.key)) - logGain(timesOf(some, a.key))).slice(0, leading)
  const found = [true, false].flatMap((ordered) => {
    const group = candidates.filter(({ keepsOrder }) => keepsOrder === ordered)
    return [...lead(group, times), ...times.flatMap((at) => lead(group, [at]))]
  })
  return candidates.filter((candidate) => found.includes(candidate))
}

/** Rounds to three digits, as in a tuning file. */
const rounded = (value: number): number => Number(value.toPrecision(3))

/** Boundary between two numbers of rows: their geometric mean. */
const between = (a: number, b: number): number => Math.ceil(Math.sqrt(a * b))

/** Selected variants, fewest rows first; none if the rules are as fast. */
export function selectVariants(times: readonly TimesAtRows[], candidates: readonly TuneCandidate[]): TunedVariant[] {
  const sorted = [...times].sort((a, b) => a.rows - b.rows)
  const ranges = byRows(
    sorted,
    candidates.filter(({ keepsOrder }) => keepsOrder),
  )
  const one = forAllRows(
    sorted,
    candidates.filter(({ keepsOrder }) => !keepsOrder),
  )
  const saved = ranges.reduce((sum, { best }) => sum + logGain(best), 0)
  if (one !== undefined && logGain(one.at) > saved) {
    return [{ fromRows: 1, choice: one.choice, measured: one.at.map(measure) }]
  }
  return ranges.map(({ choice, fromRows, toRows, best }) => ({
    fromRows,
    ...(toRows === undefined ? {} : { toRows }),
    choice,
    measured: best.map(measure),
  }))
}

/** Rows of the smallest tile. */
const tileRows = 64

/**
 * Selects tiles for the measured numbers of rows. Between them, time grows in steps of whole tiles, and the best tile changes from step to
 * step, so a choice serves only row counts with the same number of tiles as the measured one.
 */
export function selectTiles(times: readonly TimesAtRows[], candidates: readonly TuneCandidate[]): TunedVariant[] {
  const variants: TunedVariant[] = []
  for (const at of [...times].sort((a, b) => a.rows - b.rows)) {
    const best = bestAt(at, candidates)
    const toRows = Math.ceil(at.rows / tileRows) * tileRows
    const last = variants.at(-1)
    if (best === undefined || last?.toRows === toRows) continue
    const fromRows = toRows - tileRows + 1
    if (last?.toRows === fromRows - 1 && last.choice === best.candidate.choice) {
      variants[variants.length - 1] = { ...last, toRows, measured: [...last.measured, measure(best.time)] }
    } else variants.push({ fromRows, toRows, choice: best.candidate.choice, measured: [measure(best.time)] })
  }
  return variants
}

interface At {
  readonly rows: number
  readonly rules: number
  readonly time: number
}

const measure = ({ rows, rules, time }: At) => ({ rows, rules: rounded(rules), choice: rounded(time) })

/** Sum of the logarithms of speedups. */
const logGain = (at: readonly At[]): number => at.reduce((sum, { rules, time }) => sum + Math.log(rules / time), 0)

const timesOf = (times: readonly TimesAtRows[], key: string): At[] =>
  times.flatMap(({ rows, rules, candidates }) => {
    const time = candidates.get(key)
    return time === undefined ? [] : [{ rows, rules, time }]
  })

/** The fastest at a number of rows, if it saves enough. */
function bestAt(at: TimesAtRows, candidates: readonly TuneCandidate[]): { candidate: TuneCandidate; time: At } | undefined {
  const [best] = candidates
    .flatMap((candidate) => timesOf([at], candidate.key).map((time) => ({ candidate, time })))
    .filter(({ time }) => time.time < (1 - leastGain) * time.rules)
    .sort((a, b) => a.time.time - b.time.time)
  return best
}

interface Range {
  readonly key: string
  readonly choice: TuneCandidate['choice']
  readonly fromRows: number
  readonly toRows: number | undefined
  readonly best: readonly At[]
}

/** Best choice per measured number of rows; adjacent ones with the same choice form one range. Row counts below the smallest are excluded. */
function byRows(times: readonly TimesAtRows[], candidates: readonly TuneCandidate[]): Range[] {
  const ranges: Range[] = []
  times.forEach((at, i) => {
    const [previous, next] = [times[i - 1], times[i + 1]]
    const toRows = next === undefined ? undefined : between(at.rows, next.rows) - 1
    const best = bestAt(at, candidates)
    if (best === undefined) return
    const { key, choice } = best.candidate
    const last = ranges.at(-1)
    if (last?.key === key && last.best.at(-1)?.rows === previous?.rows) {
      ranges[ranges.length - 1] = { ...last, toRows, best: [...last.best, best.time] }
      return
    }
    const fromRows = previous === undefined ? at.rows : between(previous.rows, at.rows)
    ranges.push({ key, choice, fromRows, toRows, best: [best.time] })
  })
  return ranges
}

/** Best choice over all measured numbers of rows, which must include few rows, and at none measurably slower than the rules. */
function forAllRows(times: readonly TimesAtRows[], candidates: readonly TuneCandidate[]) {
  if ((times[0]?.rows ?? Number.POSITIVE_INFINITY) > fewRows) return undefined
  const [best] = candidates
    .map(({ key, choice }) => ({ choice, at: timesOf(times, key) }))
    .filter(({ at }) => at.length === times.length && at.every(({ rules, time }) => time <= (1 + leastGain) * rules))
    .filter(({ at }) => logGain(at) / at.length > -Math.log(1 - leastGain))
    .sort((a, b) => logGain(b.at) - logGain(a.at))
  return best
}
