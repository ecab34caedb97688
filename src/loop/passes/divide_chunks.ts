/**
 * Values of parts of a row, once per chunk. An element that reads memory at a quotient of its index by a run-time number, such as the scale of its
 * channel, shares the value with its chunk if the number is a multiple of the width. The version for whole rows tests that too, and computes these
 * values before the elements of a chunk.
 *
 *     for c < n: y[c] = x[c] * gamma[c / s]        whole rows, s % VEC == 0: for each chunk: g = gamma[first / s], y[c] = x[c] * g
 */
import { call, constant, local } from '../../ir/build.js'
import { type Expr, inPlaceOf } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { visit } from '../../ir/walk.js'
import { type AlignedChunk, divisorsIn, inAlignedChunk } from '../../schedule/normalise/aligned.js'
import { rewritePaths } from '../../schedule/normalise/rewrite.js'
import { firstOf, isShared, placeOf } from '../chunk_values.js'
import { type Compute, eachLoop, type LaneLoop, type Let, type Loop, mapLoops, type VectorLoop, wholeFlag } from '../ir.js'
import type { Frame } from '../state.js'
import { valuesOf } from '../walk.js'
import { testedLengths } from './version.js'

/** @param frame widths of chunks, and what facts state of dimensions */
export function divideChunks(loops: readonly Loop[], frame: Pick<Frame, 'widths' | 'multiples'>): readonly Loop[] {
  const { widths } = frame
  if (widths.every((width) => width === 1)) return loops
  return loops.map((loop) => {
    if (loop.kind !== 'version') return loop
    const divisors = new Map<string, Expr>()
    const body = mapLoops(loop.body, (node) => {
      if (node.kind !== 'for' || node.owner !== 'lane' || node.step !== 'chunk' || node.together) return [node]
      const found = divisorsOf(node)
      for (const each of found) divisors.set(hashOf(each), each)
      return [found.length === 0 ? node : divided(node, found, widths)]
    })
    if (divisors.size === 0) return loop
    const { lengths, stated } = testedLengths([...loop.lengths, ...divisors.values()], frame)
    return { ...loop, lengths, stated: [...loop.stated, ...stated], body }
  })
}

/** Run-time numbers that elements of a loop divide their index by, in the places of loads, or in integers that loads may share. */
function divisorsOf(loop: LaneLoop): readonly Expr[] {
  const found = new Map<string, Expr>()
  const note = (e: Expr): void => {
    for (const divisor of divisorsIn(e, loop.index)) found.set(hashOf(divisor), divisor)
  }
  eachLoop(loop.body, (node) => {
    for (const value of valuesOf(node)) {
      if (node.kind === 'compute' && node.type === 'i32') note(value)
      visit(value, (e) => {
        if (e.kind === 'load') e.indices.forEach(note)
      })
    }
  })
  return [...found.values()]
}

/** The loop with the values of chunks before the elements that read them. */
function divided(loop: LaneLoop, divisors: readonly Expr[], widths: readonly number[]): LaneLoop {
  const { index } = loop
  const same = new Map<string, string>()
  const general: AlignedChunk = { index, first: firstOf(index), place: placeOf(index), widths, same: new Map() }
  const chunk: AlignedChunk = { ...general, same, multiples: new Set(divisors.map(hashOf)) }
  const flag = local(wholeFlag, 'bool')
  const known = new Map<string, Expr>()
  const names = new Set<string>()
  let values: Let[] = []
  const ofChunk = (node: Expr): Expr | undefined => {
    const value = inAlignedChunk(node, chunk)
    if (!isShared(value, chunk, noRows, names) || isShared(inAlignedChunk(node, general), general, noRows)) return undefined
    const found = known.get(hashOf(value))
    if (found !== undefined) return found
    const name = `part ${index} ${names.size}`
    const tensor = node.kind === 'load' ? node.tensor : undefined
    const zero = constant(value.type, value.type === 'bool' ? false : 0)
    const of = { named: false, tensor, masked: false }
    values.push({ kind: 'let', name, type: value.type, value: call('select', flag, value, zero), ofChunk: of })
    const made = local(name, value.type)
    known.set(hashOf(value), made)
    names.add(name)
    return made
  }
  const rewritten = (e: Expr): Expr =>
    rewritePaths(e, (node, always) => {
      const found = always && (node.kind === 'call' || node.kind === 'load') ? ofChunk(node) : undefined
      return found === undefined ? undefined : inPlaceOf(node, call('select', flag, found, node))
    })
  const share = (node: Loop): Loop => {
    const name = node.kind === 'compute' && 'kind' in node.value && node.shape === 'element' ? ofChunk(node.value) : undefined
    if (node.kind === 'compute' && name?.kind === 'local') same.set(node.row, name.name)
    return withValues(node, rewritten)
  }
  const body = loop.body.flatMap((node): readonly Loop[] => {
    if (node.kind !== 'for' || node.owner !== 'vector') return [node]
    values = []
    const elements: VectorLoop = { ...node, body: shared(node.body, share) }
    return [...values, elements]
  })
  return { ...loop, body }
}

/** Elements of rows in shared memory are read at any index: none is the same for a chunk here. */
const noRows: ReadonlySet<string> = new Set()

/** Rewrites nodes in the order in which they run. */
const shared = (loops: readonly Loop[], f: (loop: Loop) => Loop): readonly Loop[] =>
  loops.map((loop) => (loop.kind === 'exists' ? { ...loop, body: shared(loop.body, f) } : f(loop)))

/** A node with the values that it computes for each element replaced. Values under a condition stay. */
function withValues(loop: Loop, map: (value: Expr) => Expr): Loop {
  switch (loop.kind) {
    case 'compute':
      return 'kind' in loop.value ? ({ ...loop, value: map(loop.value) } satisfies Compute) : loop
    case 'fill':
      return loop.when === undefined ? { ...loop, value: map(loop.value) } : loop
    case 'store':
      return loop.when === undefined ? { ...loop, value: map(loop.value) } : loop
    case 'accumulate':
      return { ...loop, values: loop.values.map(map) }
    default:
      return loop
  }
}
