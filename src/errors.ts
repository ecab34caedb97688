/**
 * The only error type of heddle. Every failure a user can cause or meet is a `HeddleError`: it names the problem, the
 * value, the allowed values and the next step. The command line maps `class` to its exit code.
 */

import type { codeTexts } from './codes/index.js'

/** `usage`: the caller's input is wrong (exit 2). `environment`: the machine lacks something (exit 3). `finding`: a check failed (exit 1). */
export type ErrorClass = 'finding' | 'usage' | 'environment'

/** Stable machine-readable codes, one per kind of failure: `area.what`. Each has its own text in src/codes. */
export type ErrorCode = keyof typeof codeTexts

/** Codes of an area. */
export type CodeOf<Area extends string> = Extract<ErrorCode, `${Area}.${string}`>

type AfterDot<Code> = Code extends `${string}.${infer What}` ? What : never

/** Second parts of the codes of an area, after the dot. */
export type WhatOf<Area extends string> = AfterDot<CodeOf<Area>>

/** Source location. Lines and columns begin at 1. */
export interface Place {
  /** Relative to the project's root, with `/`. */
  readonly file: string
  readonly line: number
  readonly column: number
}

/** One of several problems, with its location and optional details. */
export interface Culprit extends Place {
  readonly code?: string
  readonly message?: string
  readonly hint?: string
  /** Affected nodes of a graph. */
  readonly nodes?: readonly string[]
}

/** Statement of an author: the stack of the call, which V8 formats on first access. */
export interface Written {
  readonly stack?: string
}

/** Part of a graph or plan that a failure is about, used by callers that know its source location. */
export interface Subject {
  readonly graph?: string | undefined
  readonly plan?: string | undefined
  /** Path of keys and strings in the declaration, from the outermost: `['groups', 'bias_gelu', 'fc1']`. */
  readonly path?: readonly string[] | undefined
  /** Nodes of the graph. */
  readonly nodes?: readonly string[] | undefined
  /** The statement itself, if known when the error is thrown. */
  readonly written?: Written | undefined
}

export interface ErrorDetails {
  /** Suggested repair. */
  readonly hint?: string | undefined
  /** Locations of the problems in the author's source, in order. Used by tools; the message describes them in words. */
  readonly places?: readonly Culprit[]
  /** Underlying failure, shown under `--verbose`. */
  readonly cause?: unknown
  readonly about?: Subject | undefined
  /** Individual failures that this one combines. */
  readonly all?: readonly HeddleError[]
  /** Printed text of each culprit, in the order of `places`; also part of the message. */
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
  /** Callers may add details while the error propagates. */
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

/** Error for input that cannot be accepted. */
export const usageError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('usage', code, message, details)

/** Error for a machine that lacks something: a compiler, a GPU, a library, memory. */
export const environmentError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('environment', code, message, details)

/** Error for a difference found by a checker. */
export const findingError = (code: ErrorCode, message: string, details?: ErrorDetails): HeddleError =>
  new HeddleError('finding', code, message, details)

/** Largest number of problems in a message; tools get all of them. */
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
  const [firstLine = ''] = rest.split('\n')
  const more = { ...(hint === undefined ? {} : { hint }), ...(about?.nodes === undefined ? {} : { nodes: about.nodes }) }
  return [{ text, place: place && { ...place, code, message: firstLine, ...more } }]
}

const byPlace = ({ place: a }: Problem, { place: b }: Problem): number => {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1
}

/**
 * Combines all errors of the specs into one, in the order of files and lines. The message shows the first ones and the total count.
 * A single error is returned unchanged.
 */
export function together(errors: readonly HeddleError[]): HeddleError {
  const [first] = errors
  if (first !== undefined && errors.length === 1) return first
  const problems = errors.flatMap(problemsOf).sort(byPlace)
  return rejected(problems, errors)
}

/** Error of diagnostics that are already formatted. */
export const rejectedSpecs = (problems: readonly Required<Problem>[]): HeddleError => rejected(problems, [])

function rejected(problems: readonly Problem[], all: readonly HeddleError[]): HeddleError {
  // Errors of heddle precede those of TypeScript, such as unused names.
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

/** Runs every action, and throws their errors as one. An error that is not a `HeddleError` is thrown at once. */
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
 * Returns the result of an action. Adds `subject` to a `HeddleError` that it throws, without overriding details of inner callers; the
 * error's path is appended to the subject's.
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

/** Throws for a state that correct code cannot reach. */
export function unreachable(value: never, what: string): never {
  throw new Error(`internal: unexpected ${what}: ${JSON.stringify(value)}`)
}
