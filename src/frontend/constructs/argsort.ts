/** Sorted rows in a body: one kernel statement, whose row of indices can be read at any index. */
import type { Node } from 'ts-morph'
import { longestSorted } from '../../ir/argsort.js'
import { longestCarried } from '../../ir/constructs/fold_state.js'
import { sharedWords, wordsOf } from '../../ir/constructs/shared_memory.js'
import { type TeamCall, teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import type { Facts } from '../../ir/facts/facts.js'
import type { Kernel } from '../../ir/kernel.js'
import { quote, reject } from '../diagnostics/reject.js'
import { describe, type Lowering, type Place, scalar, type Value } from '../static/values.js'
import { argumentAt, asIndex } from '../types/scalars.js'
import { expectRow, expectRowLevel, loop } from './rows.js'

const example = 'write argsort(1024, n, (c) => x(m, c)), where rows have at most 1024 elements'

/** Lowers a call of `argsort`. `wanted` is the author's name for the result, if any. */
export function argsort(args: readonly Value[], node: Node, place: Place, lowering: Lowering, wanted = ''): Value {
  const [most, length, of] = args
  if (most === undefined || length === undefined || of === undefined || args.length !== 3)
    return reject('arity', node, `argsort takes 3 arguments, ${args.length} given`, example)
  expectRowLevel('an argsort', node, place)
  const bounded = argumentAt(node, 0)
  const bound = asIndex(most, bounded, 'the longest row of argsort:')
  if (bound.kind !== 'const')
    return reject('shape', bounded, `expected a number as the longest row of argsort, got ${quote(bounded)}`, example)
  const longest = Number(bound.value)
  if (!(longest >= 1 && longest <= longestSorted))
    return reject(
      'range',
      bounded,
      `argsort(${quote(bounded)}, ...) sorts rows of at most ${quote(bounded)} elements, allowed are 1 to ${longestSorted}`,
      'a row is sorted in the shared memory of one block; for the largest elements of a longer row take topK, to cut it off take threshold',
    )
  const at = argumentAt(node, 2)
  expectRow('argsort', of, at, example)
  const extent = asIndex(length, argumentAt(node, 1), 'length of argsort:')
  if (extent.kind !== 'dim' && !(extent.kind === 'const' && Number(extent.value) <= longest))
    return reject(
      'shape',
      argumentAt(node, 1),
      `expected a dimension as the length of argsort, got ${quote(argumentAt(node, 1))}`,
      'sort the whole row, with keys of Infinity for missing elements',
    )
  const name = /^\w+$/.test(wanted) ? lowering.unique(wanted) : lowering.unique('order', 'derived')
  const { index, value } = loop(extent, of, at, place, lowering)
  if (value.type === 'bool')
    return reject('dtype', at, `argsort sorts numbers, its element is ${describe(scalar(value))}`, 'write condition ? 1 : 0')
  lowering.emit({ kind: 'argsort', name, most: longest, length: extent, index, value })
  return { kind: 'row', name, type: 'i32', length: extent }
}

/** Refuses bodies that exceed the shared memory of one block, or combine constructs that need different teams of threads. */
export function checkTeams({ body }: Pick<Kernel, 'body'>, node: Node): void {
  const sorts = body.flatMap((s) => (s.kind === 'argsort' ? [s.most] : []))
  const all = sorts.reduce((sum, most) => sum + most, 0)
  if (sorts.length > 1 && all > longestSorted)
    reject(
      'size',
      node,
      `the op sorts rows of ${sorts.join(' and ')} elements, allowed are ${longestSorted} together`,
      'make it two ops',
    )
  const has = (kind: Kernel['body'][number]['kind']): boolean => body.some((s) => s.kind === kind)
  if (sorts.length > 0 && has('topK'))
    reject('row', node, 'the op sorts a row and ranks one, which take the same memory', 'make it two ops')
  if (wordsOf(body) > sharedWords)
    reject(
      'size',
      node,
      `the op sorts and counts in ${wordsOf(body)} words of the shared memory of a block, which has ${sharedWords} for it`,
      'make it two ops',
    )
  if (has('foldRow') && has('counts'))
    reject('row', node, 'the op carries something along a row and reads a histogram, which take other threads', 'make it two ops')
  const search = body.find((s): s is TeamCall => s.kind === 'team' && teamOf(s).widest === 'wide block')
  if (has('foldRow') && (sorts.length > 0 || search !== undefined))
    reject(
      'row',
      node,
      `the op carries something along a row, as a warp or a thread does, and ${sorts.length > 0 || search === undefined ? 'sorts one' : `makes ${teamOf(search).words}`}, as a block does`,
      'make it two ops',
    )
}

/** The length of a statement's row, and the most elements that it has memory for. */
function bounded(s: Kernel['body'][number]): { readonly length: Expr; readonly most: number } | undefined {
  if (s.kind === 'argsort') return s
  if (s.kind === 'counts') return { length: s.bins, most: s.most }
  if (s.kind === 'foldState') return { length: s.width, most: longestCarried }
  return s.kind === 'row' && s.kept !== undefined ? { length: s.length, most: s.kept } : undefined
}

/** Bounds of dimensions implied by sorted, carried and cached rows: longer rows are not worth checking. */
export const sortedDims = ({ body }: Pick<Kernel, 'body'>, stated: Facts['dims']): Facts['dims'] =>
  Object.fromEntries(
    body.flatMap((s) => {
      const { length, most } = bounded(s) ?? {}
      return length?.kind === 'dim' ? [[length.name, { upTo: most, ...stated[length.name] }]] : []
    }),
  )
