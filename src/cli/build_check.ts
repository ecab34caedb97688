/**
 * `heddle build --check`: compiles CUDA sources with nvcc, without building a library, and compares the results with the record of earlier
 * ones. Runs in CI, and with `--record` after a change of sources or of device headers.
 */
import { InvalidArgumentError } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import { samples } from '../toolchain/check_texts.js'
import { expectGenerated } from '../toolchain/gen_state.js'
import { type CheckedTexts, checkTexts, generatedFolder } from '../toolchain/index.js'
import type { CliContext } from './context.js'
import { pattern } from './options.js'
import { buildProgress } from './progress.js'

export interface BuildCheckOptions {
  readonly target?: string | undefined
  readonly jobs?: number | undefined
  /** A regular expression over instance keys. */
  readonly filter?: string | undefined
  /** Options that a check refuses. */
  readonly for?: string | undefined
  readonly architecture?: string | undefined
  readonly lineInfo?: boolean | undefined
  /** Compiles changed sources and writes the record. */
  readonly record?: boolean | undefined
  /** Part of the recorded sources that is compiled again, or all of them. */
  readonly sample?: number | 'all' | undefined
}

/** Parses a part of the recorded sources from the command line. */
export function sampleOf(text: string): number | 'all' {
  if (text === 'all') return text
  if (/^\d+$/.test(text) && Number(text) < samples) return Number(text)
  throw new InvalidArgumentError(`Expected a part from 0 to ${samples - 1}, or all.`)
}

const states: Readonly<Record<CheckedTexts['record'], string>> = {
  none: 'there is no record',
  other: 'the record is from another nvcc',
  untried: 'the record matches these sources; there is no nvcc to check it',
  tried: 'the record matches these sources and nvcc',
  written: 'the record is written',
}

/** @throws usage `build.check` with options that a check refuses; errors of `checkTexts` */
export async function checkBuild(options: BuildCheckOptions, context: CliContext): Promise<CheckedTexts> {
  const { target, jobs, lineInfo, architecture, filter, for: model, record, sample } = options
  const others = { '--for': model, '--architecture': architecture, '--line-info': lineInfo }
  const [other] = Object.entries(others).flatMap(([name, value]) => (value === undefined ? [] : [name]))
  if (target !== 'cuda' || other !== undefined) {
    throw usageError(
      'build.check',
      other === undefined ? '--check is for CUDA sources' : `--check accepts --filter, but not ${other}`,
      { hint: 'heddle build --target cuda --check' },
    )
  }
  const { root, signal } = context
  await expectGenerated(root)
  const checked = await checkTexts({
    generated: generatedFolder(root),
    filter: pattern(filter, 'build.filter'),
    record,
    sample,
    signal,
    jobs,
    onProgress: buildProgress('cuda', context),
  })
  const texts = Object.entries(checked.texts).map(([name, count]) => `${count} sources for ${name}`)
  const compiled = `${checked.compiled} of them compiled, ${checked.kernels} kernels, no warning, no spill`
  context.log(`cuda: ${texts.join(', ')}; ${states[checked.record]}; ${compiled}\n`)
  return checked
}

/** @throws usage `build.check` for options that are valid only with `--check` */
export function refuseCheckOptions({ record, sample }: BuildCheckOptions): void {
  if (record === undefined && sample === undefined) return
  throw usageError('build.check', `${record === undefined ? '--sample' : '--record'} is for --check`, {
    hint: 'heddle build --target cuda --check --record',
  })
}
