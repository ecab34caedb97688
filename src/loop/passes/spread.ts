/**
 * Rows that are not whole. Where their length is no multiple of the width, neither loads nor stores can move packs, and a chunk of consecutive elements
 * would be moved one by one, 16 bytes from those of the next lane: eight partial writes of each sector. There, the elements of a chunk lie as far apart as
 * a warp has lanes, so that neighbouring lanes move neighbouring elements. It applies to loops in which the place of an element in its chunk has no
 * meaning: elementwise values, reductions, which combine in any order, and scans, whose lanes combine the elements between theirs. The choice depends on the
 * launch alone, never on the row.
 *
 *     c = (chunk * 32 + lane) * VEC + i         becomes, in the version for other rows, c = chunk * 32 * VEC + i * 32 + lane
 *
 * In rows of an even length, elements narrower than a word stay together in pairs, which take half of the instructions: softmax of 8,192 x 4,094 50 -> 40 us,
 * over 256 channels of 196 places 16.4 -> 11.2 (H200). Pairs of words are no faster.
 */
import { numberOf } from '../../schedule/access/access.js'
import { isHostExpr } from '../../schedule/normalise/host_expr.js'
import { contains, sameExpr } from '../../schedule/normalise/rewrite.js'
import { firstOf, placeOf } from '../chunk_values.js'
import { type Access, eachLoop, type LaneLoop, type Loop, type Version } from '../ir.js'
import type { Frame } from '../state.js'
import { placesOf, valuesOf } from '../walk.js'

/** @param frame widths of chunks */
export function spread(loops: readonly Loop[], frame: Pick<Frame, 'widths' | 'bytes'>): readonly Loop[] {
  return loops.map((loop) =>
    loop.kind === 'version' && isSpread(loop, frame.widths) ? { ...loop, apart: true, pairs: staysPaired(loop, frame) } : loop,
  )
}

/** True if elements that lie apart are to stay together in pairs. */
export const staysPaired = (version: Pick<Version, 'body' | 'aligned'>, { bytes }: Pick<Frame, 'bytes'>): boolean =>
  mayPair(version.body) && version.aligned.some(({ tensor }) => (bytes?.get(tensor) ?? 4) < 4)

/** True if elements that lie apart may stay together in pairs: a scan combines what lies between those of a lane, and groups take them one by one. */
export function mayPair(body: readonly Loop[]): boolean {
  let isFree = true
  eachLoop(body, (loop) => {
    isFree &&= loop.kind !== 'groups' && !(loop.kind === 'accumulator' && loop.scan)
  })
  return isFree
}

/** True if elements of chunks are to lie apart in the version for rows that are not whole. @param widths of chunks */
export function isSpread(version: Version, widths: Frame['widths']): boolean {
  const [length] = version.lengths
  const known = length === undefined ? undefined : numberOf(length)
  const isKnown = known !== undefined && widths.every((width) => known % width === 0)
  return !isKnown && widths.some((width) => width !== 1) && mayLieApart(version)
}

/** True if elements of a chunk may lie apart in the version for rows that are not whole. */
export function mayLieApart(version: Version): boolean {
  const { lengths, stated, aligned, multiples, body } = version
  const [length] = lengths
  if (
    length === undefined ||
    !isHostExpr(length) ||
    stated.length > 0 ||
    !lengths.every((other) => other !== undefined && sameExpr(other, length))
  )
    return false
  // A row whose own place decides if it is aligned would have an order of its own.
  const isUniform = aligned.every(({ start }) => start === undefined || multiples.has(start))
  const isMoved = aligned.some(({ start }) => start !== undefined)
  const all: Loop[] = []
  eachLoop(body, (loop) => all.push(loop))
  const lanes = all.filter(isLanes)
  const inLoops = lanes.every((loop) => loop.step === 'chunk' && sameExpr(loop.length, length))
  return isUniform && isMoved && inLoops && all.every((loop) => isOrderless(loop, aligned) && !readsPlaces(loop, lanes))
}

const isLanes = (loop: Loop): loop is LaneLoop => loop.kind === 'for' && loop.owner === 'lane'

/** True for nodes that do the same with the elements of a chunk in any order. */
function isOrderless(loop: Loop, aligned: Version['aligned']): boolean {
  const isCovered = (access: Access): boolean => access.whole || aligned.includes(access)
  switch (loop.kind) {
    case 'copy':
    case 'storeChunk':
      return isCovered(loop.access)
    case 'prefetch':
      return isCovered(loop.copy.access)
    case 'accumulator':
      return !loop.scan || typeof loop.monoid === 'string' || !('next' in loop.monoid)
    case 'let':
      return loop.ofChunk === undefined
    case 'for':
      return loop.owner === 'lane' || loop.owner === 'vector'
    default:
      return orderless.has(loop.kind)
  }
}

const orderless: ReadonlySet<Loop['kind']> = new Set([
  'buffer',
  'compute',
  'fill',
  'accumulate',
  'rescale',
  'combine',
  'exists',
  'store',
])

/** True if a node uses the place of an element in its chunk, or the first of them. */
function readsPlaces(loop: Loop, lanes: readonly LaneLoop[]): boolean {
  const places = new Set(lanes.flatMap(({ index }) => [firstOf(index), placeOf(index)]))
  return [...valuesOf(loop), ...placesOf(loop)].some((e) => contains(e, (node) => node.kind === 'index' && places.has(node.name)))
}
