/** The error of an output that cannot be replaced in place, thrown where updates are placed and reported where ops and groups are read. */
export class UpdateConflict extends Error {
  readonly tensor: string
  /** True if no place is chosen that alone is stored: every element may be replaced. */
  readonly isUnchosen: boolean
  /** What to write instead, where that is not a choice. */
  readonly hint: string | undefined

  constructor(tensor: string, message: string, { isUnchosen = false, hint }: { isUnchosen?: boolean; hint?: string } = {}) {
    super(message)
    this.tensor = tensor
    this.isUnchosen = isUnchosen
    this.hint = hint
  }
}
