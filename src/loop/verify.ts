/**
 * Verifier of the loop IR, run after each pass. Names are declared once, and before they are read. Elements are computed by loops over vectors, and
 * those that may not exist are neither stored nor accumulated. Lanes meet only where all of them pass. An accumulator is combined once across the
 * elements of each chunk and once across lanes, after its loop. Those of a loop that several threads of a column or blocks divide are exchanged once,
 * outside of it. Accesses without checks stand in the version for whole rows, which tests them.
 */

import { visit } from '../ir/walk.js'
import { passStatementOf } from '../schedule/constructs/index.js'
import { usesIndex } from '../schedule/normalise/rewrite.js'
import { firstOf, placeOf } from './chunk_values.js'
import { publishedBy } from './constructs.js'
import {
  type Access,
  bodyOf,
  type Copy,
  type DividedLoop,
  type LaneLoop,
  type Loop,
  mapLoops,
  type Span,
  type TileLoop,
  type Version,
  type Work,
  wholeFlag,
} from './ir.js'
import { mayLieApart, mayPair } from './passes/spread.js'
import { verifyHeld } from './verify_held.js'
import { verifyCombines, verifyDeclarations, verifyMultiples } from './verify_once.js'
import { verifyShifts } from './verify_shifts.js'
import { allocated, filled, indicesOf, published, verifyWork } from './verify_work.js'
import { placesOf, valuesOf } from './walk.js'

/** Place of a node. */
interface Inside {
  /** Names that can be read. */
  readonly names: Set<string>
  readonly lanes?: LaneLoop
  /** The loop that slots or the grid divide. */
  readonly divided?: DividedLoop
  readonly vector: boolean
  readonly exists: boolean
  readonly version?: Version
  readonly work?: Work
  readonly tiles?: TileLoop
  readonly fail: (reason: string) => never
}

/** @throws internal error that names the pass and the rule */
export function verifyLoops(loops: readonly Loop[], pass: string): void {
  const fail = (reason: string): never => {
    throw new Error(`internal: ${pass}: ${reason}`)
  }
  // Chunks in one piece have a body with names of its own.
  const pieces: Loop[] = []
  const rest = mapLoops(loops, (loop) => {
    if (loop.kind !== 'piece') return [loop]
    pieces.push(...loop.body)
    return [{ ...loop, body: [] }]
  })
  for (const part of [rest, pieces]) {
    verifyDeclarations(part, fail)
    verifyMultiples(part, fail)
    verifyCombines(part, fail)
    verifyShifts(part, fail)
    verifyHeld(part, fail)
  }
  verifyBody(loops, { names: new Set(), vector: false, exists: false, fail })
}

function verifyBody(loops: readonly Loop[], inside: Inside): void {
  for (const loop of loops) {
    verifyReads(loop, inside)
    verifyPlace(loop, inside)
    const names = loop.kind === 'exists' ? inside.names : new Set(inside.names)
    for (const name of namesInside(loop)) names.add(name)
    verifyBody(bodyOf(loop), {
      ...inside,
      names,
      ...(loop.kind === 'for' && loop.owner === 'lane' ? { lanes: loop } : {}),
      ...(isDivided(loop) ? { divided: loop } : {}),
      ...(loop.kind === 'version' ? { version: loop } : {}),
      ...(loop.kind === 'work' ? { work: loop } : {}),
      ...(loop.kind === 'for' && loop.owner === 'block' ? { tiles: loop } : {}),
      vector:
        inside.vector || (loop.kind === 'for' && (loop.owner === 'vector' || (loop.owner === 'lane' && loop.step === 'element'))),
      exists: inside.exists || loop.kind === 'exists' || (loop.kind === 'for' && 'step' in loop && loop.step === 'element'),
    })
    for (const name of definedBy(loop)) inside.names.add(name)
  }
}

const isDivided = (loop: Loop): loop is DividedLoop => 'loops' in loop

/** Names that can be read in the body of a node. */
function namesInside(loop: Loop): readonly string[] {
  switch (loop.kind) {
    case 'version':
      return [wholeFlag]
    case 'piece':
      return [loop.index]
    case 'work':
      return indicesOf(loop)
    case 'for':
      if ('loops' in loop) return loop.loops.map(({ index }) => index)
      if (loop.owner === 'block') return [loop.rows.index, ...loop.tiles]
      return [loop.index, loop.owner === 'lane' ? firstOf(loop.index) : placeOf(loop.index)]
    default:
      return []
  }
}

/** Names that can be read after a node. */
function definedBy(loop: Loop): readonly string[] {
  switch (loop.kind) {
    case 'let':
    case 'offset':
    case 'prefetch':
    case 'buffer':
    case 'announce':
    case 'held':
      return [loop.name]
    case 'narrow':
      return [loop.interval.axis.index]
    case 'tile':
      return [allocated(loop.name)]
    case 'fillTile':
      return [filled(loop.tile)]
    case 'accumulator':
      return [loop.name, ...loop.rows.map(({ row }) => row)]
    case 'count':
      return [...loop.quotients, ...loop.remainders]
    case 'copy':
      return (loop.span?.rows ?? loop.members ?? [loop]).map(({ row }) => row)
    case 'compute':
    case 'groups':
      return [loop.row]
    case 'combine':
      return loop.into.map(({ name }) => name)
    case 'exchange':
      return loop.parts.flatMap(({ into }) => into.map(({ name }) => name))
    case 'barrier':
      return loop.scope === 'block' ? loop.publishes.map(published) : loop.publishes
    case 'rescale':
      return loop.accumulator.shift === undefined ? [] : [loop.accumulator.shift]
    case 'search':
      return loop.part === 'finish' ? publishedBy(loop.stmt) : []
    case 'call':
      return loop.stmt.kind === 'team'
        ? [loop.stmt.name]
        : loop.stmt.fields.flatMap(({ is, before, after, result }) => (is === 'row' ? [before, after, result] : [result]))
    default:
      return []
  }
}

/** Names in a loop of its own, such as that of a search, are its own. */
function verifyReads(loop: Loop, { names, fail }: Inside): void {
  if (loop.kind === 'call' || loop.kind === 'search') return
  const bound = boundIn(loop)
  for (const expr of [...valuesOf(loop), ...placesOf(loop)]) {
    visit(expr, (node) => {
      if (node.kind === 'fold') bound.add(node.index)
    })
    visit(expr, (node) => {
      if (node.kind === 'index' && !names.has(node.name) && !bound.has(node.name))
        fail(`the index ${node.name} is read outside of its loop`)
      if (node.kind === 'local' && !names.has(node.name)) fail(`${node.name} is read before it is computed`)
      if (node.kind === 'element' && !names.has(node.row)) fail(`an element of ${node.row} is read before it is computed`)
    })
  }
  const used = 'access' in loop ? [loop.access.start] : loop.kind === 'exchange' ? [loop.through] : []
  const others = loop.kind === 'accumulate' ? [loop.into.name] : loop.kind === 'fill' ? [loop.buffer] : []
  const prefetched = loop.kind === 'copy' ? [loop.prefetched, loop.held?.rows] : []
  for (const name of [...used, ...others, ...prefetched])
    if (name !== undefined && !names.has(name)) fail(`${name} is used before it is declared`)
}

/** Indices of places that a node moves through by itself. */
function boundIn(loop: Loop): Set<string> {
  if (loop.kind === 'for' && 'loops' in loop) return new Set(loop.loops.map(({ index }) => index))
  if (loop.kind === 'groups') return new Set([loop.group])
  if (loop.kind === 'fillTile') return new Set([loop.rows.index, loop.columns.index])
  if (loop.kind === 'prefetch') return new Set([loop.copy.access.index])
  return new Set('access' in loop ? [loop.access.index] : [])
}

function verifyPlace(loop: Loop, inside: Inside): void {
  const { lanes, divided, vector, exists, fail } = inside
  verifyWork(loop, inside)
  const meets = isMeeting(loop)
  if (meets && (vector || divided !== undefined || (lanes !== undefined && !lanes.together)))
    fail('lanes meet where not all of them pass')
  if ('access' in loop) verifyAccess(loop.access, inside)
  switch (loop.kind) {
    case 'for':
      if (!mayStand(loop, inside)) fail(`a loop of ${loop.owner}s stands in another`)
      return
    case 'compute':
    case 'fill':
      if (!vector) fail('an element is computed outside of a loop over elements')
      return
    case 'groups':
      if (lanes?.walk !== 'columns') fail('values of groups of columns are computed without columns')
      if (usesIndex(loop.value, loop.column)) fail(`a value of a group depends on the column ${loop.column}`)
      return
    case 'count':
      if (!vector || exists) fail(`${loop.index} is not counted for each element`)
      return
    case 'accumulate':
    case 'put':
      if (!vector || !exists) fail('an element that may not exist is collected')
      if (loop.kind === 'accumulate' && loop.into.columns === true && divided?.owner !== 'slot')
        fail('a column collects what all of its threads have')
      return
    case 'store':
      if (!isStoredOnce(loop.by, inside)) fail(`an element of ${loop.tensor} is stored by the wrong lanes`)
      return
    case 'storeChunk':
      if (!hasChunks(inside) || vector) fail(`a chunk of ${loop.access.tensor} is stored outside of a loop over chunks`)
      return
    case 'copy':
      if (vector || (loop.shape === 'chunk') !== hasChunks(inside)) fail(`${loop.row} is loaded at the wrong place`)
      if (loop.span !== undefined) verifySpan(loop, loop.span, inside)
      return
    case 'version':
      if (loop.apart === true && !mayLieApart(loop)) fail('elements of a chunk lie apart whose places have a meaning')
      if (loop.pairs === true && !mayPair(loop.body)) fail('elements stay in pairs that are combined one by one')
      if (loop.ofChunk === true && (inside.work?.owner !== 'thread' || loop.aligned.some(({ start }) => start !== undefined)))
        fail('a full chunk is taken for aligned that may not be')
      return
    case 'exists':
      if (loop.whole && (inside.version === undefined || meetsInChunks(lanes)))
        fail('elements of a row that may have a tail are not checked')
      return
    default:
  }
}

/** True for a loop whose iterations are not divided again by those who run it. Rows are divided among the slots of a chunk of columns. */
function mayStand({ owner }: Extract<Loop, { readonly kind: 'for' }>, { lanes, divided, vector, work, tiles }: Inside): boolean {
  if (vector || (divided !== undefined && owner !== 'vector')) return false
  if (owner === 'vector') return lanes !== undefined || divided !== undefined
  if (owner === 'block') return lanes === undefined && tiles === undefined && work?.owner === 'block'
  return owner === 'slot' ? lanes?.walk === 'columns' : lanes === undefined
}

/** True where a thread has a chunk that no other thread has. */
const hasChunks = ({ lanes, divided }: Inside): boolean =>
  divided === undefined ? lanes !== undefined && lanes.walk !== 'columns' : divided.step === 'chunk'

function isStoredOnce(by: 'owner' | 'first lane' | 'first slot', { lanes, divided, vector, exists }: Inside): boolean {
  if (by === 'first lane') return lanes === undefined && divided === undefined
  const isElement = vector && exists
  return isElement && (by === 'owner') === (divided !== undefined || lanes?.walk !== 'columns')
}

/** True if lanes that have no chunk run a loop too. Those of columns check that they have one. */
const meetsInChunks = (lanes: LaneLoop | undefined): boolean => lanes?.together === true && lanes.walk !== 'columns'

/** True if all lanes of the row must reach a node together. */
const isMeeting = (loop: Loop): boolean =>
  loop.kind === 'barrier' ||
  loop.kind === 'announce' ||
  loop.kind === 'exchange' ||
  loop.kind === 'groups' ||
  loop.kind === 'call' ||
  (loop.kind === 'combine' && loop.across === 'lane') ||
  (loop.kind === 'search' &&
    (loop.part === 'finish' || loop.part === 'declare' || (loop.part === 'leaveChunk' && passStatementOf(loop.stmt).meets)))

/** Checks that a span holds the elements of its rows, and is loaded by a thread with one chunk. */
function verifySpan({ row, shape, prefetched }: Copy, { before, after, rows }: Span, { lanes, fail }: Inside): void {
  if (rows.some(({ shift }) => shift < -before || shift > after)) fail(`the span of ${row} ends before its elements`)
  if (shape !== 'chunk' || prefetched !== undefined || lanes?.walk !== 'single')
    fail(`a span of ${row} is loaded by no single thread`)
}

function verifyAccess(access: Access, { version, fail, lanes }: Inside): void {
  if (!access.whole) return
  const isTested =
    version?.aligned.some(
      ({ tensor, start, factor }) => tensor === access.tensor && start === access.start && factor === access.factor,
    ) === true
  if (!isTested || meetsInChunks(lanes)) fail(`a chunk of ${access.tensor} is accessed without a check`)
}
