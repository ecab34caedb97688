/**
 * Where something was written: what diagnostics name, and what pages of a kernel join its texts by. Expressions that a body makes carry their
 * place through every pass; it is no part of what they compute, and keys and comparisons do not look at it.
 */

/** Paths are relative to the project, with `/`; lines and columns begin at 1. */
export interface SourceSpan {
  readonly file: string
  readonly line: number
  readonly column: number
}

/** A line of a source, as texts of a kernel share it. */
export const placeOfSpan = ({ file, line }: Pick<SourceSpan, 'file' | 'line'>): string => `${file}:${line}`
