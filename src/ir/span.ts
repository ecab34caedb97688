/**
 * Source locations, for diagnostics and for the pages of a kernel, which join its sources by them. Expressions of a body carry their
 * location through every pass. It does not affect the results, and hashes and comparisons ignore it.
 */

/** Paths are relative to the project, with `/`; lines and columns begin at 1. */
export interface SourceSpan {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A source line as `file:line`, the key that the sources of a kernel share. */
export const placeOfSpan = ({ file, line }: Pick<SourceSpan, 'file' | 'line'>): string => `${file}:${line}`
