/**
 * Sums of exponentials that are shifted by a running maximum. Combined one by one, each element would scale the sums before it. The largest element of
 * a chunk is found first instead: the sums are scaled once per chunk, and its terms are added as they are.
 *
 *     for chunk: for i: (top, total) += (x[i], exp(0))      for chunk: for i: top = max(top, x[i])
 *                                                                      scale total
 *                                                                      for i: total += exp(x[i] - top)
 */
import { call, local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { freeNames, operands, withoutSpans } from '../../ir/walk.js'
import { rewriteDown } from '../../schedule/normalise/rewrite.js'
import { type Accumulate, type Accumulator, eachLoop, type Loop, mapLoops, type VectorLoop } from '../ir.js'
import { placesOf, valuesOf } from '../walk.js'

export function shiftSums(loops: readonly Loop[]): readonly Loop[] {
  const shifted = new Map<Accumulator, Accumulator>()
  eachLoop(loops, (loop) => {
    if (loop.kind !== 'for' || loop.owner !== 'vector') return
    for (const { into, values } of shiftedIn(loop)) shifted.set(into, { ...into, shift: `shift of ${into.name}`, from: values })
  })
  if (shifted.size === 0) return loops
  const of = (accumulator: Accumulator): Accumulator => shifted.get(accumulator) ?? accumulator
  return mapLoops(loops, (loop) => {
    switch (loop.kind) {
      case 'accumulator':
        return [of(loop)]
      case 'combine':
        return [{ ...loop, accumulator: of(loop.accumulator) }]
      case 'exchange':
        return [{ ...loop, parts: loop.parts.map((part) => ({ ...part, accumulator: of(part.accumulator) })) }]
      case 'for':
        return loop.owner === 'vector' ? inTwo(loop, shifted) : [loop]
      default:
        return [loop]
    }
  })
}

/** Statements of a loop over elements whose terms are known in the form in which they were joined with their maximum. */
function shiftedIn(loop: VectorLoop): readonly Accumulate[] {
  const rows = new Map<string, Expr>()
  const found: Accumulate[] = []
  eachLoop([loop], (node) => {
    if (node.kind === 'compute' && node.shape === 'element' && 'kind' in node.value) rows.set(node.row, node.value)
    if (node.kind === 'accumulate' && isJoined(node)) found.push(node)
  })
  return found.filter(({ values: [element, ...terms] }) => terms.every((term) => countIn(term, element, rows) === 1))
}

const isJoined = ({ into: { monoid, columns, scan } }: Accumulate): boolean =>
  typeof monoid !== 'string' && 'shift' in monoid && columns === undefined && !scan

/** True for the exponent of a term as it is joined: its own element less itself, or the least finite number (src/schedule/rows/one_pass.ts). */
function isOwn(node: Expr, element: Expr | undefined): boolean {
  const same = (e: Expr | undefined): boolean =>
    e !== undefined && element !== undefined && hashOf(withoutSpans(e)) === hashOf(withoutSpans(element))
  const [own, shift] = node.kind === 'call' && node.fn === 'sub' ? node.args : []
  const [other, lowest] = shift?.kind === 'call' && shift.fn === 'maximum' ? shift.args : []
  return same(own) && same(other) && lowest?.kind === 'const'
}

/** Number of differences of an element and itself in a term, and in the values of elements that it reads. */
function countIn(term: Expr, element: Expr | undefined, rows: ReadonlyMap<string, Expr>): number {
  let count = 0
  const go = (e: Expr): void => {
    if (isOwn(e, element)) count++
    else {
      const row = e.kind === 'element' ? rows.get(e.row) : undefined
      for (const each of row === undefined ? operands(e) : [row]) go(each)
    }
  }
  go(term)
  return count
}

/** A loop over the elements of a chunk as two, with the scaling of sums between them. */
function inTwo(loop: VectorLoop, shifted: ReadonlyMap<Accumulator, Accumulator>): readonly Loop[] {
  const found = shiftedIn(loop).map(({ into, values: [element] }) => ({ into: shifted.get(into) ?? into, element }))
  if (found.length === 0) return [loop]
  const byShift = (value: Expr): Expr =>
    rewriteDown(value, (node) => {
      const own = found.find(({ element }) => isOwn(node, element))
      return own?.element === undefined ? undefined : call('sub', own.element, local(own.into.shift ?? ''))
    })
  const maxima = mapLoops(loop.body, (node) => {
    const into = node.kind === 'accumulate' ? shifted.get(node.into) : undefined
    if (node.kind === 'accumulate' && into !== undefined)
      return [{ ...node, into, values: node.values.slice(0, 1), part: 'maximum' }]
    return isElement(node) ? [node] : []
  })
  const sums = mapLoops(loop.body, (node) => {
    const into = node.kind === 'accumulate' ? shifted.get(node.into) : undefined
    if (node.kind === 'accumulate' && into !== undefined)
      return [{ ...node, into, values: node.values.slice(1).map(byShift), part: 'sums' }]
    return node.kind === 'compute' && 'kind' in node.value ? [{ ...node, value: byShift(node.value) }] : [node]
  })
  return [
    { ...loop, body: withoutUnread(maxima) },
    ...found.map(({ into }): Loop => ({ kind: 'rescale', accumulator: into })),
    { ...loop, body: withoutUnread(sums) },
  ]
}

/** True for values of one element, which both loops compute, and for conditions around them. */
const isElement = (node: Loop): boolean => node.kind === 'exists' || (node.kind === 'compute' && node.shape === 'element')

/** Nodes without values of elements that nothing after them reads. */
function withoutUnread(body: readonly Loop[]): readonly Loop[] {
  const names = new Set<string>()
  const kept = (loops: readonly Loop[]): readonly Loop[] =>
    [...loops]
      .reverse()
      .flatMap((node): readonly Loop[] => {
        if (node.kind === 'compute' && node.shape === 'element' && !names.has(node.row)) return []
        for (const e of [...valuesOf(node), ...placesOf(node)]) for (const name of freeNames(e)) names.add(name)
        if (node.kind !== 'exists') return [node]
        const inside = kept(node.body)
        return inside.length === 0 ? [] : [{ ...node, body: inside }]
      })
      .reverse()
  return kept(body)
}
