/** Loops that slots or a grid divide, as the loop IR is evaluated: the iterations of each thread, and what threads exchange after them. */
import type { Value } from '../ir/constructs/construct.js'
import { evaluateExpr } from '../ir/evaluate.js'
import type { Expr } from '../ir/expr.js'
import { firstOf } from './chunk_values.js'
import { combineAccumulator, totalOf } from './evaluate_combine.js'
import { type Lane, newRegisters } from './evaluate_lane.js'
import type { DividedLoop, Exchange } from './ir.js'

const number = (e: Expr, { env }: Lane): number => Number(evaluateExpr(e, env))

/** Runs iterations, in each of which `body` runs for the threads that have one. @param lanes of a tile of columns, of `width` chunks, or of a grid */
export function runDivided(
  loop: DividedLoop,
  lanes: readonly Lane[],
  width: number,
  vec: number,
  body: (of: readonly Lane[]) => void,
): void {
  const [some] = lanes
  if (some === undefined) return
  const lengths = loop.loops.map(({ length }) => number(length, some))
  const inner = lengths.at(-1) ?? 0
  const chunks = loop.owner === 'slot' ? inner : Math.ceil(inner / vec)
  const count = lengths.slice(0, -1).reduce((a, b) => a * b, chunks)
  const apart = loop.owner === 'slot' ? lanes.length / width : lanes.length
  for (let base = 0; base < count; base += apart) {
    const present = lanes.filter((lane) => {
      const at = base + (loop.owner === 'slot' ? Math.floor(lane.id / width) : lane.id)
      if (at >= count || (loop.owner === 'slot' && lane.valid <= 0)) return false
      place(loop, lane, at, { lengths, chunks, vec })
      return loop.when === undefined || evaluateExpr(loop.when, lane.env) === true
    })
    body(present)
  }
  for (const lane of lanes) lane.order = 0
}

/** Moves a thread to iteration `at`. */
function place(
  { owner, loops }: DividedLoop,
  lane: Lane,
  at: number,
  { lengths, chunks, vec }: { readonly lengths: readonly number[]; readonly chunks: number; readonly vec: number },
): void {
  const inner = loops.length - 1
  if (owner === 'slot') lane.order = at
  else {
    lane.first = (at % chunks) * vec
    lane.valid = (lengths[inner] ?? 0) - lane.first
    lane.order = Math.floor(at / chunks) * (lengths[inner] ?? 0)
    lane.env.values.set(firstOf(loops[inner]?.index ?? ''), lane.first)
  }
  let rest = owner === 'slot' ? at : Math.floor(at / chunks)
  for (let i = owner === 'slot' ? inner : inner - 1; i >= 0; i--) {
    lane.env.values.set(loops[i]?.index ?? '', rest % (lengths[i] ?? 1))
    rest = Math.floor(rest / (lengths[i] ?? 1))
  }
}

/** Gives all threads the totals: of the elements of all, or of those of each column. */
export function exchangeParts({ across, parts }: Exchange, lanes: readonly Lane[], vec: number): void {
  for (const { accumulator, into } of parts) {
    if (across === 'grid') {
      combineAccumulator({ accumulator, into }, lanes)
      continue
    }
    const totals = new Map<number, readonly Value[]>()
    for (const lane of lanes) {
      const results = into.map(() => newRegisters())
      for (let column = lane.first; column < lane.first + Math.min(lane.valid, vec); column++) {
        const total = totals.get(column) ?? totalOf(accumulator, lanes, column)
        totals.set(column, total)
        for (const [field, registers] of results.entries()) registers[column] = total[field] ?? Number.NaN
      }
      for (const [field, { name }] of into.entries()) lane.rows.set(name, results[field] ?? [])
    }
  }
}
