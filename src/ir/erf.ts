/**
 * Error function in double precision, which JavaScript lacks.
 * Source: Abramowitz and Stegun 7.1.6, erf(x) = 2/sqrt(pi) * exp(-x^2) * sum 2^n x^(2n+1) / (2n+1)!!. Every term is
 * positive, so nothing cancels; beyond |x| = 6 the result rounds to 1 in double precision.
 */
export function erf(x: number): number {
  const a = Math.abs(x)
  if (!(a < 6)) return Number.isNaN(a) ? Number.NaN : Math.sign(x)
  let term = a
  let sum = a
  for (let n = 1; term > sum * 1e-17; n++) {
    term *= (2 * a * a) / (2 * n + 1)
    sum += term
  }
  return Math.sign(x) * (2 / Math.sqrt(Math.PI)) * Math.exp(-a * a) * sum
}
