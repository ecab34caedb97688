/**
 * The order of a row's elements, as `argsort` defines it for a body run by Node, for the IR's evaluator and for native/device/sort.cuh.
 * Ascending and stable, so that there is one result; NaN comes last.
 */

/** The longest row that can be sorted. Its keys take 8 bytes each of the shared memory that every block has by default. */
export const longestSorted = 4096

/** Indices of `value(0) .. value(length - 1)`, in ascending order of their values. */
export function sortPlaces(length: number, value: (index: number) => number): readonly number[] {
  const values = Array.from({ length }, (_, i) => value(i))
  const nanLast = (a: number, b: number): number => Number(Number.isNaN(a)) - Number(Number.isNaN(b))
  return values
    .map((key, place) => ({ key, place }))
    .sort((a, b) => nanLast(a.key, b.key) || (a.key < b.key ? -1 : a.key > b.key ? 1 : a.place - b.place))
    .map(({ place }) => place)
}
