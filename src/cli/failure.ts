/** Turns whatever a verb threw into one clear line, a hint and an exit code: 1 findings, 2 usage, 3 environment, 130 cancelled. */
import { HeddleError } from '../errors.js'
import { json } from './context.js'

export interface Failure {
  readonly exitCode: 1 | 2 | 3 | 130
  /** Ends with a newline; empty when there is nothing to say. */
  readonly text: string
}

/** Exit codes of errors that come from the addon or the operating system and carry only a code. */
const exitCodes: Readonly<Record<string, 1 | 2 | 3 | 130>> = {
  INVALID: 2,
  UNAVAILABLE: 3,
  MEMORY: 3,
  FAULT: 1,
  DEVICE: 3,
  CLOSED: 1,
  ABORTED: 130,
  ENOENT: 2,
  EISDIR: 2,
  ENOTDIR: 2,
  EACCES: 3,
  ENOSPC: 3,
  EROFS: 3,
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined

/** Verbs that need the compiler, the specs or the texts, of which a portable bundle has none. */
const unpacked = /\bheddle (?:gen|build|bundle|watch|init)\b/

/**
 * The message and the hint of an error; in the portable bundle, which compiles nothing, what has to be packed instead. Errors are thrown by
 * code that does not know where it runs, so that this is the one place that does.
 */
function saidOf(
  { code, message, hint }: HeddleError,
  portable: boolean,
): { readonly message: string; readonly hint: string | undefined } {
  if (!portable) return { message, hint }
  if (code === 'plan.unknown') {
    const known = hint === undefined ? '' : `${hint}; `
    return {
      message: `the bundle was packed without it: ${message}`,
      hint: `${known}for another, run heddle bundle with --model and --plan in the project, and unpack the new bundle`,
    }
  }
  if (hint === undefined || !unpacked.test(hint)) return { message, hint }
  return {
    message,
    hint: `the bundle compiles nothing and was packed without it: in the project, ${hint}; then run heddle bundle, and unpack the new bundle`,
  }
}

export interface FailureOptions {
  /** True if the caller's signal fired: then every error is its consequence. */
  readonly cancelled: boolean
  /** True if heddle runs from a portable bundle. */
  readonly portable?: boolean
}

/** What is printed of an error, and the exit code. */
export function describeFailure(
  error: unknown,
  { verbose, cancelled, portable = false }: FailureOptions & { readonly verbose: boolean },
): Failure {
  if (cancelled) return { exitCode: 130, text: 'cancelled\n' }
  const stack = verbose && error instanceof Error ? `${error.stack ?? ''}\n${causes(error)}` : ''
  if (error instanceof HeddleError) {
    const said = saidOf(error, portable)
    const hint = said.hint === undefined ? '' : `hint: ${said.hint}\n`
    return { exitCode: error.exitCode, text: `error[${error.code}]: ${said.message}\n${hint}${stack}` }
  }
  const code = codeOf(error)
  const known = code === undefined ? undefined : exitCodes[code]
  const message = error instanceof Error ? error.message : String(error)
  if (code !== undefined && known !== undefined) {
    return { exitCode: known, text: `error[system.${code.toLowerCase()}]: ${message}\n${stack}` }
  }
  const hint = verbose ? '' : 'hint: run again with --verbose for the stack, and report it\n'
  return { exitCode: 1, text: `internal error: ${message}\n${hint}${stack}` }
}

/**
 * The same for tools, as verbs print it to stdout under `--json`: code and message, and hint and place where there are any; `places`
 * where there are several.
 */
export function failureJson(error: unknown, { cancelled, portable = false }: FailureOptions): string {
  return json({ error: cancelled ? { code: 'cancelled', message: 'cancelled' } : describe(error, portable) })
}

function describe(error: unknown, portable: boolean): Readonly<Record<string, unknown>> {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof HeddleError) {
    const { code, places } = error
    const said = saidOf(error, portable)
    const [place] = places
    return {
      ...{ code, message: said.message },
      ...(said.hint === undefined ? {} : { hint: said.hint }),
      ...(place === undefined ? {} : { place }),
      ...(places.length > 1 ? { places } : {}),
    }
  }
  const code = codeOf(error)
  if (code?.startsWith('commander.')) return { code: 'cli.usage', message: message.replace(/^error: /, '') }
  return { code: code !== undefined && exitCodes[code] !== undefined ? `system.${code.toLowerCase()}` : 'internal', message }
}

function causes(error: Error): string {
  const { cause } = error
  if (cause === undefined) return ''
  return cause instanceof Error ? `caused by ${cause.stack ?? cause.message}\n${causes(cause)}` : `caused by ${String(cause)}\n`
}
