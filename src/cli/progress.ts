/** Progress of a build or other long work: every step on a terminal, where a line is rewritten in place; a few lines elsewhere (CI logs). */
import type { BuildProgress } from '../toolchain/index.js'
import type { CliContext } from './context.js'

const plainLines = 5

/** A kernel by its name: the file it lies in is called after the language it is written in, whatever device it is compiled for. */
const kernelIn = (source: string): string => source.replace(/^cuda\/(.*)\.cu$/, '$1')

type Step = Pick<BuildProgress, 'done' | 'total' | 'source'>

/** A callback for `buildKernels` that passes on what is worth a line. */
export function milestones(terminal: boolean, report: (text: string, last: boolean) => void): (progress: Step) => void {
  let announced = 0
  return ({ done, total, source }) => {
    const part = Math.floor((done * plainLines) / total)
    if (!terminal && part === announced) return
    announced = part
    report(`${done}/${total} ${kernelIn(source)}`, done === total)
  }
}

/** Progress on stderr. */
export function buildProgress(label: string, context: CliContext): (progress: Step) => void {
  const terminal = process.stderr.isTTY === true
  return milestones(terminal, (text, last) =>
    context.log(terminal ? `\r\x1b[K${label}: ${text}${last ? '\n' : ''}` : `${label}: ${text}\n`),
  )
}

/** Progress of kernels that are compiled when they are asked for; nothing is said while all of them are there. */
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

/** Progress of counted work on stderr, named by what is under way. */
export function countProgress(label: string, context: CliContext): (done: number, total: number, what: string) => void {
  const report = buildProgress(label, context)
  return (done, total, what) => report({ done, total, source: what })
}
