/**
 * Quotients and remainders of places, counted from one element of a chunk to the next. Elements of one row that stands for several axes read other
 * tensors at quotients of their index by run-time numbers. A thread divides for the first element of its chunk alone.
 *
 *     for t in chunk: y = x[t] + b[t % n]        becomes        count t by n: q, r        y = x[t] + b[r]
 */
import { call, index as indexVar, local } from '../../ir/build.js'
import { type Expr, inPlaceOf } from '../../ir/expr.js'
import { visit } from '../../ir/walk.js'
import { isHostExpr } from '../../schedule/normalise/host_expr.js'
import { rewriteDown, sameExpr } from '../../schedule/normalise/rewrite.js'
import { type CountPlaces, eachLoop, type Loop, mapLoops, type VectorLoop } from '../ir.js'
import type { Frame } from '../state.js'
import { placesOf, valuesOf } from '../walk.js'

/** @param frame widths of chunks */
export function countPlaces(loops: readonly Loop[], { widths }: Pick<Frame, 'widths'>): readonly Loop[] {
  if (widths.every((width) => width === 1)) return loops
  // Scalars of the share are known before its chunk.
  const scalars = new Set(loops.flatMap((loop) => (loop.kind === 'let' ? [loop.name] : [])))
  let counts = 0
  return mapLoops(loops, (node) => {
    if (node.kind !== 'for' || node.owner !== 'vector') return [node]
    const shared = sharedIntegers(node)
    const divisors = divisorsOf(node, scalars, shared)
    if (divisors.length === 0) return [node]
    const names = (of: string): readonly string[] => divisors.map((_, i) => `${of} ${counts}.${i}`)
    const count: CountPlaces = {
      kind: 'count',
      index: node.index,
      divisors,
      quotients: names('quotient'),
      remainders: names('remainder'),
    }
    counts++
    return [{ ...node, body: [count, ...node.body.map((each) => counted(each, count, shared))] }]
  })
}

/** True if loops count places. */
export function countsPlaces(loops: readonly Loop[]): boolean {
  let found = false
  eachLoop(loops, ({ kind }) => {
    found ||= kind === 'count'
  })
  return found
}

/** Integers of an element, such as a quotient that several places share. */
type Integers = ReadonlyMap<string, Expr>

function sharedIntegers({ body }: VectorLoop): Integers {
  const found = new Map<string, Expr>()
  eachLoop(body, (node) => {
    if (node.kind === 'compute' && node.shape === 'element' && node.type === 'i32' && 'kind' in node.value)
      found.set(node.row, node.value)
  })
  return found
}

/** An integer with those that it shares written out. */
const writtenOut = (e: Expr, shared: Integers): Expr =>
  rewriteDown(e, (node) => {
    const value = node.kind === 'element' ? shared.get(node.row) : undefined
    return value === undefined ? undefined : writtenOut(value, shared)
  })

/** Divisors of the index, of its quotient by the first, and so on. Quotients by a constant are cheap without counting. */
function divisorsOf(loop: VectorLoop, scalars: ReadonlySet<string>, shared: Integers): readonly Expr[] {
  const exprs: Expr[] = []
  const gather = (nodes: readonly Loop[]): void => {
    for (const node of nodes) {
      exprs.push(...[...valuesOf(node), ...placesOf(node)].map((e) => writtenOut(e, shared)))
      if (node.kind === 'exists') gather(node.body)
    }
  }
  gather(loop.body)
  const divisors: Expr[] = []
  let base: Expr = indexVar(loop.index)
  for (;;) {
    const divisor = firstDivisor(exprs, base, scalars)
    if (divisor === undefined || (divisors.length === 0 && divisor.kind === 'const')) return divisors
    divisors.push(divisor)
    base = call('idiv', base, divisor)
  }
}

function firstDivisor(exprs: readonly Expr[], base: Expr, scalars: ReadonlySet<string>): Expr | undefined {
  let found: Expr | undefined
  for (const e of exprs)
    visit(e, (node) => {
      if (node.kind !== 'call' || (node.fn !== 'idiv' && node.fn !== 'mod')) return
      const [of, by] = node.args
      if (of === undefined || by === undefined || !sameExpr(of, base)) return
      if (isHostExpr(by) || (by.kind === 'local' && scalars.has(by.name))) found ??= by
    })
  return found
}

/** A node with the counted quotients and remainders. */
function counted(node: Loop, { index, divisors, quotients, remainders }: CountPlaces, shared: Integers): Loop {
  const known: (readonly [Expr, string])[] = []
  let base: Expr = indexVar(index)
  for (const [i, divisor] of divisors.entries()) {
    const quotient = call('idiv', base, divisor)
    known.push([quotient, quotients[i] ?? ''], [call('mod', base, divisor), remainders[i] ?? ''])
    base = quotient
  }
  const map = (e: Expr): Expr =>
    rewriteDown(e, (each) => {
      if (each.kind !== 'call' || (each.fn !== 'idiv' && each.fn !== 'mod')) return undefined
      const place = writtenOut(each, shared)
      const name = known.find(([value]) => sameExpr(value, place))?.[1]
      return name === undefined ? undefined : inPlaceOf(each, local(name, 'i32'))
    })
  return withExprs(node, map)
}

/** A node among the elements of a chunk, with its expressions mapped. */
function withExprs(node: Loop, map: (e: Expr) => Expr): Loop {
  const when = 'when' in node && node.when !== undefined ? { when: map(node.when) } : {}
  switch (node.kind) {
    case 'exists':
      return { ...node, body: node.body.map((each) => withExprs(each, map)) }
    case 'compute':
      return 'kind' in node.value ? { ...node, value: map(node.value) } : node
    case 'fill':
      return { ...node, value: map(node.value), ...when }
    case 'store':
      return { ...node, value: map(node.value), indices: node.indices.map(map), ...when }
    case 'accumulate':
      return { ...node, values: node.values.map(map) }
    default:
      return node
  }
}
