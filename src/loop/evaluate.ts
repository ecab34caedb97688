/**
 * Evaluator of the loop IR: runs the loops of a kernel, share by share, each with a team of lanes in lockstep, in double precision. Each lane has registers of its own, and
 * reads only what it has computed, or what the lanes have combined or published. Passes are checked by running small sizes before and after them.
 */
import type { Value } from '../ir/constructs/construct.js'
import type { Expr } from '../ir/expr.js'
import { firstOf, placeOf } from './chunk_values.js'
import { combineAccumulator } from './evaluate_combine.js'
import { exchangeParts, runDivided } from './evaluate_divided.js'
import { type Lane, newRegisters, type Row, type Team } from './evaluate_lane.js'
import { leaves } from './evaluate_leaves.js'
import { consecutive, firstAt, forChunk, known, number, placeAt, type Run, type Spread, validAt, value } from './evaluate_run.js'
import { callTeam, collectSearch, finishSearch } from './evaluate_search.js'
import { endChunk } from './evaluate_shifted.js'
import { chunksOfTile, enterChunk, fillTile, newTile } from './evaluate_tiles.js'
import { eachShare, liesInPiece } from './evaluate_work.js'
import { type Groups, type LaneLoop, type Loop, type TileLoop, type VectorLoop, type Version, wholeFlag } from './ir.js'

/** @throws internal errors for elements that are missing, computed twice, or stored by a lane that has not computed them */
export const evaluateLoops = (loops: readonly Loop[], row: Row, team: Team): void =>
  runAll(loops, [], { team, row, all: [], whole: false, spread: consecutive, pending: new Map(), tiles: new Map() })

function runAll(loops: readonly Loop[], lanes: readonly Lane[], run: Run): void {
  for (const loop of loops) {
    const left = lanes.filter(({ done }) => !done)
    if (left.length === 0 && lanes.length > 0) return
    runNode(loop, left, run)
  }
}

type Runs<K extends Loop['kind']> = {
  readonly [Kind in K]: (loop: Extract<Loop, { readonly kind: Kind }>, lanes: readonly Lane[], run: Run) => void
}

/** Nodes that lanes run together. */
const shared: Runs<
  | 'work'
  | 'piece'
  | 'tile'
  | 'fillTile'
  | 'version'
  | 'for'
  | 'exists'
  | 'barrier'
  | 'combine'
  | 'exchange'
  | 'groups'
  | 'search'
  | 'call'
> = {
  work(loop, _, run) {
    eachShare(loop, run.row, run.team, (all, team) =>
      runAll(loop.body, all, { ...run, team, all, pending: new Map(), tiles: new Map() }),
    )
  },
  piece(loop, lanes, run) {
    const inside = lanes.filter((lane) => liesInPiece(loop, lane, run.team))
    runAll(loop.body, inside, run)
    for (const lane of inside) lane.done = true
  },
  tile(loop, _, run) {
    run.tiles.set(loop.name, newTile(loop, run.team))
  },
  fillTile(loop, [lane], run) {
    if (lane !== undefined) fillTile(loop, lane, known(run.tiles.get(loop.tile), loop.tile))
  },
  version(loop, lanes, run) {
    if (!loop.stated.every((length) => isWhole(length, run)))
      throw new Error('internal: a length is not the multiple that is stated')
    if (loop.ofChunk === true) {
      for (const whole of [true, false]) {
        const inside = lanes.filter(({ valid }) => valid >= run.team.vec === whole)
        for (const { env } of inside) env.values.set(wholeFlag, whole)
        if (inside.length > 0) runAll(loop.body, inside, { ...run, whole })
      }
      return
    }
    const whole = loop.lengths.every((length) => isWhole(length, run))
    for (const { env } of lanes) env.values.set(wholeFlag, whole)
    runAll(loop.body, lanes, { ...run, whole, spread: loop.apart === true && !whole ? spreadOf(loop, run) : consecutive })
  },
  for(loop, lanes, run) {
    if ('loops' in loop) {
      const team = { ...run.team, vec: loop.step === 'chunk' ? run.team.vec : 1 }
      runDivided(loop, lanes, team.lanes, team.vec, (of) => runAll(loop.body, of, { ...run, team }))
    } else if (loop.owner === 'lane') runLanes(loop, lanes, run)
    else if (loop.owner === 'block') runTile(loop, lanes, run)
    else runElements(loop, lanes, run)
  },
  exists(loop, lanes, run) {
    runAll(loop.body, existing(lanes, loop.whole && run.whole, run.spread), run)
  },
  barrier(loop, lanes, run) {
    together(lanes, run)
    if (loop.scope !== 'block') for (const name of loop.publishes) publish(name, run.pending.get(name) ?? [], run)
  },
  combine(loop, lanes, run) {
    if (loop.across === 'vector') {
      for (const lane of lanes) endChunk(loop.accumulator, lane)
      return
    }
    together(lanes, run)
    combineAccumulator(loop, run.all)
  },
  exchange(loop, lanes, run) {
    together(lanes, run)
    exchangeParts(loop, lanes, run.team.vec)
  },
  groups(loop, lanes, run) {
    together(lanes, run)
    for (const lane of lanes) valuesOfGroups(loop, lane, run)
  },
  search(loop, lanes, run) {
    if (loop.part === 'element') for (const lane of lanes) collectSearch(loop.stmt, lane)
    if (loop.part !== 'finish') return
    together(lanes, run)
    finishSearch(loop.stmt, run.all, run.row, (name, values) => publish(name, values, run))
  },
  call({ stmt }, lanes, run) {
    if (stmt.kind !== 'team') throw new Error(`internal: loops of ${stmt.kind} are not evaluated`)
    together(lanes, run)
    for (const lane of lanes) callTeam(stmt, lane)
  },
}

/** A thread's columns take the values of their groups. */
function valuesOfGroups({ row, group, value: ofGroup, length }: Groups, lane: Lane, run: Run): void {
  const made = newRegisters()
  forChunk(lane, false, run, (at) => {
    lane.env.values.set(group, Math.floor(at / number(length, lane)))
    made[at] = value(ofGroup, lane)
  })
  lane.rows.set(row, made)
}

type Leaf = Extract<Loop, { readonly kind: keyof typeof leaves }>

const isLeaf = (loop: Loop): loop is Leaf => loop.kind in leaves

function runNode(loop: Loop, lanes: readonly Lane[], run: Run): void {
  if (isLeaf(loop)) {
    // The function for the node's own kind: methods are bivariant, so no cast is needed.
    const leaf: { run(each: Leaf, lane: Lane, of: Run): void } = { run: leaves[loop.kind] }
    for (const lane of lanes) leaf.run(loop, lane, run)
    return
  }
  const node: { run(each: Loop, of: readonly Lane[], by: Run): void } = { run: shared[loop.kind] }
  node.run(loop, lanes, run)
}

function runElements({ index, body }: VectorLoop, lanes: readonly Lane[], run: Run): void {
  for (let i = 0; i < run.team.vec; i++) {
    for (const lane of lanes) {
      setElement(index, lane.first + placeAt(i, run.spread), lane)
      lane.env.values.set(placeOf(index), i)
    }
    runAll(body, lanes, run)
  }
}

/** Runs the chunks of a tile that threads of a block share. */
function runTile(loop: TileLoop, lanes: readonly Lane[], run: Run): void {
  const chunks = chunksOfTile(run.team)
  for (let first = 0; first < chunks; first += lanes.length) {
    const present = lanes.filter((lane, i) => {
      const at = first + i
      return at < chunks && enterChunk(loop, at, lane, run)
    })
    runAll(loop.body, present, { ...run, all: present })
  }
}

/** Runs the chunks, or the elements, that lanes share. */
function runLanes(loop: LaneLoop, lanes: readonly Lane[], run: Run): void {
  const [some] = lanes
  if (some === undefined) return
  if (loop.walk === 'single' || loop.walk === 'columns') {
    // The share of the work is a chunk per lane.
    for (const lane of lanes) lane.env.values.set(firstOf(loop.index), lane.first)
    runAll(loop.body, loop.together ? lanes : lanes.filter(({ valid }) => valid > 0), run)
    return
  }
  const length = number(loop.length, some)
  const { vec } = loop.step === 'chunk' ? run.team : { vec: 1 }
  const { lanes: width } = run.team
  const rounds = Math.ceil(length / (vec * width))
  if (loop.walk === 'kept' && loop.step === 'chunk' && rounds > run.team.chunks)
    throw new Error(`internal: ${length} elements are too many for ${run.team.chunks} chunks a lane`)
  for (let round = 0; round < rounds; round++) {
    for (const lane of lanes) {
      lane.first = firstAt(round * width + (lane.id % width), vec, run.spread)
      lane.valid = validAt(length - lane.first, run.spread)
      lane.env.values.set(firstOf(loop.index), lane.first)
      if (loop.step === 'element') setElement(loop.index, lane.first, lane)
    }
    runAll(loop.body, loop.together ? lanes : lanes.filter(({ valid }) => valid > 0), run)
  }
}

/** Lanes of a warp. */
const warpLanes = 32

function setElement(index: string, at: number, lane: Lane): void {
  lane.at = at
  lane.env.values.set(index, at)
}

/** Lanes whose current element exists. @param whole true if all elements of the row are claimed to exist */
function existing(lanes: readonly Lane[], whole: boolean, spread: Spread): readonly Lane[] {
  const found = lanes.filter(({ at, first, valid }) => at < first + placeAt(valid, spread))
  if (whole && found.length < lanes.filter(({ valid }) => valid > 0).length)
    throw new Error('internal: an element that does not exist is computed in a whole row')
  return found
}

/** Elements of the chunks of rows that are not whole. */
function spreadOf({ lengths, pairs }: Version, run: Run): Spread {
  const [some] = run.all
  const isEven = some !== undefined && lengths.every((length) => length !== undefined && number(length, some) % 2 === 0)
  return { step: Math.min(run.team.lanes, warpLanes), run: pairs === true && isEven ? 2 : 1 }
}

/** Chunks of a row with this length are all full. Tensors of an evaluation are aligned. */
const isWhole = (length: Expr | undefined, { all, team }: Run): boolean => {
  const [lane] = all
  return length !== undefined && lane !== undefined && number(length, lane) % team.vec === 0
}

function together(lanes: readonly Lane[], { all }: Run): void {
  if (lanes.length !== all.length) throw new Error('internal: lanes meet where not all of them pass')
}

function publish(name: string, values: Value[], { all }: Run): void {
  for (const { rows } of all) rows.set(name, values)
}
