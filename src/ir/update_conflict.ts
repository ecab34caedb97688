/** Error for an output that cannot be updated in place, thrown where updates are placed and reported where ops and groups are read. */
export class UpdateConflict extends Error {
  readonly tensor: string
  /** True if the output is not a choice of the elements to store: every element may be replaced. */
  readonly isUnchosen: boolean
  /** Fix to suggest, if it is not to write a choice. */
  readonly hint: string | undefined

  constructor(tensor: string, message: string, { isUnchosen = false, hint }: { isUnchosen?: boolean; hint?: string } = {}) {
    super(message)
    this.tensor = tensor
    this.isUnchosen = isUnchosen
    this.hint = hint
  }
}
