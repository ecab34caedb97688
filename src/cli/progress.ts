/** Progress of a build: every file on a terminal, where a line is rewritten in place; a few lines elsewhere (CI logs). */
import type { BuildProgress } from '../toolchain/index.js'
import type { CliContext } from './context.js'

const plainLines = 5

/** A callback for `buildKernels` that passes on what is worth a line. */
export function milestones(terminal: boolean, report: (text: string, last: boolean) => void): (progress: BuildProgress) => void {
  let announced = 0
  return ({ done, total, source }) => {
    const part = Math.floor((done * plainLines) / total)
    if (!terminal && part === announced) return
    announced = part
    report(`${done}/${total} ${source}`, done === total)
  }
}

/** Progress on stderr. */
export function buildProgress(label: string, context: CliContext): (progress: BuildProgress) => void {
  const terminal = process.stderr.isTTY === true
  return milestones(terminal, (text, last) =>
    context.log(terminal ? `\r\x1b[K${label}: ${text}${last ? '\n' : ''}` : `${label}: ${text}\n`),
  )
}
