/**
 * `specs/search.json`: the times of groups that searches have measured, found again by the content of their kernels, so that a changed body is
 * measured again and a renamed group is not. One entry on a line, sorted, so that git merges it as text. Read and written by `heddle search`.
 */
import { z } from 'zod'
import { usageError } from '../errors.js'
import { dtypes } from '../ir/dtype.js'
import type { Launch, Measured } from './price.js'

const entrySchema = z.strictObject({
  /** Nodes of the group in the graph where it was measured, for the reader. */
  group: z.string(),
  content: z.string(),
  dtype: z.enum(dtypes),
  sizes: z.array(z.number().int().positive()),
  device: z.string(),
  driver: z.number(),
  /** Microseconds: median and quartiles of `samples` times. Absent if it was refused. */
  median: z.number().positive().optional(),
  low: z.number().positive().optional(),
  high: z.number().positive().optional(),
  samples: z.number().int().positive().optional(),
  /** True if its results were compared with those of its nodes, on the device. */
  checked: z.literal(true).optional(),
  /** Reason why it cannot be run. */
  refused: z.string().optional(),
})

export type Entry = z.infer<typeof entrySchema>

/** A search that has ended by itself: the same one measures nothing more. */
const finishedSchema = z.strictObject({ finished: z.string(), of: z.string(), device: z.string() })

export type Finished = z.infer<typeof finishedSchema>

/** A whole plan that a search has timed, by its launches. */
const wholeSchema = z.strictObject({
  whole: z.string(),
  /** Graph and shape, for the reader. */
  of: z.string(),
  shape: z.string(),
  device: z.string(),
  driver: z.number(),
  /** Microseconds. Absent if the plan cannot be run. */
  median: z.number().positive().optional(),
})

export type WholeEntry = z.infer<typeof wholeSchema>

/** Content of the file. */
export interface SearchRecord {
  readonly entries: readonly Entry[]
  readonly wholes: readonly WholeEntry[]
  readonly finished: readonly Finished[]
}

export const emptyRecord: SearchRecord = { entries: [], wholes: [], finished: [] }

const micro = 1e6

/** Four significant digits: more would be noise. */
const rounded = (value: number): number => Number(value.toPrecision(4))

/** Storage type and device of entries. */
export type About = Pick<Entry, 'dtype' | 'device' | 'driver'>

/** Times of a launch in seconds. */
export interface Times {
  readonly median: number
  readonly low: number
  readonly high: number
  readonly samples: number
}

/** Entry of a launch. */
export function entryOf(
  { content, sizes }: Launch,
  group: string,
  about: About,
  result: Times | { readonly refused: string },
): Entry {
  const what = { group, content, dtype: about.dtype, sizes: [...sizes], device: about.device, driver: about.driver }
  if ('refused' in result) return { ...what, refused: result.refused }
  const { median, low, high, samples } = result
  return { ...what, median: rounded(median * micro), low: rounded(low * micro), high: rounded(high * micro), samples }
}

export const measuredOf = ({ median, refused }: Entry): Measured =>
  median === undefined ? { refused: refused ?? 'not timed' } : { seconds: median / micro }

/** Identity of a launch in a storage type. */
export const launchId = ({
  content,
  dtype,
  sizes,
}: Pick<Entry, 'content' | 'dtype'> & { readonly sizes: readonly number[] }): string => `${content} ${dtype} ${sizes.join('x')}`

/** Results on a device, by the id of the launch. */
export const knownOn = (entries: readonly Entry[], device: string): ReadonlyMap<string, Measured> =>
  new Map(entries.flatMap((entry) => (entry.device === device ? [[launchId(entry), measuredOf(entry)] as const] : [])))

/** Seconds of a whole plan. */
export const wholeEntry = (what: Omit<WholeEntry, 'median'>, seconds: number): WholeEntry =>
  Number.isFinite(seconds) ? { ...what, median: rounded(seconds * micro) } : what

/** Seconds of whole plans on a device, by their launches: infinite for a plan that cannot be run. */
export const wholesOn = (wholes: readonly WholeEntry[], device: string): ReadonlyMap<string, number> =>
  new Map(
    wholes.flatMap((entry) =>
      entry.device === device
        ? [[entry.whole, entry.median === undefined ? Number.POSITIVE_INFINITY : entry.median / micro] as const]
        : [],
    ),
  )

type Line = Entry | WholeEntry | Finished

const keyOf = (line: Line): string => {
  if ('finished' in line) return `${line.device} ${line.finished}`
  return 'whole' in line ? `${line.device} ${line.whole}` : `${line.device} ${launchId(line)}`
}

/** The last of the lines with one key, in the order of keys. */
function inOrder<T extends Line>(lines: readonly T[]): readonly T[] {
  const all = new Map(lines.map((line) => [keyOf(line), line]))
  return [...all].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, line]) => line)
}

/** A record with further lines, which replace those of the same launch on the same device. */
export const merged = (old: SearchRecord, added: Partial<SearchRecord>): SearchRecord => ({
  entries: inOrder([...old.entries, ...(added.entries ?? [])]),
  wholes: inOrder([...old.wholes, ...(added.wholes ?? [])]),
  finished: inOrder([...old.finished, ...(added.finished ?? [])]),
})

const head = '{"version":1,"entries":['

/** Text of the file: the same for the same record. */
export const formatRecord = ({ entries, wholes, finished }: SearchRecord): string =>
  `${head}\n${[...inOrder(entries), ...inOrder(wholes), ...inOrder(finished)].map((line) => JSON.stringify(line)).join(',\n')}\n]}\n`

/**
 * Record of a file. A line that cannot be read, as in a file that was cut or merged with conflicts, is left out, and its group is measured again.
 * @throws usage `search.record` for a file that is none of these
 */
export function parseRecord(text: string, path: string): SearchRecord {
  const [first, ...lines] = text.split('\n')
  if (first !== head) {
    throw usageError('search.record', `${path} is not a file of search`, { hint: 'remove it, or name another with --record' })
  }
  const values = lines.flatMap(parsedLine)
  return {
    entries: values.flatMap((value) => entrySchema.safeParse(value).data ?? []),
    wholes: values.flatMap((value) => wholeSchema.safeParse(value).data ?? []),
    finished: values.flatMap((value) => finishedSchema.safeParse(value).data ?? []),
  }
}

function parsedLine(line: string): unknown[] {
  try {
    return line.startsWith('{') ? [JSON.parse(line.replace(/,$/, ''))] : []
  } catch {
    return []
  }
}
