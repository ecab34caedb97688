/**
 * The order of a row's elements: what `argsort` means for a body run by Node, for the IR's evaluator and for native/device/sort.cuh.
 * Ascending; equal elements in the order of their places, so that there is one result; NaN behind everything else.
 */

/** The longest row that is sorted: its keys take 8 bytes each of the shared memory that every block has without asking for more. */
export const longestSorted = 4096

/** The places of `value(0) .. value(length - 1)` in ascending order of their values. */
export function sortPlaces(length: number, value: (index: number) => number): readonly number[] {
  const values = Array.from({ length }, (_, i) => value(i))
  const behind = (a: number, b: number): number => Number(Number.isNaN(a)) - Number(Number.isNaN(b))
  return values
    .map((own, place) => ({ own, place }))
    .sort((a, b) => behind(a.own, b.own) || (a.own < b.own ? -1 : a.own > b.own ? 1 : a.place - b.place))
    .map(({ place }) => place)
}
