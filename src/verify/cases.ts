/**
 * The shapes, alignments and values that every kernel instance is run with. Generated from the manifest alone, so a new op is
 * covered as soon as it is compiled. A case is named by its parameters; its name seeds its values.
 */
import type { KernelEntry } from '../emit/manifest/manifest.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { HostTensor } from '../ir/evaluate.js'
import { roundTo } from '../runtime/numbers.js'
import type { OpRule } from './op_rule.js'
import { normal, type Random, random, smallInteger } from './random.js'
import { rowOf, ruleOf, triedBy } from './rules.js'

/** `integer`: +-1 and +-2, on which `exact` ops are exact; `normal`: standard normal. */
export type Draw = 'integer' | 'normal'

/** The root mean square of drawn values: of 1, 1, 2 and 2, and of the standard normal distribution. */
export const drawnSize: Readonly<Record<Draw, number>> = { integer: Math.sqrt(2.5), normal: 1 }

export interface KernelCase {
  /** `layer_norm__f16 m=3 n=129 integer shift=1` */
  readonly name: string
  readonly entry: KernelEntry
  readonly dims: Readonly<Record<string, number>>
  readonly attrs: Readonly<Record<string, number>>
  readonly draw: Draw
  /** Elements by which every buffer starts after an aligned address. */
  readonly shift: number
}

/** Lengths around the widths at which schedules change: one vector, one warp, a block's threads, the capacity of registers, and beyond. */
function rowLengths(vector: number): number[] {
  const edges = [vector, 2 * vector, 32, 64, 128, 256, 512, 1024, 4096, 8192]
  return [...new Set([1, 2, 3, 5, 7, ...edges.flatMap((edge) => [edge - 1, edge, edge + 1]), 96, 192, 768, 1536, 3072, 10_007])]
    .filter((length) => length > 0)
    .sort((a, b) => a - b)
}

/** Extents of the outer dimensions: all one, then primes that no two dimensions share. */
const outerExtents: readonly (readonly number[])[] = [
  [1, 1, 1],
  [2, 3, 5],
  [5, 2, 3],
  [7, 5, 2],
]

/** Outer dimensions that have an extent there. */
const few = 3

/** Extents of the outer dimensions of a sweep: further ones vary three at a time, and all together. */
const outerOf = ({ outer }: Sweep): readonly (readonly number[])[] => {
  if (outer.length <= few) return outerExtents
  const places = Array.from({ length: Math.ceil(outer.length / few) - 1 }, (_, group) => few * (group + 1))
  const [, primes = []] = outerExtents
  return [...outerExtents, ...places.map((place) => [...outer.slice(0, place).map(() => 1), ...primes]), outer.map(() => 2)]
}

/** More rows than the second dimension of a CUDA grid may have; and so many that a schedule no longer spreads them. */
const manyRows: readonly (readonly [rows: number, lengths: readonly number[]])[] = [
  [65_537, [1, 4]],
  [600, [100, 300, 500]],
]

/** Most elements of a buffer: a body computes them in a moment. */
const largestCase = 330_000

/** Most elements of a buffer if facts allow nothing smaller: a tile of two extents that are multiples of 1024. */
const largestLeast = 2_000_000

/** Number of sizes tried in that case: the least, and another one. */
const leastSizes = 2

/** Most elements that a body may read if each element of a column reads the whole column. */
const largestAcross = 1_000_000

/** Most elements of a buffer in a check: enough to try every length, and few enough for the slower interpreter; all with `thorough`. */
export const checkedElements = { usual: 12_000, thorough: largestCase } as const

/** A dimension that takes every row length, and those that take a few extents. */
interface Sweep {
  readonly row: string
  readonly outer: readonly string[]
}

/**
 * The swept dimensions of a kernel. The row is the last dimension of the buffer with the most dimensions, unless facts state another. If it is
 * fixed, the kernel was written for its extent alone, and every other dimension is swept in turn. Dimensions that loops reduce take every
 * length as well. So do those that column reductions run across, while a body, which computes a reduction for each element, ends in a moment.
 */
function sweepsOf(entry: KernelEntry, { derived, swept }: OpRule): Sweep[] {
  const row = rowOf(entry)
  const free = entry.dims.filter((name) => !derived.includes(name) && entry.fixedDims[name] === undefined)
  const outputs = entry.buffers.flatMap(({ access, dims }) => (access === 'out' ? dims : []))
  const across = entry.facts?.across ?? []
  const isSwept = (name: string): boolean =>
    free.includes(name) && name !== row && (!outputs.includes(name) || across.includes(name))
  const combined = (entry.facts?.loops ?? []).filter(isSwept)
  const usual = entry.fixedDims[row] === undefined && !derived.includes(row) ? [row, ...combined] : free
  const rows = swept?.filter((name) => free.includes(name)) ?? usual
  // A kernel of fixed sizes has a single case.
  const each = rows.length === 0 ? [row] : rows
  return each.map((name) => ({ row: name, outer: free.filter((other) => other !== name) }))
}

const elementsOf = (entry: KernelEntry, dims: Readonly<Record<string, number>>): number =>
  Math.max(...entry.buffers.map((buffer) => buffer.dims.reduce((product, name) => product * (dims[name] ?? 1), 1)))

const draws: readonly Draw[] = ['integer', 'normal']

/** Elements by which buffers start after an aligned address. */
const shifts: readonly number[] = [1, 3]

/** Selection of a kernel's cases: `each` one, or few of them `by turns`: see `casesOf`. */
export type Drawn = 'each' | 'by turns'

/**
 * Every case of one kernel instance whose buffers have at most `largest` elements; those of the least sizes if facts allow no such case
 * (extents that are 128 times others). Empty only if not even those can be run: see `whyNone`.
 * @param drawn `by turns` gives a fifth of the cases: every row length is combined with one choice of outer extents and one draw, every other
 *   one with a shift; other swept dimensions take a third of the lengths. Instances of an op, which share schedules, take different turns.
 * @throws usage `verify.fact` for an instance that reads integers without a fact
 */
export function casesOf(entry: KernelEntry, largest = largestCase, drawn: Drawn = 'each'): readonly KernelCase[] {
  const found = casesWithin(entry, largest, drawn)
  return found.length > 0 ? found : leastOf(casesWithin(entry, largestLeast, drawn))
}

/** The cases of the least sizes. */
function leastOf(cases: readonly KernelCase[]): readonly KernelCase[] {
  const sizes = [...new Set(cases.map(({ entry, dims }) => elementsOf(entry, dims)))].sort((a, b) => a - b).slice(0, leastSizes)
  return cases.filter(({ entry, dims }) => sizes.includes(elementsOf(entry, dims)))
}

/** Message that explains why a kernel has no cases. */
export function whyNone(entry: KernelEntry): string {
  const dims = ruleOf(entry).extents({ ...Object.fromEntries(entry.dims.map((name) => [name, 1])), ...entry.fixedDims })
  const extents = entry.dims.map((name) => `${name}=${dims[name]}`).join(' ')
  const elements = elementsOf(entry, dims)
  return elements > largestLeast
    ? `nothing was compared: of its least sizes, ${extents}, a buffer has ${elements} elements, and at most ${largestLeast} are tried`
    : `nothing was compared: its least sizes, ${extents}, are beyond what its facts allow`
}

function casesWithin(entry: KernelEntry, largest: number, drawn: Drawn): KernelCase[] {
  const rule = ruleOf(entry)
  const elementBytes = Math.min(...entry.buffers.map(({ dtype }) => dtypeInfo[dtype].bytes))
  const cases = new Map<string, KernelCase>()
  const own = shareOf(entry.key)

  /** Adds a case. Returns true if it is within the limits. */
  const add = ({ row, outer }: Sweep, outerSizes: readonly number[], length: number, draw: Draw, shift: number): boolean => {
    const free = Object.fromEntries(outer.map((name, i) => [name, outerSizes[i] ?? 1]))
    const given = { ...free, [row]: length, ...entry.fixedDims }
    const dims = rule.extents(given)
    if (draw === 'normal' && rule.combined(dims, row) < rule.normalFrom) return false
    const isAcross = entry.facts?.across?.includes(row) === true
    if (isAcross && elementsOf(entry, dims) * length > largestAcross) return false
    if (elementsOf(entry, dims) > largest || entry.dims.some((name) => (dims[name] ?? 1) > (rule.upTo[name] ?? Infinity)))
      return false
    const extents = entry.dims.map((name) => `${name}=${dims[name]}`).join(' ')
    const name = `${entry.key} ${extents} ${draw}${shift > 0 ? ` shift=${shift}` : ''}`
    const chosen = rule.attrs(dims)
    const attrs = Object.fromEntries(entry.attrs.map((attr) => [attr.name, chosen[attr.name] ?? attr.default]))
    cases.set(name, { name, entry, dims, attrs, draw, shift })
    return true
  }

  const addEach = (sweep: Sweep): void => {
    for (const length of rowLengths(16 / elementBytes)) {
      for (const sizes of outerOf(sweep)) for (const draw of draws) add(sweep, sizes, length, draw, 0)
      for (const shift of shifts) add(sweep, outerExtents[1] ?? [], length, 'integer', shift)
    }
    for (const [rows, lengths] of manyRows) for (const length of lengths) add(sweep, [rows], length, 'integer', 0)
  }
  const addByTurns = (sweep: Sweep, isFirst: boolean): void => {
    const choices = outerOf(sweep)
    for (const [i, length] of rowLengths(16 / elementBytes).entries()) {
      const turn = i + own
      if (!isFirst && turn % 3 !== 0) continue
      // Successive lengths rotate through the choices of outer extents, and change the draw after each round. If a combination is too large,
      // or the row too short for the draw, the next one is used.
      const sizes = inTurn(choices, turn)
      const drawnNow = inTurn(draws, Math.floor(turn / choices.length))
      sizes.some((chosen) => drawnNow.some((draw) => add(sweep, chosen, length, draw, 0)))
      if (turn % 2 === 0) add(sweep, outerExtents[1] ?? [], length, 'integer', shifts[(turn / 2) % shifts.length] ?? 0)
    }
    for (const [rows, lengths] of manyRows) add(sweep, [rows], lengths[own % lengths.length] ?? 1, 'integer', 0)
  }

  for (const [i, sweep] of sweepsOf(entry, rule).entries()) drawn === 'each' ? addEach(sweep) : addByTurns(sweep, i === 0)
  const { shared } = rule
  // By turns, one instance tries the cases of several.
  const turns = drawn === 'each' ? shared : Math.ceil(shared / triedBy)
  // With fewer cases than instances, some try the same.
  const share = Math.max(1, Math.min(turns, cases.size))
  return [...cases.values()].filter((_, i) => i % share === own % share)
}

/** The list rotated by the turn. */
const inTurn = <T>(list: readonly T[], turn: number): readonly T[] => {
  const first = turn % list.length
  return [...list.slice(first), ...list.slice(0, first)]
}

/** A number that differs between the instances of an op. */
const shareOf = (key: string): number => [...key].reduce((hash, letter) => (hash * 31 + letter.charCodeAt(0)) % 65_521, 7)

/** The inputs of a case: logical values, already rounded to their storage types. */
export function inputsOf({ name, entry, dims, draw }: KernelCase): Readonly<Record<string, HostTensor>> {
  const rule = ruleOf(entry)
  const value: (next: Random) => number = draw === 'integer' ? smallInteger : normal
  const inputs = entry.buffers.filter(({ access }) => access === 'in')
  return Object.fromEntries(
    inputs.map((buffer) => {
      const next = random(`${name} ${buffer.name}`)
      const shape = buffer.dims.map((dim) => dims[dim] ?? 1)
      const special = rule.inputs[buffer.name]
      const length = shape.reduce((product, extent) => product * extent, 1)
      const drawn = special?.({ next, value, dims, shape }) ?? new Float64Array(length).map(() => value(next))
      return [buffer.name, { data: roundTo(buffer.dtype, drawn), shape }]
    }),
  )
}
