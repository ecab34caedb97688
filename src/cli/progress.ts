/** Progress of long work: every step on a terminal, where a line is rewritten in place; a few lines elsewhere (CI logs). */
import type { BuildProgress } from '../toolchain/index.js'
import type { CliContext } from './context.js'

const plainLines = 5

/** Kernel name from its source file, whose folder and suffix name CUDA even on other devices. */
const kernelIn = (source: string): string => source.replace(/^cuda\/(.*)\.cu$/, '$1')

type Step = Pick<BuildProgress, 'done' | 'total' | 'source'>

/** Callback for `buildKernels` that reports every step on a terminal, and a few milestones elsewhere. */
export function milestones(terminal: boolean, report: (text: string, last: boolean) => void): (progress: Step) => void {
  let announced = 0
  return ({ done, total, source }) => {
    const part = Math.floor((done * plainLines) / total)
    if (!terminal && part === announced) return
    announced = part
    report(`${done}/${total} ${kernelIn(source)}`, done === total)
  }
}

/** Reports progress on stderr. */
export function buildProgress(label: string, context: CliContext): (progress: Step) => void {
  const terminal = process.stderr.isTTY === true
  return milestones(terminal, (text, last) =>
    context.log(terminal ? `\r\x1b[K${label}: ${text}${last ? '\n' : ''}` : `${label}: ${text}\n`),
  )
}

/** Reports progress of kernels compiled on demand; silent while all are cached. */
export function compileProgress(context: CliContext): (progress: BuildProgress) => void {
  const report = buildProgress('compiling kernels', context)
  let compiles = false
  return (progress) => {
    compiles ||= !progress.cached
    if (!compiles) return
    report(progress)
    if (progress.done === progress.total) compiles = false
  }
}

/** Reports progress of counted work on stderr, with the name of the current item. */
export function countProgress(label: string, context: CliContext): (done: number, total: number, what: string) => void {
  const report = buildProgress(label, context)
  return (done, total, what) => report({ done, total, source: what })
}
