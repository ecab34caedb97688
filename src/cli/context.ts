/** Context of every verb: the project, the two streams, and the signal that Ctrl-C fires. Verbs access the process only through it. */

export interface CliContext {
  /** The project root: the folder heddle was started in. */
  readonly root: string
  readonly signal: AbortSignal
  readonly verbose: boolean
  /** True if verbs run an installed nvcc by default, as on the command line. */
  readonly asksNvcc?: boolean
  /** Results, to stdout. Under `--json` nothing else goes there. */
  out(text: string): void
  /** Everything else, to stderr. */
  log(text: string): void
}

/** One JSON value on a line of its own. */
export const json = (value: unknown): string => `${JSON.stringify(value)}\n`
