/** Converts any error of a verb into one clear line, a hint and an exit code: 1 findings, 2 usage, 3 environment, 130 cancelled. */
import { HeddleError } from '../errors.js'
import { json } from './context.js'

export interface Failure {
  readonly exitCode: 1 | 2 | 3 | 130
  /** Ends with a newline; empty if there is no message. */
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

/** Verbs that need the compiler, the specs or the sources, which a portable bundle lacks. */
const unpacked = /\bheddle (?:gen|build|bundle|watch|init)\b/

/**
 * Message and hint of an error. In the portable bundle, which compiles nothing, the hint says what to pack instead. Code that throws errors
 * does not know if it runs in a bundle, so only this function adapts the hint.
 */
function messageOf(
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

/** Printed text and exit code of an error. */
export function describeFailure(
  error: unknown,
  { verbose, cancelled, portable = false }: FailureOptions & { readonly verbose: boolean },
): Failure {
  if (cancelled) return { exitCode: 130, text: 'cancelled\n' }
  const stack = verbose && error instanceof Error ? `${error.stack ?? ''}\n${causes(error)}` : ''
  if (error instanceof HeddleError) {
    const shown = messageOf(error, portable)
    const hint = shown.hint === undefined ? '' : `hint: ${shown.hint}\n`
    return { exitCode: error.exitCode, text: `error[${error.code}]: ${shown.message}\n${hint}${stack}` }
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
 * JSON form of an error, as verbs print it to stdout under `--json`: code and message, hint and location if present, and `places` if there are
 * several.
 */
export function failureJson(error: unknown, { cancelled, portable = false }: FailureOptions): string {
  return json({ error: cancelled ? { code: 'cancelled', message: 'cancelled' } : describe(error, portable) })
}

function describe(error: unknown, portable: boolean): Readonly<Record<string, unknown>> {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof HeddleError) {
    const { code, places } = error
    const shown = messageOf(error, portable)
    const [place] = places
    return {
      ...{ code, message: shown.message },
      ...(shown.hint === undefined ? {} : { hint: shown.hint }),
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
