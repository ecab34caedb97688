/** Axes: where a value lies, and at which round values there are ticks. */

export interface Scale {
  /** Pixels from the axis's start. */
  readonly at: (value: number) => number
  readonly ticks: readonly number[]
}

/** From 0 to `most` over `length` pixels, with about five ticks at 1, 2 or 5 times a power of ten. */
export function linear(most: number, length: number): Scale {
  const top = most > 0 ? most : 1
  const power = 10 ** Math.floor(Math.log10(top / 5))
  const step = power * ([1, 2, 5].find((factor) => top / (factor * power) <= 6) ?? 10)
  const count = Math.floor(top / step + 1e-9)
  return {
    at: (value) => (value / top) * length,
    ticks: Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(12))),
  }
}

/** From `least` to `most`, both widened to powers of ten, which are the ticks. */
export function logarithmic(least: number, most: number, length: number): Scale {
  const low = Math.floor(Math.log10(least))
  const high = Math.max(Math.ceil(Math.log10(most)), low + 1)
  return {
    at: (value) => ((Math.log10(value) - low) / (high - low)) * length,
    ticks: Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i)),
  }
}

/** A tick's text without trailing zeros: `0.5`, `20`, `1k`. */
export function tickText(value: number): string {
  if (value >= 1000) return `${Number((value / 1000).toPrecision(3))}k`
  return String(Number(value.toPrecision(3)))
}
