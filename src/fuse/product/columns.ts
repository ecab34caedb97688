/**
 * Which columns of a product the epilogue of a column may read: those of its own aligned chunk, which one thread holds. Whether an
 * index stays in the chunk is proved from its form: the column plus a number that depends on its place in the chunk alone.
 */
import { emptyEnv, evaluateExpr } from '../../ir/evaluate.js'
import type { Expr } from '../../ir/expr.js'

/** Columns an epilogue takes at a time, a multiple of which is the first of a chunk. */
export const chunkColumns = 8

/** Whether an index, a function of the column `index`, is of the same chunk as the column. */
export function staysInChunk(expr: Expr, index: string): boolean {
  if (!isNear(expr, index)) return false
  const env = emptyEnv({})
  for (let column = 0; column < chunkColumns; column++) {
    env.values.set(index, column)
    const at = Number(evaluateExpr(expr, env))
    if (!(at >= 0 && at < chunkColumns)) return false
  }
  return true
}

const numberOf = (expr: Expr | undefined): number | undefined =>
  expr?.kind === 'const' && typeof expr.value === 'number' ? expr.value : undefined

const isColumn = (expr: Expr, index: string): boolean => expr.kind === 'index' && expr.name === index

const divides = (by: number | undefined): by is number => by !== undefined && by > 0 && chunkColumns % by === 0

/** Whether an expression is the same for columns a whole number of chunks apart. */
function isPeriodic(expr: Expr, index: string): boolean {
  if (expr.kind === 'const') return true
  if (expr.kind !== 'call') return false
  const [a, b] = expr.args
  if (a === undefined) return false
  if (expr.fn === 'mod' && divides(numberOf(b)) && isColumn(a, index)) return true
  if (expr.fn === 'bitAnd') {
    const mask = numberOf(b) ?? numberOf(a)
    const column = numberOf(b) === undefined ? b : a
    if (mask !== undefined && mask >= 0 && mask < chunkColumns && column !== undefined && isColumn(column, index)) return true
  }
  return expr.args.every((arg) => isPeriodic(arg, index))
}

/** Whether an expression is the column plus something periodic. */
function isNear(expr: Expr, index: string): boolean {
  if (isColumn(expr, index)) return true
  if (expr.kind !== 'call') return false
  const [a, b, c] = expr.args
  if (a === undefined || b === undefined) return false
  switch (expr.fn) {
    case 'add':
      return (isNear(a, index) && isPeriodic(b, index)) || (isPeriodic(a, index) && isNear(b, index))
    case 'sub':
      return isNear(a, index) && isPeriodic(b, index)
    case 'select':
      return c !== undefined && isPeriodic(a, index) && isNear(b, index) && isNear(c, index)
    case 'mul': {
      // The first column of a pair, of four, or of the chunk.
      const [quotient, by] = numberOf(b) === undefined ? [b, numberOf(a)] : [a, numberOf(b)]
      const [of, divisor] = quotient.kind === 'call' && quotient.fn === 'idiv' ? quotient.args : []
      return of !== undefined && divides(by) && numberOf(divisor) === by && isColumn(of, index)
    }
    default:
      return false
  }
}
