/**
 * Reference for attention kernels: a plain loop in double precision over the definition in src/ir/template.ts. It shares only the meaning of
 * expressions with the compiler's own evaluation.
 */
import type { DType } from '../../src/ir/dtype.js'
import { type Env, emptyEnv, evaluateExpr, type HostTensor } from '../../src/ir/evaluate.js'
import type { Expr } from '../../src/ir/expr.js'
import type { AttentionKernel, RowOperand } from '../../src/ir/template.js'
import { roundTo } from '../../src/runtime/numbers.js'

type Numbers = Readonly<Record<string, number>>

/** Scores from here down count as masked. */
const hidden = -1e29

/** Results of [b, s, h, e]; NaN for rows that are not stored. `dtype` is the type to which computed rows are rounded. */
export function attend(
  kernel: AttentionKernel,
  inputs: Readonly<Record<string, HostTensor>>,
  dims: Numbers,
  dtype: DType,
): number[] {
  const env: Env = { ...emptyEnv(dims), tensors: inputs }
  const at = (names: Numbers, expr: Expr): number => {
    for (const [name, value] of Object.entries(names)) env.values.set(name, value)
    return Number(evaluateExpr(expr, env))
  }
  const row = ({ tensor, indices, element }: RowOperand, place: Numbers, length: number): ArrayLike<number> => {
    const along = indices.map(
      (expr, n): Expr =>
        n < indices.length - 1
          ? expr
          : { kind: 'call', type: 'i32', fn: 'add', args: [expr, { kind: 'index', type: 'i32', name: 'c' }] },
    )
    const value: Expr = element ?? { kind: 'load', type: 'f32', tensor, indices: along }
    return roundTo(
      dtype,
      Array.from({ length }, (_, c) => at({ ...place, c }, value)),
    )
  }
  const extent = (expr: Expr): number => at({}, expr)
  const [batch, heads, queries, keys] = [kernel.batch, kernel.heads, kernel.queries, kernel.keys].map(extent) as [
    number,
    number,
    number,
    number,
  ]
  const [headDim, valueDim] = [extent(kernel.headDim), extent(kernel.valueDim)]
  const y = new Array<number>(batch * queries * heads * valueDim).fill(Number.NaN)
  const cached = (operand: RowOperand, length: number) => {
    const rows = new Map<string, ArrayLike<number>>()
    return (place: Numbers): ArrayLike<number> => {
      const key = Object.values(place).join()
      const known = rows.get(key) ?? row(operand, place, length)
      rows.set(key, known)
      return known
    }
  }
  const [keyRow, valueRow] = [cached(kernel.key, headDim), cached(kernel.value, valueDim)]
  for (let b = 0; b < batch; b++) {
    const [count, owned] = [at({ b }, kernel.queryCount), at({ b }, kernel.ownedCount)]
    for (let h = 0; h < heads; h++) {
      for (let i = 0; i < owned; i++) {
        const results = i < count ? attendOne(b, h, i) : new Array<number>(valueDim).fill(0)
        results.forEach((result, c) => {
          y[((b * queries + i) * heads + h) * valueDim + c] = at({ b, h, i, c, result }, kernel.stored)
        })
      }
    }
  }
  return y

  function attendOne(b: number, h: number, i: number): number[] {
    const query = row(kernel.query, { b, h, i }, headDim)
    const [from, to] = [Math.max(0, at({ b, h, i }, kernel.range.lower)), Math.min(keys, at({ b, h, i }, kernel.range.upper))]
    const counted: { readonly j: number; readonly score: number }[] = []
    for (let j = from; j < to; j++) {
      const key = keyRow({ b, h, j })
      let raw = 0
      for (let c = 0; c < headDim; c++) raw += (query[c] ?? 0) * (key[c] ?? 0)
      const score = at({ b, h, i, j, raw }, kernel.score)
      if (score >= hidden) counted.push({ j, score })
    }
    const sums = new Array<number>(valueDim).fill(0)
    if (counted.length === 0) return sums
    const top = Math.max(...counted.map(({ score }) => score))
    let total = 0
    for (const { j, score } of counted) {
      const weight = Math.exp(score - top)
      total += weight
      const value = valueRow({ b, h, j })
      for (let c = 0; c < valueDim; c++) sums[c] = (sums[c] ?? 0) + weight * (value[c] ?? 0)
    }
    const denominator = at({ b, h, i, total, top }, kernel.denominator)
    return sums.map((sum) => sum / denominator)
  }
}
