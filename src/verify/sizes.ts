/** Extents of a kernel's dimensions by its facts: the derived dimensions, and their values. */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { type Count, evaluateCount, namesOf } from '../ir/facts/facts.js'
import { at, type Extents, longestRagged, raggedRows } from './ragged.js'

type Facts = NonNullable<KernelEntry['facts']>

/** Lengths of drawn sequences: differing, or all equal for measurements. */
export type Sequences = 'ragged' | { readonly rows: number }

/** Rows of a table that only its indices bound: a prime, and more than a warp. */
const tableRows = 61
/** Rows of a table whose rows are tensors themselves, so that many cases stay small. */
const tablesOfTensors = 7
/** Excess of an extent over its least. */
const spare = 3
/** Largest extent of a dimension that is only bounded above: bodies of such ops compare all pairs. */
const mostBounded = 7

export interface Sizes {
  readonly derived: readonly string[]
  readonly extents: (given: Extents) => Extents
}

/** Names of an entry's dimensions among those of a count. */
const dimsIn = (entry: Pick<KernelEntry, 'dims'>, count: Count): readonly string[] =>
  namesOf(count).filter((name) => entry.dims.includes(name))

/** The sizes of an entry. @param spread dimensions whose extents vary with the row length, without being swept */
export function sizesOf(entry: KernelEntry, facts: Facts, sequences: Sequences, spread: readonly string[]): Sizes {
  const rules: ((known: Record<string, number>) => void)[] = []
  const derived = new Set<string>(spread)
  const set = (name: string, value: (known: Extents) => number | undefined): void => {
    if (entry.fixedDims[name] !== undefined) return
    derived.add(name)
    rules.push((known) => {
      const found = value(known)
      if (found !== undefined) known[name] = Math.max(1, found)
    })
  }
  const outputs = new Set(entry.buffers.flatMap(({ access, dims }) => (access === 'out' ? dims : [])))
  const isFree = (name: string): boolean =>
    !(outputs.has(name) || facts.loops.includes(name) || facts.dims[name] !== undefined || derived.has(name))
  const packed = Object.values(facts.inputs).flatMap((domain) => domain.packed ?? [])
  const packedNames = packed.flatMap(({ batch, rows, seq = 0 }) => [batch, rows, seq].flatMap(namesOf))
  const bounds = Object.values(facts.inputs).flatMap(({ to = [] }) => to.flatMap((count) => dimsIn(entry, count)))
  for (const name of bounds) if (isFree(name) && !packedNames.includes(name)) set(name, () => rowsOfTable(entry, name))
  for (const { batch, rows, seq } of packed) {
    const count = (known: Extents) => evaluateCount(batch, known) ?? 1
    if (typeof rows === 'string' && entry.dims.includes(rows)) set(rows, (known) => rowsOf(count(known), sequences))
    if (typeof seq === 'string' && entry.dims.includes(seq)) set(seq, () => longestOf(sequences))
  }
  // Attributes that extents depend on have their defaults.
  const usual = Object.fromEntries(entry.attrs.map((attr) => [attr.name, attr.default]))
  for (const [name, { equal, atLeast, atMost, multipleOf }] of Object.entries(facts.dims)) {
    if (atMost !== undefined) set(name, (known) => Math.min(mostBounded, evaluateCount(atMost, { ...usual, ...known }) ?? 1))
    if (atLeast !== undefined) {
      const sized = { ...usual, '(seq)': longestOf(sequences) }
      if (entry.fixedDims[name] === undefined) set(name, (known) => (evaluateCount(atLeast, { ...sized, ...known }) ?? 1) + spare)
      else for (const other of dimsIn(entry, atLeast)) set(other, () => largestWithin(atLeast, other, at(entry.fixedDims, name)))
    }
    if (equal !== undefined) set(name, (known) => evaluateCount(equal, { ...usual, ...known }))
    if (multipleOf !== undefined) rules.push((known) => roundUp(known, name, multipleOf))
  }
  return {
    derived: [...derived],
    extents: (given) => {
      const known: Record<string, number> = { ...given, ...entry.fixedDims }
      // Two passes: an extent may follow from one that a later rule sets.
      for (let pass = 0; pass < 2; pass++) for (const rule of rules) rule(known)
      return { ...known, ...entry.fixedDims }
    },
  }
}

function roundUp(known: Record<string, number>, name: string, multipleOf: number): void {
  const extent = known[name]
  if (extent !== undefined) known[name] = Math.ceil(extent / multipleOf) * multipleOf
}

const rowsOfTable = ({ buffers }: KernelEntry, name: string): number =>
  buffers.some(({ dims }) => dims.includes(name) && dims.length > 2) ? tablesOfTensors : tableRows

const rowsOf = (batch: number, sequences: Sequences): number =>
  sequences === 'ragged' ? raggedRows(batch) : sequences.rows * batch

const longestOf = (sequences: Sequences): number => (sequences === 'ragged' ? longestRagged : sequences.rows)

/** The largest extent of a dimension for which a count is within a limit. */
function largestWithin(count: Count, name: string, limit: number): number {
  for (let extent = mostBounded; extent > 1; extent--) if ((evaluateCount(count, { [name]: extent }) ?? 0) <= limit) return extent
  return 1
}
