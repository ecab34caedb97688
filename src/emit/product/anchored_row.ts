/**
 * Elements that are an affine function of their row, as those of a layer norm: a factor of the row times a part that is read from the row, plus parts
 * that all rows share, each times a factor of the row. The factors depend on sums over the row. A matmul multiplies all parts while the sums are not
 * known yet, and combines its results at the end:
 *
 *     sum over k of ((x[k] - mean) * inverse * gamma[k] + beta[k]) * w[k]
 *       = inverse * sum of (d[k] * gamma[k]) * w[k]  +  (a - mean) * inverse * sum of gamma[k] * w[k]  +  sum of beta[k] * w[k]
 *
 * with d[k] = x[k] - a and the anchor a = x[0]. Reductions that depend on others, such as the variance, become sums of d and of d squared by the same
 * expansion. The anchor keeps them accurate: it lies at most sqrt(n - 1) standard deviations from the mean, as every element of a row of n does, so
 * that cancellation costs at most n roundings (as in the shifted data algorithm of Chan, Golub and LeVeque 1983).
 */
import { call, f32, local, toFloat } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { hashOf } from '../../ir/expr_hash.js'
import { visit } from '../../ir/walk.js'
import type { Reduction } from '../../schedule/normalise/normal.js'
import { rowExprs } from '../../schedule/normalise/normal.js'
import { type Pass, type PassRow, type Step, statementsOf } from '../../schedule/normalise/passes.js'
import { isKnown, isVector, type Polynomial, polynomialOf, type Reading, readBy, totalOf } from './row_polynomial.js'
import type { RowScale } from './row_scale.js'

/** Name of the anchor's value. No author's name has a space. */
export const anchorName = 'anchor of the row'

/** Parts that all rows share and a main loop multiplies beside the row. */
const mostCommon = 2

/**
 * @param before steps that precede the pass that computes the elements
 * @returns undefined if elements are no such function, or if a reduction is no sum of an element, its square and constants
 */
export function anchoredRowOf(before: readonly Step[], last: Pass): RowScale | undefined {
  const [store] = statementsOf(last, 'loopStore')
  if (store === undefined || store.when !== undefined) return undefined
  const passes = before.flatMap((step) => (step.kind === 'pass' ? [step.pass] : []))
  const rows = [...new Map([...passes, last].flatMap((pass) => pass.rows).map((row) => [row.name, row])).values()]
  const { index } = last.loop
  const anchor = anchorOf(passes, rows, index)
  if (anchor === undefined) return undefined
  const reading: Reading = { index, anchor, name: anchorName, known: new Set(), rows }
  const summed = summedSteps(before, reading)
  if (summed === undefined) return undefined
  const parts = partsOf(polynomialOf(store.value, { ...reading, known: summed.known }), reading)
  if (parts === undefined || parts.common.length > mostCommon) return undefined
  const { value, scale, common } = parts
  const read = readBy([anchor, value, ...summed.sums.map((sum) => sum.value), ...common.map((part) => part.value)], rows)
  const isFree = (row: PassRow): boolean => row.kind !== 'scanned' && !rowExprs(row).some((expr) => isKnown(expr, summed.known))
  if (!read.every(isFree)) return undefined
  const tensors = tensorsOf(
    common.map((part) => part.value),
    rows,
  )
  return {
    sums: summed.sums,
    rows: read,
    after: summed.after,
    scale,
    store: { ...store, value },
    anchored: { anchor, common, tensors },
  }
}

/** The one expression that reductions read from the row: an element of it. */
function anchorOf(passes: readonly Pass[], rows: readonly PassRow[], index: string): Expr | undefined {
  const found = new Map<string, Expr>()
  for (const { value } of passes.flatMap((pass) => statementsOf(pass, 'reduce'))) {
    visit(value, (node) => {
      if ((node.kind === 'element' || node.kind === 'load') && !isVector(node, rows, index)) found.set(hashOf(node), node)
    })
  }
  const [anchor] = found.values()
  return found.size === 1 && anchor?.type === 'f32' ? anchor : undefined
}

/** Tensors that expressions load from, also through rows. */
function tensorsOf(exprs: readonly Expr[], rows: readonly PassRow[]): readonly string[] {
  const found = new Set<string>()
  for (const expr of [...exprs, ...readBy(exprs, rows).flatMap(rowExprs)]) {
    visit(expr, (node) => {
      if (node.kind === 'load') found.add(node.tensor)
    })
  }
  return [...found]
}

interface Summed {
  readonly sums: readonly Reduction[]
  readonly after: RowScale['after']
  /** Names of values that depend on the sums. */
  readonly known: ReadonlySet<string>
}

/** Steps with reductions as functions of sums over the elements' distances from the anchor. */
function summedSteps(before: readonly Step[], reading: Reading): Summed | undefined {
  const sums = new Map<string, Reduction>()
  const after: RowScale['after'][number][] = []
  const known = new Set<string>()
  const sumOf = (like: Reduction) => (value: Expr | undefined) => {
    if (value === undefined) return toFloat(like.loop.length)
    const made = sums.get(hashOf(value)) ?? { ...like, name: `sum ${sums.size} of the row`, value }
    sums.set(hashOf(value), made)
    return local(made.name)
  }
  for (const step of before) {
    if (step.kind !== 'pass') {
      if (step.kind !== 'let') return undefined
      after.push(step)
      known.add(step.name)
      continue
    }
    const reduced = statementsOf(step.pass, 'reduce')
    if (reduced.length !== step.pass.statements.length || step.pass.loop.index !== reading.index) return undefined
    for (const sum of reduced) {
      if (sum.monoid !== 'sum' || sum.type !== 'f32') return undefined
      const terms = polynomialOf(sum.value, { ...reading, known })
      if (terms === undefined || !isSummable(terms)) return undefined
      after.push({ kind: 'let', name: sum.name, type: 'f32', value: totalOf(terms, sumOf(sum)) })
    }
    for (const { name } of reduced) known.add(name)
  }
  return { sums: [...sums.values()], after, known }
}

/** True if terms are constants, distances and squares of distances alone: of these it is known what cancellation costs. */
const isSummable = (terms: Polynomial): boolean => terms.every(({ rest, degree }) => rest.length === degree && degree <= 2)

interface Parts {
  readonly scale: Expr
  readonly value: Expr
  readonly common: readonly { readonly factor: Expr; readonly value: Expr }[]
}

/** An element as one part of the row and parts that all rows share. */
function partsOf(terms: Polynomial | undefined, { rows, index }: Reading): Parts | undefined {
  if (terms === undefined) return undefined
  const moving = terms.filter(({ rest }) => !rest.every((expr) => isVector(expr, rows, index)))
  const [first] = moving
  const alike = moving.every(({ factor }) => hashOf(factor) === hashOf(first?.factor ?? factor))
  if (first === undefined || !alike || moving.some(({ degree }) => degree !== 1)) return undefined
  const product = (rest: readonly Expr[]): Expr => rest.slice(1).reduce((a, b) => call('mul', a, b), rest[0] ?? f32(1))
  const common = terms.filter((term) => !moving.includes(term)).map(({ factor, rest }) => ({ factor, value: product(rest) }))
  const value = moving.map(({ rest }) => product(rest)).reduce((a, b) => call('add', a, b))
  return common.length === 0 ? undefined : { scale: first.factor, value, common }
}
