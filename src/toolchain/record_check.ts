/**
 * Whether a record is of the texts beside it, and whether nvcc says what it says. A record that lags behind is refused before anything is
 * compiled, with or without nvcc, so that none stays in a repository.
 */
import { findingError } from '../errors.js'
import { placeOf, type RecordedText, type RecordKey, recordKeys, recordLine, type TextRecord } from './record.js'
import type { SourceFile } from './sources.js'
import { refuseSpills } from './spills.js'

/** A record beside what it should say. */
export interface CheckedRecord {
  /** Of the texts that were looked at, in their order. */
  readonly keys: readonly RecordKey[]
  /** By place, what the record says of a text as it is now. */
  readonly current: ReadonlyMap<string, RecordedText>
  /** Places of texts that it does not know as they are now. */
  readonly stale: ReadonlySet<string>
}

/** @param chosen by architecture, the texts that are looked at */
export async function checkRecord(
  { nvcc, texts }: TextRecord,
  chosen: ReadonlyMap<string, readonly SourceFile[]>,
): Promise<CheckedRecord> {
  const keys = (await Promise.all([...chosen].map(([architecture, files]) => recordKeys(files, architecture, nvcc)))).flat()
  const lines = new Map(texts.map((text) => [`${placeOf(text)} ${text.key}`, text]))
  const current = new Map<string, RecordedText>()
  for (const key of keys) {
    const line = lines.get(`${placeOf(key)} ${key.key}`)
    if (line !== undefined) current.set(placeOf(key), line)
  }
  return { keys, current, stale: new Set(keys.map(placeOf).filter((place) => !current.has(place))) }
}

/** Names that a message shows. */
const shown = 5

const listed = (names: readonly string[]): string =>
  names.length > shown ? `${names.slice(0, shown).join(', ')} and ${names.length - shown} more` : names.join(', ')

/**
 * @param isPart whether only some texts were looked at, so that the record may know others
 * @throws finding `build.record` for a record that is not of the texts as they are; `build.spill` for one that holds what spills
 */
export function refuseStale({ texts, unreadable }: TextRecord, { current, stale }: CheckedRecord, isPart: boolean): void {
  const hint = 'run `heddle build --target cuda --check --record` where nvcc is, and commit the record'
  if (stale.size > 0) {
    throw findingError('build.record', `the record lacks ${stale.size} texts as they are now: ${listed([...stale].sort())}`, {
      hint,
    })
  }
  const extra = texts.filter((text) => current.get(placeOf(text)) !== text).map(placeOf)
  if (!isPart && extra.length + unreadable > 0) {
    throw findingError('build.record', `the record has ${extra.length + unreadable} lines too many: ${listed(extra)}`, { hint })
  }
  refuseSpills([...current.values()].map(({ text, resources }) => ({ source: text, resources })))
}

/** @throws finding `build.record` where the compiler says something else than the record says of the same text */
export function refuseDifferent(made: readonly RecordedText[], { current }: CheckedRecord): void {
  const different = made.filter((text) => {
    const line = current.get(placeOf(text))
    return line === undefined || recordLine(line) !== recordLine(text)
  })
  const [first] = different
  if (first === undefined) return
  const line = current.get(placeOf(first))
  const said = line === undefined ? 'nothing' : recordLine(line)
  throw findingError(
    'build.record',
    `the record says something else than nvcc of ${listed(different.map(placeOf))}\nrecord: ${said}\nnvcc:   ${recordLine(first)}`,
    { hint: 'only `heddle build --target cuda --check --record --sample all` writes the record' },
  )
}
