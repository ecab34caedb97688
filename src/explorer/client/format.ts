/** Number formats of the page. */

/** Three significant digits, without an exponent. */
export const short = (value: number): string => (value >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3))))

export const microseconds = (value: number): string => `${value >= 100 ? value.toFixed(0) : value.toFixed(1)} µs`

/** A duration, in milliseconds if microseconds would have five digits. */
export const duration = (us: number): string => (us >= 10_000 ? `${short(us / 1000)} ms` : microseconds(us))

export const milliseconds = (value: number): string => `${value.toPrecision(4)} ms`

/** `178 MB`, in powers of ten, like bandwidths. */
export const bytes = (value: number): string => scaled(value, 'B')

export const scaled = (value: number, unit: string): string => {
  for (const [size, prefix] of [
    [1e12, 'T'],
    [1e9, 'G'],
    [1e6, 'M'],
    [1e3, 'k'],
  ] as const)
    if (value >= size) return `${short(value / size)} ${prefix}${unit}`
  return `${short(value)} ${unit}`
}

export const percent = (share: number): string => `${(100 * share).toFixed(1)} %`

/** Probability by chance. The underlying table of the normal distribution ends at 0.002. */
export const chance = (value: number): string => (value < 0.0021 ? '≤ 0.002' : value.toFixed(3))

/** Labels of a logarithmic axis: 1, 2 and 5 of each decade. */
export const logTick = (value: number, write: (value: number) => string = short): string =>
  /^[125]/.test(value.toExponential()) && Number(value.toPrecision(1)) === value ? write(value) : ''
