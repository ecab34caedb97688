/** Constants as C++ source that denotes exactly their value. */
import type { ExprOf } from '../../ir/expr.js'

/** Literal of a constant. Negative numbers are parenthesised, because other source may precede them. */
export function literalText({ type, value }: ExprOf<'const'>): string {
  if (typeof value === 'boolean') return value ? 'true' : 'false'
  if (type === 'i32') {
    // C++ reads -2147483648 as the negation of a number that is no int.
    return value === -2147483648 ? '(-2147483647 - 1)' : negative(value) ? `(${value})` : String(value)
  }
  const single = Math.fround(value)
  if (Number.isNaN(single)) return 'NAN'
  const magnitude = Math.abs(single) === Number.POSITIVE_INFINITY ? 'INFINITY' : decimalText(Math.abs(single))
  return negative(single) ? `(-${magnitude})` : magnitude
}

const negative = (value: number): boolean => value < 0 || Object.is(value, -0)

/** Rounding boundaries are at least 2^-25 of a number away from it. */
const closeEnough = 0.75 * 2 ** -25

/**
 * The shortest decimal that reads back as this float32 number. Nine significant digits always do. Fewer are used if the decimal is nearer than
 * three quarters of the way to the next rounding boundary, which no intermediate rounding crosses.
 */
function decimalText(single: number): string {
  for (let digits = 1; digits < 9; digits++) {
    const text = Number(single.toPrecision(digits))
    if (Math.fround(text) === single && Math.abs(text - single) <= single * closeEnough) return floatText(text)
  }
  return floatText(Number(single.toPrecision(9)))
}

const floatText = (value: number): string => {
  const text = String(value)
  return `${/[.e]/.test(text) ? text : `${text}.0`}f`
}
