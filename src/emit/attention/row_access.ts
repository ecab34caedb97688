/**
 * Memory layout of rows of a head, derived from offsets: the distance between neighbouring rows, contiguity of a row's elements, and alignment of
 * rows to a chunk. Used when attention is emitted, to decide if rows can be moved whole.
 */
import { usageError } from '../../errors.js'
import { i32 } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import { simplifyExpr } from '../../ir/simplify.js'
import { operands } from '../../ir/walk.js'
import { classify, offsetOf } from '../../schedule/access/access.js'
import { contains, dropZeros, hashOf, isZero } from '../../schedule/normalise/rewrite.js'
import { type Scope, tensorOf, wideText } from '../print/expression.js'

type Term = readonly Expr[]

/** An offset as a sum of products. Signs are irrelevant for tests of multiples. */
function termsOf(e: Expr): readonly { readonly factors: Term; readonly negative: boolean }[] {
  if (e.kind !== 'call') return [{ factors: [e], negative: false }]
  const [a, b] = e.args
  if (a === undefined || b === undefined) return [{ factors: [e], negative: false }]
  switch (e.fn) {
    case 'add':
      return [...termsOf(a), ...termsOf(b)]
    case 'sub':
      return [...termsOf(a), ...termsOf(b).map(({ factors, negative }) => ({ factors, negative: !negative }))]
    case 'mul':
      return termsOf(a).flatMap((x) =>
        termsOf(b).map((y) => ({ factors: [...x.factors, ...y.factors], negative: x.negative !== y.negative })),
      )
    default:
      return [{ factors: [e], negative: false }]
  }
}

/** True if an expression has an index of this name. */
export const mentions = (e: Expr, name: string): boolean => contains(e, (node) => node.kind === 'index' && node.name === name)

/** True if the host knows a value: it depends on extents and attributes alone. */
const isKnown = (e: Expr): boolean =>
  e.kind === 'dim' || e.kind === 'attr' || e.kind === 'const' || (e.kind === 'call' && operands(e).every(isKnown))

const product = (factors: Term): Expr =>
  simplifyExpr(factors.reduce<Expr>((left, right) => ({ kind: 'call', type: 'i32', fn: 'mul', args: [left, right] }), i32(1)))

/** Stride of an offset along an index, if it is one number known to the host. */
export function stepOf(offset: Expr, index: string): Expr | undefined {
  const steps: Expr[] = []
  for (const { factors, negative } of termsOf(dropZeros(offset))) {
    const place = factors.findIndex((factor) => factor.kind === 'index' && factor.name === index)
    const rest = factors.filter((_, i) => i !== place)
    if (rest.some((factor) => mentions(factor, index))) return undefined
    if (place < 0) continue
    if (negative || !rest.every(isKnown)) return undefined
    steps.push(product(rest))
  }
  const [first, ...more] = steps
  if (first === undefined) return i32(0)
  return more.reduce<Expr>((left, right) => ({ kind: 'call', type: 'i32', fn: 'add', args: [left, right] }), first)
}

/** Values that must be multiples of a number for an offset to be one for all indices. Multiples of `chunk` are left out. */
function factorsIn(offset: Expr): readonly Expr[] {
  const of = new Map<string, Expr>()
  for (const { factors } of termsOf(dropZeros(offset))) {
    const factor = product(factors.filter(isKnown))
    if (factor.kind !== 'const' || Number(factor.value) % chunk !== 0) of.set(hashOf(factor), factor)
  }
  return [...of.values()]
}

/** Start of a row: a tensor and the indices of its element 0. */
export interface RowStart {
  readonly tensor: string
  readonly indices: readonly Expr[]
}

/** Indices of element `c` of a row. */
export function alongRow(indices: readonly Expr[]): Expr[] {
  const c: Expr = { kind: 'index', type: 'i32', name: 'c' }
  return indices.map((at, i) => {
    if (i < indices.length - 1) return at
    return isZero(at) ? c : { kind: 'call', type: 'i32', fn: 'add', args: [at, c] }
  })
}

/** True if the elements of a row are contiguous in memory. */
export function isTogether({ tensor, indices }: RowStart, scope: Pick<Scope, 'tensors' | 'fixed'>): boolean {
  const found = classify(offsetOf(tensorOf(tensor, scope), alongRow(indices), scope.fixed), 'c')
  return found.kind === 'contiguous' && found.run === Number.POSITIVE_INFINITY
}

/** @throws usage `emit.rows` for a row whose elements are not contiguous */
export function refuseScattered(key: string, row: RowStart, scope: Pick<Scope, 'tensors' | 'fixed'>): void {
  if (isTogether(row, scope)) return
  const { name, layout } = tensorOf(row.tensor, scope)
  throw usageError('emit.rows', `${key}: elements of a head of ${name} are not contiguous in layout ${layout.name}`, {
    hint: 'give the edge a layout whose last axis is contiguous',
  })
}

/** Number of elements by which rows are moved. */
const chunk = 8

/** Condition on the host that rows begin at multiples of a chunk for all indices, as source. */
export function alignedText(rows: readonly RowStart[], scope: Scope): string {
  const factors = rowFactors(rows, scope)
  if (factors.some(({ kind }) => kind === 'const')) return 'false'
  return multiplesText(factors, `${chunk}`, scope)
}

/** Values that must be multiples of a divisor of a chunk for rows to begin at its multiples for all indices. */
export const rowFactors = (rows: readonly RowStart[], scope: Scope): readonly Expr[] =>
  rows.flatMap(({ tensor, indices }) => factorsIn(offsetOf(tensorOf(tensor, scope), indices, scope.fixed)))

/** Condition that values are multiples of `unit`, as source. */
export function multiplesText(values: readonly Expr[], unit: string, scope: Scope): string {
  const conditions = new Set(values.map((value) => `(${wideText(value, scope)}) % ${unit} == 0`))
  return conditions.size === 0 ? 'true' : [...conditions].join(' && ')
}
