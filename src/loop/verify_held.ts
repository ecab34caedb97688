/** Rows that threads hold: each is left once, by the first load of them, and later loads take the same rows, in loops over all of them. */
import { index as indexVar } from '../ir/build.js'
import type { Expr } from '../ir/expr.js'
import { sameExpr, substituteIndex } from '../schedule/normalise/rewrite.js'
import { type Copy, type DividedLoop, eachLoop, type Held, type Loop } from './ir.js'

/** @param fail called with the rule that is broken */
export function verifyHeld(loops: readonly Loop[], fail: (reason: string) => never): void {
  const declared = new Map<string, Held>()
  const left = new Set<string>()
  const verify = ({ held, load }: Copy, { loops: over, when }: DividedLoop): void => {
    const rows = held === undefined ? undefined : declared.get(held.rows)
    if (held === undefined || rows === undefined) return
    if ((held.is === 'left') === left.has(held.rows))
      fail(`${held.rows} is ${held.is} ${held.is === 'left' ? 'again' : 'before it is left'}`)
    left.add(held.rows)
    const [loop] = over
    const isAll = loop !== undefined && over.length === 1 && when === undefined && sameExpr(loop.length, rows.length)
    if (!isAll) fail(`${held.rows} is ${held.is} in a loop over other rows`)
    const places = (of: Copy['load'], row: string): readonly Expr[] =>
      of.indices.map((at) => substituteIndex(at, row, indexVar('(row)')))
    const own = places(load, loop?.index ?? '')
    const isSame = places(rows.load, rows.row).every((at, i) => sameExpr(at, own[i] ?? at))
    if (load.tensor !== rows.load.tensor || !isSame) fail(`${held.rows} is not what is loaded from ${load.tensor}`)
  }
  eachLoop(loops, (loop) => {
    if (loop.kind === 'held') declared.set(loop.name, loop)
    if (loop.kind === 'for' && 'loops' in loop) for (const each of loop.body) if (each.kind === 'copy') verify(each, loop)
  })
}
