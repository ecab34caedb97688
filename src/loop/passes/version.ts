/**
 * Loop versioning: before the first loop of a row, one test decides if every chunk of its loops is full and aligned, as far as that is known before
 * the first reduction. It covers rows in one run whose offset depends on no later result. The chunks of the fast version need no checks.
 */
import type { Expr } from '../../ir/expr.js'
import { isFull, noMultiples } from '../../schedule/access/multiples.js'
import { passStatementOf } from '../../schedule/constructs/index.js'
import { contains, sameExpr } from '../../schedule/normalise/rewrite.js'
import { isOneRun } from '../access.js'
import { type Access, eachLoop, type LaneLoop, type Loop, mapLoops, type Offset, type Version } from '../ir.js'
import type { Frame } from '../state.js'
import { countsPlaces } from './count_places.js'
import { isSpread, staysPaired } from './spread.js'

type Known = Pick<Frame, 'widths' | 'multiples' | 'bytes'>

/** @param frame widths of chunks, and what facts state of dimensions */
export function version(loops: readonly Loop[], frame: Known): readonly Loop[] {
  const together = loops.some((loop) => loop.kind === 'for' && loop.owner === 'lane' && loop.together)
  const spread = together ? versionOf(loops, frame, hasChunks) : []
  return spread.some((loop) => loop.kind === 'version' && isSpread(loop, frame.widths))
    ? spread
    : versionOf(loops, frame, isVersioned)
}

/** @param isIn true for loops that the test covers */
function versionOf(loops: readonly Loop[], frame: Known, isIn: typeof isVersioned): readonly Loop[] {
  const first = loops.findIndex(({ kind }) => kind !== 'let')
  const [before, after] = [loops.slice(0, first), loops.slice(first)]
  const segments = segmentsOf(after)
  const versioned = segments.flatMap(({ loop }) => (isIn(loop) ? [loop] : []))
  if (hasOneCopy(after) || versioned.length === 0) return loops
  const ready = new Set(before.flatMap((loop) => (loop.kind === 'let' ? [loop.name] : [])))
  const isKnown = (e: Expr): boolean => !contains(e, (node) => node.kind === 'local' && !ready.has(node.name))
  const offsets = new Map(after.flatMap((loop) => (loop.kind === 'offset' ? [[loop.name, loop]] : [])))
  const offsetOf = ({ start }: Access): Offset | undefined => (start === undefined ? undefined : offsets.get(start))
  const covers = (access: Access): boolean => {
    const offset = offsetOf(access)
    return isOneRun(access) && (offset === undefined || isKnown(offset.value))
  }
  const covered = segments.flatMap(({ loop, nodes }) => (isIn(loop) ? accessesOf(nodes).filter(covers) : []))
  const hoisted = new Set(covered.flatMap((access) => offsetOf(access) ?? []))
  const lengths = versioned.map(({ length }) => (isKnown(length) ? length : undefined))
  // Chunks of one row that begins with its tensors are aligned with them, and all but the last are full.
  const ofChunk = countsPlaces(after) && covered.every((access) => offsetOf(access) === undefined)
  const inGroups = new Set(covered.flatMap(({ factor, start }) => (factor === undefined ? [] : [start])))
  const multiples = [...hoisted].filter(
    ({ name, value }) => !inGroups.has(name) && lengths.some((length) => length !== undefined && isMultiple(value, length)),
  )
  return [
    ...before,
    ...hoisted,
    {
      kind: 'version',
      ...(ofChunk ? { lengths: [], stated: [], ofChunk } : testedLengths(lengths, frame)),
      aligned: covered,
      multiples: new Set(multiples.map(({ name }) => name)),
      body: withoutChecks(
        after.filter((loop) => loop.kind !== 'offset' || !hoisted.has(loop)),
        covers,
      ),
    },
  ]
}

/** Lengths to test, and those that facts state to be multiples of every width. */
export function testedLengths(
  all: readonly (Expr | undefined)[],
  { widths, multiples = noMultiples }: Known,
): Pick<Version, 'lengths' | 'stated'> {
  const isStated = (length: Expr | undefined): length is Expr => length !== undefined && isFull(length, widths, multiples)
  return { lengths: all.filter((length) => !isStated(length)), stated: all.filter(isStated) }
}

/** True if an offset is a sum of products with a length as a factor. */
export function isMultiple(offset: Expr, length: Expr): boolean {
  if (offset.kind !== 'call') return false
  if (offset.fn === 'add') return offset.args.every((part) => isMultiple(part, length))
  return offset.fn === 'mul' && offset.args.some((part) => sameExpr(part, length) || isMultiple(part, length))
}

/**
 * Versions of programs whose rows are divided. One test covers all of them: chunks are full and aligned if the number of columns is a multiple of
 * the width, and the first element of every tensor of packed rows is aligned.
 */
export function versionWalks(loops: readonly Loop[], frame: Known): readonly Loop[] {
  const first = loops.findIndex(({ kind }) => kind !== 'let')
  const after = loops.slice(first)
  const lengths = after.flatMap((loop) => {
    if (loop.kind !== 'for' || !('step' in loop) || loop.step === 'element') return []
    return loop.owner === 'lane' ? [loop.length] : loop.loops.slice(-1).map(({ length }) => length)
  })
  if (lengths.length === 0) return loops
  const isPacked = ({ rows }: Access): boolean => rows === 'packed'
  const isApart = accessesOf(after).every(isPacked)
  const spread = (node: Loop): Loop => (isColumns(node) ? { ...node, apart: isApart } : node)
  const body = mapLoops(after, (node) => unchecked(node, isPacked).map(spread))
  const aligned = accessesOf(after).filter(isPacked)
  let pairs = false
  eachLoop(body, (node) => {
    pairs ||= isColumns(node) && isApart && staysPaired({ body, aligned }, frame)
  })
  return [
    ...loops.slice(0, first),
    { kind: 'version', ...testedLengths(lengths, frame), aligned, multiples: new Set(), ...(pairs ? { pairs } : {}), body },
  ]
}

const isColumns = (node: Loop): node is LaneLoop => node.kind === 'for' && node.owner === 'lane' && node.walk === 'columns'

/** A loop of a row, after what is declared and loaded for it. */
interface Segment {
  readonly nodes: readonly Loop[]
  /** The last of the nodes; undefined after the last loop of a row. */
  readonly loop: LaneLoop | undefined
}

/** Parts of a row that end with a loop over its elements. */
export function segmentsOf(loops: readonly Loop[]): readonly Segment[] {
  const segments: Segment[] = []
  let nodes: Loop[] = []
  for (const loop of loops) {
    nodes.push(loop)
    if (loop.kind !== 'for' || loop.owner !== 'lane') continue
    segments.push({ nodes, loop })
    nodes = []
  }
  return nodes.length === 0 ? segments : [...segments, { nodes, loop: undefined }]
}

/** True if a loop has chunks, which may lie apart. */
const hasChunks = (loop: LaneLoop | undefined): loop is LaneLoop => loop !== undefined && loop.step === 'chunk'

/** True if a loop has a version for whole rows: lanes that meet in every chunk check them all, and lanes with single elements have no chunks. */
const isVersioned = (loop: LaneLoop | undefined): loop is LaneLoop =>
  loop !== undefined && loop.step === 'chunk' && !loop.together

/**
 * True if the source of a row is not written twice: recurrences with row state, counts and rows that are kept whole would have memory in each copy.
 * For a ranking, the gain in its other loops is smaller than the cost of a second copy of it.
 */
function hasOneCopy(loops: readonly Loop[]): boolean {
  const kinds = new Set<string>()
  eachLoop(loops, (loop) => {
    if (loop.kind === 'call') kinds.add(loop.stmt.kind)
    if (loop.kind === 'search') kinds.add(passStatementOf(loop.stmt).meets ? 'meets' : loop.stmt.kind)
    if (loop.kind === 'shared') kinds.add('shared')
    if (loop.kind === 'barrier' && loop.publishes.length === 0) kinds.add('replaces')
  })
  const replacesRow = kinds.has('shared') && kinds.has('replaces')
  return kinds.has('foldState') || kinds.has('meets') || kinds.has('counts') || replacesRow
}

/** Chunk accesses, in the order of the loops they belong to: loads, then stores. */
function accessesOf(loops: readonly Loop[]): readonly Access[] {
  const accesses: Access[] = []
  eachLoop(loops, (loop) => {
    if (loop.kind === 'copy' || loop.kind === 'storeChunk') accesses.push(loop.access)
  })
  return accesses
}

/** A node without checks of its access, if `covers` accepts it, or of its elements. */
function unchecked(node: Loop, covers: (access: Access) => boolean): readonly Loop[] {
  if (node.kind === 'copy' || node.kind === 'storeChunk')
    return [{ ...node, access: { ...node.access, whole: covers(node.access) } }]
  return [node.kind === 'exists' ? { ...node, whole: true } : node]
}

/** The loops, without checks of the accesses that `covers` accepts and of elements, as far as loops have a version for whole rows. */
export const withoutChecks = (loops: readonly Loop[], covers: (access: Access) => boolean): readonly Loop[] =>
  segmentsOf(loops).flatMap(({ nodes, loop }) => (isVersioned(loop) ? mapLoops(nodes, (node) => unchecked(node, covers)) : nodes))
