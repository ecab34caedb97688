/**
 * A history of suites: a file of JSON lines, one per run of a suite, oldest first, committed with the sources. Lines are only added, so that git can
 * merge two branches by keeping the lines of both (`merge=union`).
 */
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { usageError } from '../../errors.js'
import { writeWhole } from '../../output.js'
import { type SuiteClock, type SuiteResult, shapeText } from '../suite/result.js'

const text = z.string().min(1)
const rate = z.number().nonnegative()

const cell = z.strictObject({
  plan: text,
  peer: z.literal(true).optional(),
  dtype: z.enum(['f32', 'f16', 'bf16']),
  dims: z.record(z.string(), z.int().positive()),
  /** Milliseconds. */
  samples: z.array(z.number().positive()).min(1),
  predicted: z.number().positive().optional(),
  /** Name, launches and milliseconds of each kernel. */
  kernels: z.array(z.tuple([text, z.number().nonnegative(), z.number().nonnegative()])),
})

const entry = z.strictObject({
  version: z.literal(1),
  /** Time of the run, ISO 8601. */
  at: z.iso.datetime(),
  /** Absent outside of a git repository. `changed` is true if tracked files differ from the commit. */
  commit: z.strictObject({ id: z.string().regex(/^[0-9a-f]{40,64}$/), changed: z.boolean() }).optional(),
  versions: z.record(z.string(), z.string()),
  suite: text,
  subject: text,
  file: text,
  clock: z.union([z.enum(['cuda', 'simt', 'js']), z.templateLiteral(['model ', z.string()])]),
  device: z.strictObject({ name: text, facts: z.record(z.string(), z.union([z.string(), z.number()])) }),
  /** Clocks, power and temperature of the GPU right after the run. */
  state: z.strictObject({ smMHz: rate, memoryMHz: rate, watts: rate, celsius: rate }).partial().optional(),
  cells: z.array(cell),
})

export type HistoryEntry = z.infer<typeof entry>
export type HistoryCell = z.infer<typeof cell>

/** Circumstances of a run. */
export const provenance = entry
  .pick({ at: true, commit: true, versions: true, state: true })
  .extend({ facts: entry.shape.device.shape.facts })

export type Provenance = z.infer<typeof provenance>

/** Six digits: more are noise, and a line is read by people. */
const short = (value: number): number => Number(value.toPrecision(6))

export function entryOf(result: SuiteResult, { facts, ...about }: Provenance): HistoryEntry {
  const { suite, subject, file, clock, device } = result
  const cells = result.cells.map(
    ({ plan, peer, dtype, dims, samples, predicted, profile }): HistoryCell => ({
      plan,
      ...(peer ? { peer: true as const } : {}),
      dtype,
      dims: { ...dims },
      samples: samples.map(short),
      ...(predicted === undefined ? {} : { predicted: short(predicted) }),
      kernels: profile.map(({ kernel, count, milliseconds }) => [kernel, count, short(milliseconds)]),
    }),
  )
  return { version: 1, ...about, suite, subject, file, clock, device: { name: device, facts }, cells }
}

/** Entries of a file, the oldest first; empty if there is none. @throws usage `suite.history` for another file, by line */
export async function readHistory(path: string): Promise<readonly HistoryEntry[]> {
  const content = await readFile(path, 'utf8').catch((error: unknown) => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return ''
    throw usageError('suite.history', `${path} cannot be read`, { hint: 'name a file that --save wrote', cause: error })
  })
  const entries = content.split('\n').flatMap((line, i) => (line.trim() === '' ? [] : [entryAt(path, i + 1, line)]))
  // Merged branches leave lines in the order of the merge.
  return entries.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0))
}

function entryAt(path: string, line: number, content: string): HistoryEntry {
  const refuse = (problem: string, cause: unknown) =>
    usageError('suite.history', `${path}:${line}: ${problem}`, {
      hint: 'a history has one line of JSON per run, as --save writes it; remove the line',
      cause,
    })
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch (cause) {
    throw refuse('expected JSON', cause)
  }
  const parsed = entry.safeParse(value)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  throw refuse(`${issue?.path.join('.') || 'the line'}: ${issue?.message ?? 'expected a run'}`, parsed.error)
}

/** Adds runs to a file. @throws usage `suite.history` for a file that is no history; environment if it cannot be written */
export async function appendHistory(path: string, added: readonly HistoryEntry[]): Promise<void> {
  await readHistory(path)
  const before = await readFile(path, 'utf8').catch(() => '')
  const lines = added.map((each) => `${JSON.stringify(entry.parse(each))}\n`).join('')
  await writeWhole(path, `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}${lines}`)
}

/** Name of a series of runs: what has to be equal for times to be comparable. */
export const seriesKey = (
  { suite, clock, device }: Pick<HistoryEntry, 'suite' | 'device'> & { readonly clock: SuiteClock },
  { plan, dtype, dims }: Pick<HistoryCell, 'plan' | 'dtype' | 'dims'>,
): string => [suite, clock, device.name, dtype, shapeText(dims), plan].join('\n')

/** `3f2a1bc`, with `+` for uncommitted changes; the time of a run outside of a repository. */
export const commitText = ({ commit, at }: Pick<HistoryEntry, 'commit' | 'at'>): string =>
  commit === undefined ? at.slice(0, 16).replace('T', ' ') : `${commit.id.slice(0, 7)}${commit.changed ? '+' : ''}`
