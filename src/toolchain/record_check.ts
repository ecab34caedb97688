/**
 * Checks a record against the sources next to it, and against nvcc. An outdated record is refused before anything is compiled, with or without nvcc,
 * so that none stays in a repository.
 */
import { findingError } from '../errors.js'
import { placeOf, type RecordedText, type RecordKey, recordKeys, recordLine, type TextRecord } from './record.js'
import { refuseShared } from './shared_memory.js'
import type { SourceFile } from './sources.js'
import { refuseSpills } from './spills.js'

/** A record compared with its sources. */
export interface CheckedRecord {
  /** Keys of the checked files, in their order. */
  readonly keys: readonly RecordKey[]
  /** Up-to-date entries of the record, by file and architecture. */
  readonly current: ReadonlyMap<string, RecordedText>
  /** Files and architectures without an up-to-date entry. */
  readonly stale: ReadonlySet<string>
}

/** @param chosen files to check, by architecture */
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

/** Maximum number of names in a message. */
const maxShown = 5

const listed = (names: readonly string[]): string =>
  names.length > maxShown ? `${names.slice(0, maxShown).join(', ')} and ${names.length - maxShown} more` : names.join(', ')

/**
 * @param isPart true if only some files were checked, so that the record may have others
 * @throws finding `build.record` for an outdated record; `build.spill` for one with kernels that spill, `build.shared` for
 * one with too much static shared memory
 */
export function refuseStale({ texts, unreadable }: TextRecord, { current, stale }: CheckedRecord, isPart: boolean): void {
  const hint = 'run `heddle build --target cuda --check --record` on a machine with nvcc, and commit the record'
  if (stale.size > 0) {
    throw findingError('build.record', `resources.jsonl is outdated for ${stale.size} files: ${listed([...stale].sort())}`, {
      hint,
    })
  }
  const extra = texts.filter((text) => current.get(placeOf(text)) !== text).map(placeOf)
  if (!isPart && extra.length + unreadable > 0) {
    throw findingError('build.record', `resources.jsonl has ${extra.length + unreadable} surplus lines: ${listed(extra)}`, {
      hint,
    })
  }
  const recorded = [...current.values()].map(({ text, resources }) => ({ source: text, resources }))
  refuseShared(recorded)
  refuseSpills(recorded)
}

/** Registers per thread that the hardware grants at once. The sources of a unit change each other's: one has 46 of them among six others, and 48 alone. */
const registerStep = 8

/** True if two compilations of a file have equal resources, up to a step of registers. */
function isSame(line: RecordedText, made: RecordedText): boolean {
  const recorded = new Map(line.resources.map(({ kernel, registers }) => [kernel, registers]))
  const resources = made.resources.map((each) => {
    const registers = recorded.get(each.kernel) ?? each.registers
    return Math.abs(registers - each.registers) <= registerStep ? { ...each, registers } : each
  })
  return recordLine(line) === recordLine({ ...made, resources })
}

/** @throws finding `build.record` if the compiler's resources of a file differ from the record's by more than a step of registers */
export function refuseDifferent(made: readonly RecordedText[], { current }: CheckedRecord): void {
  const different = made.filter((text) => {
    const line = current.get(placeOf(text))
    return line === undefined || !isSame(line, text)
  })
  const [first] = different
  if (first === undefined) return
  const line = current.get(placeOf(first))
  const expected = line === undefined ? 'nothing' : recordLine(line)
  throw findingError(
    'build.record',
    `resources.jsonl disagrees with nvcc for ${listed(different.map(placeOf))}\nrecord: ${expected}\nnvcc:   ${recordLine(first)}`,
    { hint: 'only `heddle build --target cuda --check --record --sample all` writes the record' },
  )
}
