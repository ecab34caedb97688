/** Recurrences along rows: what each element makes of what the elements before it have left. */
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
 * What is carried behind the last element of a row: `fold(n, { h: 0 }, ({ h }, t) => ({ h: tanh(a(m, t) * h + b(m, t)) })).h`; of no
 * element, what it starts with. Elements come in ascending order, one after the other: where a step is associative, a `monoid` is many
 * times faster, since threads divide the row. Fields are floats, or integers where they start with an integer tensor's element or `int(0)`.
 * A step reads what is carried, scalars, and elements at places that do not depend on what is carried.
 *
 * A field that starts with a row is a row that is carried, of at most 1024 elements: `fold(t, { s: row(k, (c) => state(b, h, v, c)) },
 * ({ s }, i) => { ...; return { s: row(k, (c) => ...) } }).s`. The step of such a fold is written like a body: sums, extremes and rows over
 * those elements, which may read what is carried at any place. All its fields are floats.
 */
export const fold: (<F extends Carried>(length: number, start: F, step: Step<F>) => F) & Branded<'fold', 'last'> = Object.assign(
  <F extends Carried>(length: number, start: F, step: Step<F>): F => carry(length, start, step).at(-1) ?? start,
  { heddle: { kind: 'fold', name: 'last' } as const },
)

/**
 * What is carried behind each element of a row, a row for each field: `foldRow(n, { h: 0 }, ({ h }, t) => ...).h` is read as `h(t)` at the
 * index of a loop over the row. Otherwise as `fold`. Where the fold carries rows, those give their last, as `fold` does, and a number is
 * an output as it is: `const all = foldRow(t, { s: ..., y: 0 }, ...)`, `{ next: row(k, (c) => all.s(c)), y: row(t, (i) => all.y(i)) }`.
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
