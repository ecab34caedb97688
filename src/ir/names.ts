/** Names that nothing else in a kernel has: the wanted one, or that with the first number that is free. */

export interface FreshNaming {
  /** What stands between the name and its number. */
  readonly separator?: string
  /** The number of the second value of a name. */
  readonly from?: number
  /** True if the first value has a number too. */
  readonly numbered?: boolean
}

/** Gives a name out: it is in `taken` afterwards. */
export function freshName(
  wanted: string,
  taken: Set<string>,
  { separator = '', from = 2, numbered = false }: FreshNaming = {},
): string {
  let name = numbered ? `${wanted}${separator}${from}` : wanted
  for (let n = numbered ? from + 1 : from; taken.has(name); n++) name = `${wanted}${separator}${n}`
  taken.add(name)
  return name
}
