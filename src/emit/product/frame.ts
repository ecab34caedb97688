/** Names of the current place in the slots of a matmul: a row that counts through all matrices, and columns of it. */
import type { Kernel } from '../../ir/kernel.js'
import type { Scope } from '../print/expression.js'
import type { Names } from '../print/names.js'

/** Elements that main loops pass at a time (native/device/matmul.cuh): columns of a matmul, or consecutive elements of an operand along k. */
export const vec = 8

/** Source of an index, and the dimensions that it needs. */
export interface IndexText {
  readonly text: string
  readonly dims: readonly string[]
}

/** Names with some of them replaced, for a function in which they mean something else. */
export const renamed = (names: Names, texts: ReadonlyMap<string, string>): Names => ({
  ...names,
  value: (name) => texts.get(name) ?? names.value(name),
})

/** The same names; the tensors that the source uses are recorded in `tensors`. */
export const noting = (names: Names, tensors: Set<string>): Names => ({
  ...names,
  tensor: (name) => {
    tensors.add(name)
    return names.tensor(name)
  },
})

/** Names of indices by their place: a dimension counts as used if an index that needs it is used. */
export const placed = (names: Names, texts: ReadonlyMap<string, IndexText>, { dims }: Scope['used']): Names => ({
  ...names,
  value: (name) => {
    const found = texts.get(name)
    for (const dim of found?.dims ?? []) dims.add(dim)
    return found?.text ?? names.value(name)
  },
})

/**
 * Source of the row indices of a program, from the counter through the axes `order`, outermost first: `row`, or quotients and remainders of it. The
 * program may have its rows in another order.
 */
export function indexTexts(
  { rows }: Pick<Kernel, 'rows'>,
  order: readonly string[],
  row: string,
  names: Names,
): ReadonlyMap<string, IndexText> {
  return new Map(
    rows.map(({ index, dim }) => {
      const axis = order.indexOf(dim)
      if (axis < 0) throw new Error(`internal: a row runs over ${dim}, which is no row axis of the matmul`)
      if (order.length === 1) return [index, { text: row, dims: [] }]
      const below = order.slice(axis + 1)
      const whole = below.length === 0 ? row : `${row} / (${below.map((name) => names.dim(name)).join(' * ')})`
      return [
        index,
        axis === 0 ? { text: `(${whole})`, dims: below } : { text: `(${whole} % ${names.dim(dim)})`, dims: [...below, dim] },
      ]
    }),
  )
}
