/** Unique names within a kernel: the wanted one, or that name with the first free number. */

export interface FreshNaming {
  /** Separator between the name and its number. */
  readonly separator?: string
  /** Number of the second value of a name. */
  readonly from?: number
  /** True if the first value has a number too. */
  readonly numbered?: boolean
}

/** Returns a fresh name and adds it to `taken`. */
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
