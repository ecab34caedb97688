/** Recurrences along rows: a state that each element updates in order. */
import type { Branded } from './intrinsics.js'
import type { Row } from './types.js'

type Carried = Readonly<Record<string, number | Row>>
type Step<F extends Carried> = (carried: F, index: number) => NoInfer<F>
type Rows<F extends Carried> = { readonly [K in keyof F]: Row }

function carry<F extends Carried>(length: number, start: F, step: Step<F>): readonly F[] {
  let carried = start
  return Array.from({ length }, (_, index) => {
    carried = step(carried, index)
    return carried
  })
}

/**
 * State after the last element of a row: `fold(n, { h: 0 }, ({ h }, t) => ({ h: tanh(a(m, t) * h + b(m, t)) })).h`; for an empty
 * row, the start value. Elements are visited in ascending order, one after the other. If the step is associative, a `monoid` is many
 * times faster, since threads divide the row. Fields are floats, or integers if they start with an integer tensor's element or `int(0)`.
 * A step reads the carried state, scalars, and elements at positions that do not depend on the carried state.
 *
 * A field that starts with a row carries a row, of at most 1024 elements: `fold(t, { s: row(k, (c) => state(b, h, v, c)) },
 * ({ s }, i) => { ...; return { s: row(k, (c) => ...) } }).s`. The step of such a fold is written like a body: sums, extremes and rows over
 * those elements, which may read the carried row at any position. All its fields are floats.
 */
export const fold: (<F extends Carried>(length: number, start: F, step: Step<F>) => F) & Branded<'fold', 'last'> = Object.assign(
  <F extends Carried>(length: number, start: F, step: Step<F>): F => carry(length, start, step).at(-1) ?? start,
  { heddle: { kind: 'fold', name: 'last' } as const },
)

/**
 * State after each element of a row, one row per field: `foldRow(n, { h: 0 }, ({ h }, t) => ...).h` is read as `h(t)` at the
 * index of a loop over the row. Otherwise as `fold`. If the fold carries rows, these give their last value, as with `fold`, and a number
 * is an output as it is: `const all = foldRow(t, { s: ..., y: 0 }, ...)`, `{ next: row(k, (c) => all.s(c)), y: row(t, (i) => all.y(i)) }`.
 */
export const foldRow: (<F extends Carried>(length: number, start: F, step: Step<F>) => Rows<F>) & Branded<'fold', 'each'> =
  Object.assign(
    <F extends Carried>(length: number, start: F, step: Step<F>): Rows<F> => {
      const all = carry(length, start, step)
      const numbers =
        (field: string): Row =>
        (index) => {
          const value = all[index]?.[field]
          if (typeof value !== 'number') throw new RangeError(`index ${index} is outside the row of ${length} elements`)
          return value
        }
      const last = all.at(-1) ?? start
      const rowOf = (field: string): Row => {
        const value = last[field]
        return typeof value === 'function' ? value : numbers(field)
      }
      return Object.fromEntries(Object.keys(start).map((field) => [field, rowOf(field)])) as Rows<F>
    },
    { heddle: { kind: 'fold', name: 'each' } as const },
  )
