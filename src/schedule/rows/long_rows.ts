/**
 * Long rows as several launches: the reductions of each level as totals, which blocks of the whole grid divide, and a last launch that stores along
 * the row. A block that computes a row alone leaves the rest of the device idle where rows are few. Results of a level are in scratch memory for the
 * later ones; what is stored once per row is stored by the launch that knows it. Runs after the schedule of the rows in one launch is chosen (map.ts).
 *
 *     y[m, c] = exp(x[m, c] - top) / total    top0[m] = max(c: x[m, c]); total0[m] = sum(c: exp(x[m, c] - top0[m])); y[m, c]
 */
import { i32 } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { noFacts } from '../../ir/facts/facts.js'
import { getOwn } from '../../ir/get_own.js'
import { type Instance, resolveDType } from '../../ir/instance.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { isUpdating } from '../../ir/update.js'
import { freeNames, mapStmt, rewrite, stmtExprs, visit } from '../../ir/walk.js'
import { withoutRows } from '../divided/column_rows.js'
import { isReduction, valuesOf } from '../divided/reduction.js'
import { isHostExpr } from '../normalise/host_expr.js'
import { freshName } from '../normalise/normal.js'
import { contains, sameExpr, substituteDims, usesIndex } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'
import { divide, type SplitKernel, withoutUnread } from './cut_kernel.js'
import type { inOnePass } from './one_pass.js'
import { isBeside, reductionsOf } from './split_launch.js'

/** Kernels in place of one, in order, and the length of its rows. */
export interface LongRows {
  /** Kernels of reductions, without values of rows. */
  readonly levels: readonly Kernel[]
  /** The kernel that stores rows, if there is one. */
  readonly last: Kernel | undefined
  readonly length: Expr
  /** Most elements of a row that facts, or the usual sizes of a graph, allow. */
  readonly most: number
  /** Bytes per element that the reductions read of each row. */
  readonly bytes: number
}

const kinds: ReadonlySet<Stmt['kind']> = new Set(['row', 'let', 'reduce', 'merge', 'store', 'storeRow'])

/** The kernel as kernels of reductions over its rows and one that stores; undefined if it computes anything else, or no reductions. */
export function longRows({ kernel: given, dims, types }: Instance): LongRows | undefined {
  if (isUpdating(given) || given.rows.some(({ also = [] }) => also.length > 0)) return undefined
  const numbers = new Map(Object.entries(dims).map(([name, extent]) => [name, i32(extent)]))
  const body = withoutUnread(given.body.map((s) => mapStmt(s, (e) => substituteDims(e, numbers))))
  const kernel = { ...given, body }
  const length = lengthOf(body)
  if (length === undefined) return undefined
  const levels: Kernel[] = []
  let rest: Kernel = kernel
  while (rest.body.some(isReduction)) {
    const split = splitLevel(rest, levels.length + 1)
    if (split === undefined) return undefined
    levels.push(withMultiples(withoutRows(split.first), given))
    rest = withScalars(split.rest, kernel)
  }
  const last = rest.body.length === 0 ? undefined : rest
  return { levels, last, length, most: mostOf(length, given), bytes: bytesOf(levels, kernel, types) }
}

/** Long rows with their reductions joined, if that leaves fewer levels (one_pass.ts); otherwise as they are. */
export function inFewestLevels(
  instance: Instance,
  passes: { readonly longRows: typeof longRows; readonly inOnePass: typeof inOnePass },
): LongRows | undefined {
  const long = passes.longRows(instance)
  const kernel = long === undefined ? undefined : passes.inOnePass(instance.kernel)
  const joined = kernel === undefined ? undefined : passes.longRows({ ...instance, kernel })
  return long === undefined || joined === undefined || joined.levels.length >= long.levels.length ? long : joined
}

const exact: ReadonlySet<string> = new Set(['max', 'min', 'argmax', 'argmin'])

/** True for rows whose numbers are the same bits in any order of combination, and that store nothing else. */
export const isExact = ({ levels, last }: Pick<LongRows, 'levels' | 'last'>): boolean =>
  last === undefined &&
  levels.every(({ body }) =>
    body
      .filter(isReduction)
      .every((s) => s.kind === 'reduce' && (exact.has(s.monoid) || (s.monoid === 'sum' && s.type === 'i32'))),
  )

/** Bytes per element of the tensors that differ from row to row. */
export function bytesOf(levels: readonly Kernel[], { tensors, rows }: Kernel, types: Instance['types']): number {
  const read = new Set<string>()
  for (const s of levels.flatMap(({ body }) => body))
    for (const value of isReduction(s) ? valuesOf(s) : [])
      visit(value, (node) => {
        if (node.kind === 'load' && (rows.length === 0 || rows.some(({ index }) => usesIndex(node, index)))) read.add(node.tensor)
      })
  return tensors.reduce((sum, { name, dtype }) => sum + (read.has(name) ? dtypeInfo[resolveDType(dtype, types)].bytes : 0), 0)
}

/** The kernel with the facts on dimensions of another: their multiples need no tails. */
export const withMultiples = (kernel: Kernel, { facts }: Kernel): Kernel =>
  facts === undefined ? kernel : { ...kernel, facts: { ...noFacts, dims: facts.dims } }

/** Most elements of a row by facts, or by the usual sizes of the graph that a kernel is derived from: rows of a model's width are never long. */
export function mostOf(length: Expr, { facts, typical = {} }: Kernel): number {
  if (length.kind === 'const') return Number(length.value)
  if (length.kind !== 'dim') return Number.POSITIVE_INFINITY
  const { equal, atMost } = getOwn(facts?.dims ?? {}, length.name) ?? {}
  const known = [equal, atMost, getOwn(typical, length.name)].filter((each) => typeof each === 'number')
  return Math.min(...known, Number.POSITIVE_INFINITY)
}

/** The kernel with its scratch tensors read once per row, in front of its loops. @param whole the kernel without scratch tensors */
function withScalars(rest: Kernel, whole: Kernel): Kernel {
  const own = new Set(whole.tensors.map(({ name }) => name))
  const scratch = new Map(rest.tensors.flatMap((each) => (own.has(each.name) ? [] : [[each.name, each] as const])))
  const taken = takenNames(rest)
  const known = new Map<string, StmtOf<'let'>>()
  const read = (e: Expr): Expr =>
    rewrite(e, (node) => {
      if (node.kind !== 'load' || !scratch.has(node.tensor)) return node
      const made = known.get(node.tensor) ?? {
        kind: 'let',
        name: freshName(`${node.tensor}_read`, taken),
        type: node.type,
        value: node,
      }
      known.set(node.tensor, made)
      return { kind: 'local', name: made.name, type: node.type }
    })
  const body = rest.body.map((s) => (s.kind === 'let' && s.value.kind === 'load' ? s : mapStmt(s, read)))
  return { ...rest, body: [...known.values(), ...body] }
}

/** The one length of all loops, if it is known before the kernel runs and no element has a loop of its own. */
function lengthOf(body: readonly Stmt[]): Expr | undefined {
  const lengths = body.flatMap((s) => ('length' in s && s.length !== undefined ? [s.length as Expr] : []))
  const [first] = body.flatMap((s) => (isReduction(s) ? [s.length] : []))
  const isPlain = (s: Stmt): boolean =>
    kinds.has(s.kind) &&
    stmtExprs(s).every((e) => !contains(e, ({ kind }) => kind === 'fold')) &&
    !('when' in s && s.when !== undefined)
  return first !== undefined && isHostExpr(first) && body.every(isPlain) && lengths.every((each) => sameExpr(each, first))
    ? first
    : undefined
}

/**
 * The reductions of a row that follow from no other, as a kernel of their own; stores that need no more are moved with them.
 * @param part as of `splitLaunch`
 * @returns undefined if they differ in loops or rows, or if others can be in no launch in front
 */
function splitLevel(kernel: Kernel, part: number): SplitKernel | undefined {
  const all = reductionsOf(kernel, new Map())
  const moved = all.filter(({ level }) => level === 1)
  const [one] = moved
  const isWhole = all.length === kernel.body.filter(isReduction).length && one?.axes.size === kernel.rows.length
  if (one === undefined || !isWhole || !moved.every((each) => isBeside(each, one))) return undefined
  return divide(kernel, moved, part, storesAfter(kernel, new Set(moved.flatMap(({ slice }) => slice))))
}

/** Stores of one element per row that need no other reductions, with all that they follow from. @param known reductions, and what they follow from */
function storesAfter({ body }: Kernel, known: ReadonlySet<Stmt>): ReadonlySet<Stmt> {
  const madeBy = new Map<string, ReadonlySet<Stmt> | undefined>()
  const stored = new Set<Stmt>()
  for (const s of body) {
    const names = stmtExprs(s).flatMap((e) => [...freeNames(e)])
    const needed = new Set<Stmt>([s])
    const isKnown = names.every((name) => {
      for (const each of madeBy.get(name) ?? []) needed.add(each)
      return !madeBy.has(name) || madeBy.get(name) !== undefined
    })
    const isMoved = isKnown && (!isReduction(s) || known.has(s))
    for (const { name } of constructOf(s).defines(s)) madeBy.set(name, isMoved ? needed : undefined)
    if (isMoved && s.kind === 'store') for (const each of needed) stored.add(each)
  }
  return stored
}
