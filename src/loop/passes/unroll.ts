/**
 * Unrolling of loops over chunks that are read again: the loads of several chunks are in flight together if nothing meets between them and registers
 * can hold them. Loops with two loaded rows have no registers left, and loops that divide integers are long as they are.
 */
import type { Expr } from '../../ir/expr.js'
import { contains, usesIndex } from '../../schedule/normalise/rewrite.js'
import { eachLoop, type Loop } from '../ir.js'
import { valuesOf } from '../walk.js'

export const unroll = (loops: readonly Loop[]): readonly Loop[] =>
  loops.map((loop) => {
    if (loop.kind === 'version') return { ...loop, body: unroll(loop.body) }
    if (loop.kind !== 'for' || loop.owner !== 'lane' || loop.walk !== 'reread' || loop.step === 'element' || loop.together)
      return loop
    const loads = loop.body.filter(({ kind }) => kind === 'copy').length
    return loads === 1 && !divides(loop.body, loop.index) ? { ...loop, unrolled: true } : loop
  })

/** True if each element divides integers by a run-time number: some twenty instructions, so that eight elements are already a long loop. */
function divides(loops: readonly Loop[], index: string): boolean {
  const isDivision = (e: Expr): boolean =>
    e.kind === 'call' && (e.fn === 'idiv' || e.fn === 'mod') && e.args[1]?.kind !== 'const' && usesIndex(e, index)
  let found = false
  eachLoop(loops, (loop) => {
    found ||= valuesOf(loop).some((value) => contains(value, isDivision))
  })
  return found
}
