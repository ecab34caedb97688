/**
 * The one error type of heddle. Every failure a user can cause or meet is a `HeddleError`: it says what was wrong, with
 * which value, what is allowed, and what to do next. The command line turns `exit` into its exit code.
 */

import type { codeTexts } from './codes/index.js'

/** Who has to act: `usage` the caller's input is wrong (exit 2), `environment` the machine lacks something (exit 3), `finding` a check failed (exit 1). */
export type ErrorClass = 'finding' | 'usage' | 'environment'

/** Stable machine-readable codes, one per kind of failure: `area.what`. Each has a text of its own in src/codes. */
export type ErrorCode = keyof typeof codeTexts

/** Codes of an area. */
export type CodeOf<Area extends string> = Extract<ErrorCode, `${Area}.${string}`>

type Behind<Code> = Code extends `${string}.${infer What}` ? What : never

/** What stands behind the dot in codes of an area. */
export type WhatOf<Area extends string> = Behind<CodeOf<Area>>

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
  readonly hint?: string
  /** Of a graph, where it is about some. */
  readonly nodes?: readonly string[]
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
  readonly hint?: string | undefined
  /** What in the author's text is wrong, in order. The message says it in words; tools read these. */
  readonly places?: readonly Culprit[]
  /** The underlying failure, kept for `--verbose`. */
  readonly cause?: unknown
  readonly about?: Subject | undefined
  /** The failures that this one is made of, where there are several. */
  readonly all?: readonly HeddleError[]
  /** What is printed of each culprit, in the order of `places`; the message has them too. */
  readonly texts?: readonly string[]
}

export class HeddleError extends Error {
  override readonly name = 'HeddleError'
  readonly code: ErrorCode
  readonly class: ErrorClass
  readonly hint: string | undefined
  readonly places: readonly Culprit[]
  readonly all: readonly HeddleError[]
  readonly texts: readonly string[] | undefined
  /** Whoever the error passes on its way out may add what it knows. */
  about: Subject | undefined

  constructor(kind: ErrorClass, code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause })
    this.code = code
    this.class = kind
    this.hint = details.hint
    this.places = details.places ?? []
    this.about = details.about
    this.all = details.all ?? []
    this.texts = details.texts
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

/** Problems that a message shows at most; tools get all of them. */
const shown = 20

interface Problem {
  readonly text: string
  readonly place?: Culprit | undefined
}

function problemsOf({ code, message, hint, places, texts, about }: HeddleError): readonly Problem[] {
  if (texts !== undefined) return texts.map((text, at) => ({ text, place: places[at] }))
  const [place] = places
  const at = place === undefined ? '' : `${place.file}:${place.line}:${place.column}`
  const rest = place !== undefined && message.startsWith(`${at}: `) ? message.slice(at.length + 2) : message
  const text = [`${at === '' ? '' : `${at} `}${code}: ${rest}`, ...(hint === undefined ? [] : [`  hint: ${hint}`])].join('\n')
  const [said = ''] = rest.split('\n')
  const more = { ...(hint === undefined ? {} : { hint }), ...(about?.nodes === undefined ? {} : { nodes: about.nodes }) }
  return [{ text, place: place && { ...place, code, message: said, ...more } }]
}

const byPlace = ({ place: a }: Problem, { place: b }: Problem): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1
}

/**
 * One error of all that is wrong with the specs: in the order of files and lines, the first of them in the message with how many there are.
 * A single error stays what it is.
 */
export function together(errors: readonly HeddleError[]): HeddleError {
  const [first] = errors
  if (first !== undefined && errors.length === 1) return first
  const problems = errors.flatMap(problemsOf).sort(byPlace)
  return rejected(problems, errors)
}

/** The error of diagnostics that are printed already. */
export const rejectedSpecs = (problems: readonly Required<Problem>[]): HeddleError => rejected(problems, [])

function rejected(problems: readonly Problem[], all: readonly HeddleError[]): HeddleError {
  // What TypeScript says besides, such as of unused names, gives way to what heddle refuses.
  const ofTypeScript = ({ place }: Problem): boolean => /^TS\d/.test(place?.code ?? '')
  const chosen = new Set([...problems.filter((each) => !ofTypeScript(each)), ...problems.filter(ofTypeScript)].slice(0, shown))
  const texts = problems.filter((each) => chosen.has(each)).map(({ text }) => text)
  const more = problems.length - texts.length
  const head = problems.length === 1 ? '1 error in the specs' : `${problems.length} errors in the specs`
  const message = [head, ...texts, ...(more === 0 ? [] : [`... and ${more} more; --json has all`])].join('\n\n')
  return usageError('frontend.rejected', message, {
    all,
    texts: problems.map(({ text }) => text),
    places: problems.flatMap(({ place }) => place ?? []),
  })
}

/** Runs every action, and throws what they ended in as one error. What is no `HeddleError` ends it at once. */
export function inTurn(actions: Iterable<() => void>): void {
  const failures: HeddleError[] = []
  for (const action of actions) {
    try {
      action()
    } catch (error) {
      if (!(error instanceof HeddleError)) throw error
      failures.push(error)
    }
  }
  if (failures.length > 0) throw together(failures)
}

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
