/** A progress line on stderr: rewritten in place on a terminal, a few plain lines elsewhere (CI logs). */
import type { BuildProgress } from '../toolchain/index.js'
import type { CliContext } from './context.js'

const plainLines = 5

/** A callback for `buildKernels` that reports on `label`. */
export function buildProgress(label: string, context: CliContext): (progress: BuildProgress) => void {
  const terminal = process.stderr.isTTY === true
  let announced = 0
  return ({ done, total, source }) => {
    const text = `${label}: ${done}/${total} ${source}`
    if (terminal) return context.log(`\r\x1b[K${text}${done === total ? '\n' : ''}`)
    const part = Math.floor((done * plainLines) / total)
    if (part === announced) return
    announced = part
    context.log(`${text}\n`)
  }
}
