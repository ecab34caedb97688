/**
 * The one error type of heddle. Every failure a user can cause or meet is a `HeddleError`: it says what was wrong, with
 * which value, what is allowed, and what to do next. The command line turns `exit` into its exit code.
 */

/** Who has to act: `usage` the caller's input is wrong (exit 2), `environment` the machine lacks something (exit 3), `finding` a check failed (exit 1). */
export type ErrorClass = 'finding' | 'usage' | 'environment'

/** Stable machine-readable codes, one per kind of failure: `area.what`. */
export type ErrorCode = `${string}.${string}`

/** Where something was written. Lines and columns begin at 1. */
export interface Place {
  /** Relative to the project's root, with `/`. */
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One of several things that are wrong, where there is more to say than the place. */
export interface Culprit extends Place {
  readonly code?: string
  readonly message?: string
}

/** A statement of an author: the stack of the call, which V8 makes a text of when somebody asks. */
export interface Written {
  readonly stack?: string
}

/** What of a graph or plan a failure is about, for whoever knows where that was written. */
export interface Subject {
  readonly graph?: string | undefined
  readonly plan?: string | undefined
  /** Keys and texts of the declaration on the way to the culprit, the outermost first: `['groups', 'bias_gelu', 'fc1']`. */
  readonly path?: readonly string[] | undefined
  /** Nodes of the graph. */
  readonly nodes?: readonly string[] | undefined
  /** The statement itself, where it is known when the error is thrown. */
  readonly written?: Written | undefined
}

export interface ErrorDetails {
  /** What to write or do instead. */
  readonly hint?: string
  /** What in the author's text is wrong, in order. The message says it in words; tools read these. */
  readonly places?: readonly Culprit[]
  /** The underlying failure, kept for `--verbose`. */
  readonly cause?: unknown
  readonly about?: Subject | undefined
}

export class HeddleError extends Error {
  override readonly name = 'HeddleError'
  readonly code: ErrorCode
  readonly class: ErrorClass
  readonly hint: string | undefined
  readonly places: readonly Culprit[]
  /** Whoever the error passes on its way out may add what it knows. */
  about: Subject | undefined

  constructor(kind: ErrorClass, code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.class = kind
    this.hint = details.hint
    this.places = details.places ?? []
    this.about = details.about
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

/**
 * What an action returns. A `HeddleError` that it ends in is told what it is about, as far as it does not know: the innermost caller
 * knows best. Its path goes on from the caller's.
 */
export function concerning<T>(subject: Subject, action: () => T): T {
  try {
    return action()
  } catch (error) {
    if (error instanceof HeddleError) {
      const path = [...(subject.path ?? []), ...(error.about?.path ?? [])]
      error.about = { ...subject, ...known(error.about), ...(path.length === 0 ? {} : { path }) }
    }
    throw error
  }
}

const known = (subject: Subject = {}): Subject =>
  Object.fromEntries(Object.entries(subject).filter(([, value]) => value !== undefined))

/** A state that correct code cannot reach; naming it is better than continuing. */
export function unreachable(value: never, what: string): never {
  throw new Error(`internal: unexpected ${what}: ${JSON.stringify(value)}`)
}
