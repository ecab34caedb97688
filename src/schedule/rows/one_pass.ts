/**
 * A maximum of a row and the sums of exponentials shifted by it, as one reduction. Apart, a row is read once for the maximum and once for the sums.
 * Parts of it have maxima of their own, and their sums are scaled before they are added (src/ir/shifted_sum.ts). Used where every pass over a row
 * reads memory again: variants that keep no rows, and long rows that the blocks of the grid divide.
 *
 *     top = max(c: x[c]); total = sum(c: exp(x[c] - top))
 *     (top, total) = (c: x[c], exp(0)), where (a, s) and (b, t) combine to (max(a, b), s * exp(a - max(a, b)) + t * exp(b - max(a, b)))
 */
import { call, f32, i32, index as indexVar, local } from '../../ir/build.js'
import { constructOf } from '../../ir/constructs/index.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, Stmt, StmtOf } from '../../ir/kernel.js'
import { replaced, type Shifted, shiftedSum } from '../../ir/shifted_sum.js'
import { isUpdating } from '../../ir/update.js'
import type { UserMonoid } from '../../ir/user_monoid.js'
import { freeNames, rewrite, stmtExprs, substitute } from '../../ir/walk.js'
import { freshName } from '../normalise/normal.js'
import { contains, sameExpr, substituteIndex } from '../normalise/rewrite.js'
import { takenNames } from '../normalise/taken_names.js'

type Reduce = StmtOf<'reduce'>

/** A sum that is computed with its maximum. */
interface Joined {
  readonly sum: Reduce
  /** Its terms, with scalars and rows that follow from the maximum written out. */
  readonly value: Expr
  readonly shifted: Shifted
}

/** The least finite float32. Shifted by it, elements of -infinity have terms of 0, and a part of them alone keeps its sums. */
const lowest = f32(-(2 ** 128 - 2 ** 104))
const finite = (top: Expr): Expr => call('maximum', top, lowest)

/** The kernel with maxima and shifted sums joined; undefined if it has none. */
export function inOnePass(kernel: Kernel): Kernel | undefined {
  if (isUpdating(kernel)) return undefined
  let made: Kernel | undefined
  for (const top of kernel.body) if (top.kind === 'reduce' && top.monoid === 'max') made = withJoined(made ?? kernel, top) ?? made
  return made
}

function withJoined(kernel: Kernel, top: Reduce): Kernel | undefined {
  if (top.type !== 'f32') return undefined
  const dependent = dependents(kernel.body, (s) => s === top)
  const known = namesOf(dependents(kernel.body, reduces))
  const joined = [...dependent].flatMap((sum): readonly Joined[] => {
    if (sum.kind !== 'reduce' || sum === top || !sameExpr(sum.length, top.length)) return []
    const value = writtenOut(sum.value, dependent)
    const shifted = shiftedSum({ ...sum, value }, new Map([[top.name, top]]), known)
    return shifted !== undefined && isScaled(shifted, value) ? [{ sum, value, shifted }] : []
  })
  return joined.length === 0 ? undefined : rejoined(kernel, top, joined)
}

/** Statements that compute scalars or rows from elements of a row in a loop. */
const reduces = (s: Stmt): boolean => s.kind !== 'let' && s.kind !== 'row'

/** Statements that `starts` accepts, and those that follow from them. */
function dependents(body: readonly Stmt[], starts: (s: Stmt) => boolean): ReadonlySet<Stmt> {
  const found = new Set<Stmt>()
  const names = new Set<string>()
  for (const s of body) {
    if (!starts(s) && !stmtExprs(s).some((e) => [...freeNames(e)].some((name) => names.has(name)))) continue
    found.add(s)
    for (const { name } of constructOf(s).defines(s)) names.add(name)
  }
  return found
}

const namesOf = (body: Iterable<Stmt>): ReadonlySet<string> =>
  new Set(
    [...body].flatMap((s) =>
      constructOf(s)
        .defines(s)
        .map(({ name }) => name),
    ),
  )

/** An expression with the scalars and row values among these statements substituted. */
function writtenOut(value: Expr, from: ReadonlySet<Stmt>): Expr {
  const made = new Map<string, StmtOf<'let'> | StmtOf<'row'>>()
  for (const s of from) if (s.kind === 'let' || (s.kind === 'row' && s.kept === undefined)) made.set(s.name, s)
  const go = (e: Expr): Expr =>
    rewrite(e, (node) => {
      const found = node.kind === 'local' ? made.get(node.name) : node.kind === 'element' ? made.get(node.row) : undefined
      if (found?.kind === 'let' && node.kind === 'local') return go(found.value)
      if (found?.kind === 'row' && node.kind === 'element') return go(substituteAt(found, node.index))
      return node
    })
  return go(value)
}

const substituteAt = ({ value, index }: StmtOf<'row'>, at: Expr): Expr => substitute(value, new Map([[index, at]]))

/**
 * True if sums of parts may be scaled: the exponent is the difference times a positive constant, so that no factor exceeds 1, and every term counts,
 * so that a row of -infinity alone has a sum that is NaN.
 */
function isScaled({ exponential, difference }: Shifted, value: Expr): boolean {
  const isChosen = contains(
    value,
    (node) => node.kind === 'call' && node.fn === 'select' && contains(node, (e) => e === exponential),
  )
  return !isChosen && isMultiple(exponential.args[0], difference)
}

function isMultiple(exponent: Expr | undefined, difference: Expr): boolean {
  if (exponent === undefined || exponent === difference) return exponent === difference
  if (exponent.kind !== 'call' || (exponent.fn !== 'mul' && exponent.fn !== 'div')) return false
  const [a, b] = exponent.args
  if (isPositive(b)) return isMultiple(a, difference)
  return exponent.fn === 'mul' && isPositive(a) && isMultiple(b, difference)
}

const isPositive = (e: Expr | undefined): boolean =>
  e?.kind === 'const' && typeof e.value === 'number' && e.value > 0 && Number.isFinite(e.value)

/** The kernel with one reduction in place of several. What follows from them comes after it. */
function rejoined(kernel: Kernel, top: Reduce, joined: readonly Joined[]): Kernel {
  const taken = takenNames(kernel)
  const gone = new Set<Stmt>([top, ...joined.map(({ sum }) => sum)])
  const after = dependents(kernel.body, (s) => gone.has(s))
  const element = (e: Expr, { index }: Reduce): Expr => substituteIndex(e, index, indexVar(top.index))
  // Each element is a part of its own.
  const own = call('sub', top.value, finite(top.value))
  const names = joined.map(({ sum }) => freshName(`${sum.name}_shifted`, taken))
  const merge: StmtOf<'merge'> = {
    kind: 'merge',
    names: [top.name, ...names],
    monoid: monoidOf(top, joined),
    length: top.length,
    index: top.index,
    values: [top.value, ...joined.map(({ sum, value, shifted }) => element(replaced(value, shifted.difference, own), sum))],
  }
  const whole = local(top.name)
  const isUnshifted = call('and', call('eq', whole, f32(Number.NEGATIVE_INFINITY)), call('gt', top.length, i32(0)))
  const sums = joined.map(
    ({ sum: { name, type } }, i): StmtOf<'let'> => ({
      kind: 'let',
      name,
      type,
      // -infinity less itself is NaN.
      value: call('select', isUnshifted, f32(Number.NaN), local(names[i] ?? '')),
    }),
  )
  const rest = (isAfter: boolean): readonly Stmt[] => kernel.body.filter((s) => !gone.has(s) && after.has(s) === isAfter)
  return { ...kernel, body: [...rest(false), merge, ...sums, ...rest(true)] }
}

/** Combination of two parts of a row: a maximum, and sums that are scaled to it. */
function monoidOf(top: Reduce, joined: readonly Joined[]): UserMonoid {
  const part = (side: string): readonly string[] => [top, ...joined.map(({ sum }) => sum)].map(({ name }) => `${name} ${side}`)
  const [left, right, shift] = [part('left'), part('right'), `${top.name} of both`]
  const scaled = joined.map(({ shifted: { exponential, difference } }, i) => {
    const [own, sum] = [local(left[0] ?? ''), local(left[i + 1] ?? '')]
    return call('mul', sum, replaced(exponential, difference, call('sub', finite(own), finite(local(shift)))))
  })
  const both = call('maximum', local(left[0] ?? ''), local(right[0] ?? ''))
  const toBoth = new Map([[shift, both]])
  const fromRight = new Map(left.map((name, i) => [name, local(right[i] ?? '')]))
  return {
    fields: [
      { name: top.name, type: 'f32', identity: Number.NEGATIVE_INFINITY },
      ...joined.map(({ sum: { name } }) => ({ name, type: 'f32', identity: 0 }) as const),
    ],
    left,
    right,
    combine: [both, ...scaled.map((e) => call('add', substitute(e, toBoth), substitute(substitute(e, fromRight), toBoth)))],
    shift: { top: shift, scaled },
  }
}
