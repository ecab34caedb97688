/**
 * Placement of the loads of rows that are kept in registers. Lowering loads every row before its loop. That suits rows that differ from row to row:
 * they come from DRAM, and the team issues all their loads before it needs the first. A row that is the same for every row, such as a weight, is
 * cached and would only occupy registers, so that its chunks are loaded in the loop. If a lane has a single chunk, such rows of later loops are
 * loaded before the first loop: after a reduction, everybody would wait for them.
 */
import { contains } from '../../schedule/normalise/rewrite.js'
import { differsByRow, type Tensors } from '../access.js'
import type { Copy, LaneLoop, Loop, Prefetch } from '../ir.js'
import { segmentsOf } from './version.js'

export function placeLoads(loops: readonly Loop[], tensors: Tensors): readonly Loop[] {
  const inside = loops.find((loop) => loop.kind === 'version')
  if (inside?.kind === 'version') {
    const body = placed(inside.body, known(loops), tensors)
    return loops.map((loop) => (loop === inside ? { ...inside, body } : loop))
  }
  const first = loops.findIndex(({ kind }) => kind !== 'let')
  const before = loops.slice(0, first)
  return [...before, ...placed(loops.slice(first), known(before), tensors)]
}

/** Scalars that loops may use from the start. */
const known = (loops: readonly Loop[]): ReadonlySet<string> =>
  new Set(loops.flatMap((loop) => (loop.kind === 'let' ? [loop.name] : [])))

function placed(loops: readonly Loop[], ready: ReadonlySet<string>, tensors: Tensors): readonly Loop[] {
  const isCached = (loop: Loop): loop is Copy => loop.kind === 'copy' && !loop.keep && !differsByRow(loop.access, tensors)
  const prefetches: Prefetch[] = []
  const made = segmentsOf(loops).flatMap(({ nodes, loop }, at): readonly Loop[] => {
    if (loop === undefined) return nodes
    const inLoop = nodes.filter(isCached).map((copy): Copy => {
      if (at === 0 || !isReady(loop, ready)) return { ...copy, shape: 'chunk' }
      const name = `soon ${copy.row} ${prefetches.length}`
      prefetches.push({ kind: 'prefetch', name, copy })
      return { ...copy, shape: 'chunk', prefetched: name }
    })
    const before = nodes.filter((node) => node !== loop && !isCached(node))
    return [...before, { ...loop, body: [...inLoop, ...loop.body] }]
  })
  return [...prefetches, ...made]
}

/** True if the length of a loop is known before the first loop, and its lanes do not meet. */
const isReady = ({ length, together }: LaneLoop, ready: ReadonlySet<string>): boolean =>
  !together && !contains(length, (e) => e.kind === 'local' && !ready.has(e.name))
