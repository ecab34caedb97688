/** Notes on values that points share and that each of them computes again, of any construct that runs over elements, with their cost. */
import { constructOf } from '../../ir/constructs/index.js'
import { teamOf } from '../../ir/constructs/team_call.js'
import type { Expr } from '../../ir/expr.js'
import type { Stmt } from '../../ir/kernel.js'
import { printExpr } from '../../ir/print.js'
import { freeNames, introducedNames, stmtExprs, visit } from '../../ir/walk.js'
import type { MappedKernel } from '../mapped.js'

/** A statement that runs over a row and stores nothing, in words; undefined for others, and for rows that are computed where they are read. */
function wordsOf(s: Stmt): { readonly words: string; readonly length: Expr } | undefined {
  switch (s.kind) {
    case 'reduce':
      return { words: `a ${s.monoid}`, length: s.length }
    case 'scan':
      return { words: `a scan by ${s.monoid}`, length: s.length }
    case 'merge':
      return { words: 'a reduction', length: s.length }
    case 'mergeScan':
      return { words: 'a scan', length: s.length }
    case 'foldRow':
    case 'foldState':
      return { words: 'a recurrence', length: s.length }
    case 'topK':
      return { words: `a ranking`, length: s.length }
    case 'argsort':
      return { words: 'a sort', length: s.length }
    case 'counts':
      return { words: 'a histogram', length: s.length }
    case 'team':
      return { words: teamOf(s).words, length: s.length }
    default:
      return undefined
  }
}

/** Messages for values that are constant along an axis, but are computed for each of its rows. */
export function repeatedMessages({ instance: { kernel }, axes, program }: MappedKernel): readonly string[] {
  if (program.kind !== 'rows' && program.kind !== 'elementwise') return []
  const stored = new Set(kernel.tensors.flatMap(({ access, dims }) => (access === 'out' ? dims : [])))
  /** Axes that the value of a name varies along. */
  const along = new Map<string, ReadonlySet<string>>(kernel.rows.map(({ index }) => [index, new Set([index])]))
  /** Names of values that have a message, or follow from one. */
  const noted = new Set<string>()
  return kernel.body.flatMap((s): string[] => {
    const names = new Set(stmtExprs(s).flatMap((e) => [...freeNames(e)]))
    const read = new Set([...names].flatMap((name) => [...(along.get(name) ?? [])]))
    for (const name of introducedNames(s)) along.set(name, read)
    const found = wordsOf(s)
    // A list beside the tensors, such as one of ends, costs little.
    if (found === undefined || !dimsOf(found.length).some((dim) => stored.has(dim))) return []
    // Along an axis with an update range, few places may be left.
    const isWalked = (index: string): boolean => axes.some((axis) => axis.index === index && axis !== program.interval?.axis)
    const same = kernel.rows.filter(({ index }) => !read.has(index) && isWalked(index))
    if (same.length === 0) return []
    const follows = [...names].some((name) => noted.has(name))
    const made = constructOf(s).defines(s)
    for (const { name } of made) noted.add(name)
    if (follows) return []
    const places = same.map(({ index }) => index).join(' and ')
    return [
      `${made[0]?.name}, ${found.words} of ${printExpr(found.length)} elements, is the same for every ${places} and is recomputed for each: ` +
        `${same.map(({ dim }) => dim).join(' x ')} times the work; return it from a separate op`,
    ]
  })
}

/** Dimensions in an expression. */
function dimsOf(expr: Expr): readonly string[] {
  const found = new Set<string>()
  visit(expr, (node) => {
    if (node.kind === 'dim') found.add(node.name)
  })
  return [...found]
}
