/** Distance in memory between neighbours of an index, derived from an offset. The notes of a schedule judge reads by it. */
import { i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { rewrite, visit } from '../../ir/walk.js'

/** `still`: no distance. `near`: within the given number of elements. `far`: further. `unknown`: depends on data. */
export type Stride = 'still' | 'near' | 'far' | 'unknown'

/**
 * Stride of an offset along an index.
 * @param offset of an element, over dimensions, indices and loaded values
 * @param near distance in elements up to which neighbours share a memory sector
 */
export function strideAlong(offset: Expr, index: string, near: number): Stride {
  const stride = strideBy(offset, index, near)
  if (stride !== 'far') return stride
  // A few streams in parallel: neighbours within one stream share the sectors of that stream.
  return periodsOf(offset, index).some((period) => strideBy(streamOffset(offset, index, period), index, near) === 'near')
    ? 'near'
    : 'far'
}

/** Number of streams that caches hold at once, each with a sector. */
const mostStreams = 16

/** Constants that the index is divided by, as in places of planes: `x[c % 2, c / 2]`. */
function periodsOf(offset: Expr, index: string): readonly number[] {
  const found = new Set<number>()
  visit(offset, (e) => {
    const [a, b] = e.kind === 'call' && (e.fn === 'mod' || e.fn === 'idiv') ? e.args : []
    if (a?.kind === 'index' && a.name === index && b?.kind === 'const') found.add(Number(b.value))
  })
  return [...found].filter((period) => period > 1 && period <= mostStreams)
}

/** Offset within one stream: over every `period`-th index, all with the same remainder. */
const streamOffset = (offset: Expr, index: string, period: number): Expr =>
  rewrite(offset, (e) => {
    const [a, b] = e.kind === 'call' ? e.args : []
    if (e.kind !== 'call' || a?.kind !== 'index' || a.name !== index || b?.kind !== 'const' || Number(b.value) !== period)
      return e
    return e.fn === 'mod' ? i32(0) : e.fn === 'idiv' ? a : e
  })

function strideBy(offset: Expr, index: string, near: number): Stride {
  const of = (e: Expr): { readonly stride: Stride; readonly step: number } => {
    if (e.kind === 'index') return e.name === index ? { stride: 'near', step: 1 } : still
    if (e.kind === 'const' || e.kind === 'dim' || e.kind === 'attr' || e.kind === 'local') return still
    if (e.kind !== 'call') return unknown
    const [a = still, b = still, ...others] = e.args.map(of)
    const all = [a, b, ...others]
    if (all.every(({ stride }) => stride === 'still')) return still
    if (all.some(({ stride }) => stride === 'unknown')) return unknown
    switch (e.fn) {
      case 'add':
      case 'sub': {
        const step = e.fn === 'add' ? a.step + b.step : a.step - b.step
        return { stride: strideOf(step), step }
      }
      case 'mul': {
        const [moving, factor] = a.stride === 'still' ? [b, e.args[0]] : [a, e.args[1]]
        if (a.stride !== 'still' && b.stride !== 'still') return unknown
        const step = factor?.kind === 'const' ? moving.step * Number(factor.value) : Number.POSITIVE_INFINITY
        return { stride: strideOf(step), step }
      }
      // Most neighbours have equal quotients, and their remainders are neighbours.
      case 'idiv':
      case 'shiftRight':
        return b.stride === 'still' && a.stride === 'near' ? still : unknown
      case 'mod':
      case 'bitAnd':
        return b.stride === 'still' && a.stride === 'near' ? { stride: 'near', step: 1 } : unknown
      default:
        return unknown
    }
  }
  const strideOf = (step: number): Stride => (Number.isNaN(step) ? 'unknown' : Math.abs(step) <= near ? 'near' : 'far')
  return of(offset).stride
}

const still = { stride: 'still', step: 0 } as const
const unknown = { stride: 'unknown', step: Number.NaN } as const
