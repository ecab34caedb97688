/**
 * The one error type of heddle. Every failure a user can cause or meet is a `HeddleError`: it says what was wrong, with
 * which value, what is allowed, and what to do next. The command line turns `exit` into its exit code.
 */

/** Who has to act: `usage` the caller's input is wrong (exit 2), `environment` the machine lacks something (exit 3), `finding` a check failed (exit 1). */
export type ErrorClass = 'finding' | 'usage' | 'environment'

/** Stable machine-readable codes, one per kind of failure: `area.what`. */
export type ErrorCode = `${string}.${string}`

/** Where in an author's text something is wrong. */
export interface Place {
  /** Relative to the project root, with `/`. */
  readonly file: string
  /** 1-based, like the column. */
  readonly line: number
  readonly column: number
}

/** One of several things that are wrong, where there is more to say than the place. */
export interface Culprit extends Place {
  readonly code?: string
  readonly message?: string
}

export interface ErrorDetails {
  /** What to write or do instead. */
  readonly hint?: string
  /** What in the author's text is wrong, in order. The message says it in words; tools read these. */
  readonly places?: readonly Culprit[]
  /** The underlying failure, kept for `--verbose`. */
  readonly cause?: unknown
}

export class HeddleError extends Error {
  override readonly name = 'HeddleError'
  readonly code: ErrorCode
  readonly class: ErrorClass
  readonly hint: string | undefined
  readonly places: readonly Culprit[]

  constructor(kind: ErrorClass, code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.class = kind
    this.hint = details.hint
    this.places = details.places ?? []
  }

  /** Exit code of the command line: 1 findings, 2 usage, 3 environment. */
  get exitCode(): 1 | 2 | 3 {
    return this.class === 'finding' ? 1 : this.class === 'usage' ? 2 : 3
  }
}

/** The caller gave something that cannot be accepted. */
export const usageError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('usage', code, message, details)

/** The machine lacks something: a compiler, a GPU, a library, memory. */
export const environmentError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('environment', code, message, details)

/** A checker found a difference. */
export const findingError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('finding', code, message, details)

/** A state that correct code cannot reach; naming it is better than continuing. */
export function unreachable(value: never, what: string): never {
  throw new Error(`internal: unexpected ${what}: ${JSON.stringify(value)}`)
}
