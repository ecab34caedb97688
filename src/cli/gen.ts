/**
 * `heddle gen`: compiles specs to generated CUDA. The front end and its TypeScript compiler are loaded here and in `inspect` only, so that
 * the other verbs start fast and the portable bundle does not need them.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Command } from '@commander-js/extra-typings'
import { findingError } from '../errors.js'
import type { Kernel, SourceSpan } from '../ir/kernel.js'
import type { TemplateKernel } from '../ir/template.js'
import { openMemo } from '../memo.js'
import type { Note } from '../schedule/notes/notes.js'
import { noteGen } from '../toolchain/gen_state.js'
import { readKernels, type SpecKernels } from '../verify/check/specs.js'
import { type CliContext, json } from './context.js'
import { writeDepfile } from './depfile.js'
import { readTuning } from './tuning_file.js'

export interface GenOptions {
  /** Compare instead of writing. */
  readonly check?: boolean | undefined
  /** Folder of the spec modules; default `specs`. */
  readonly specs?: string | undefined
  /** Folder of the generated source; default `generated`. */
  readonly out?: string | undefined
  /** Tuning file; default `tuning.json` next to the specs, when there is one. */
  readonly tuning?: string | undefined
  /** Accepts a folder that contains only foreign files. They are never removed. */
  readonly beside?: boolean | undefined
  /** File for the dependencies of the output, in the syntax of make, which ninja reads, too. */
  readonly depfile?: string | undefined
}

/** A note about an op. */
export interface KernelNote extends Note, SourceSpan {
  readonly op: string
}

export interface GenResult {
  readonly kernels: readonly string[]
  /** Files below the output folder that were written, or that differ under `check`. */
  readonly changed: readonly string[]
  /** Performance warnings about ops, at their lines. */
  readonly notes: readonly KernelNote[]
}

/**
 * @throws usage errors of the front end, located, and of the project's tuning file; `output.folder`, `output.file` for foreign files; finding
 * `gen.check` when `check` finds a difference
 */
export async function gen(options: GenOptions, context: CliContext): Promise<GenResult> {
  // Records success or failure, so that a build can warn about outdated source. Only the project's own source counts.
  const { root } = context
  const { specs = 'specs', out = 'generated' } = options
  const isOwn = resolve(root, specs) === resolve(root, 'specs') && resolve(root, out) === resolve(root, 'generated')
  const counts = isOwn && options.check !== true
  try {
    const result = await generateAll(options, context)
    if (counts) await noteGen(root, undefined)
    return result
  } catch (error) {
    if (counts) await noteGen(root, error instanceof Error ? error.message : String(error))
    throw error
  }
}

const counted = (count: number, what: string): string => `${count} ${what}${count === 1 ? '' : 's'}`

/** True if a folder contains modules that may be specs. Anything but a folder is a file or a pattern, which names some. */
const holdsSpecs = (folder: string): boolean =>
  !existsSync(folder) ||
  !statSync(folder).isDirectory() ||
  readdirSync(folder, { recursive: true }).some((name) => /\.[cm]?ts$/.test(String(name)))

/** Declarations of a project without specs, which has only a tuning file for shipped matmuls. */
const nothingRead: Pick<SpecKernels, 'kernels' | 'graphs' | 'templates' | 'schedules' | 'left' | 'refused' | 'locating'> = {
  ...{ kernels: [], graphs: {}, templates: [], schedules: {}, left: [], refused: [] },
  locating: (action) => action(),
}

async function generateAll(options: GenOptions, context: CliContext): Promise<GenResult> {
  const { root } = context
  const { generate, writeGenerated } = await import('../emit/index.js')
  const tuning = await readTuning({ root, specs: options.specs, file: options.tuning })
  const isAlone = tuning?.matmuls !== undefined && !holdsSpecs(resolve(root, options.specs ?? 'specs'))
  const read = isAlone ? nothingRead : await readKernels(root, options.specs)
  context.signal.throwIfAborted()
  const notes = new Map<string, readonly KernelNote[]>()
  // Notes of an op's instances differ only in their bytes.
  const see = ({ name: op, source }: Kernel | TemplateKernel, found: readonly Note[]): void => {
    if (!notes.has(op))
      notes.set(
        op,
        found.map((note) => ({ ...note, ...source, op })),
      )
  }
  const files = read.locating(() =>
    generate(read.kernels, read.graphs, read.templates, tuning, read.schedules, { kept: openMemo(root), see }),
  )
  const out = resolve(root, options.out ?? 'generated')
  const check = options.check === true
  const { changed } = await writeGenerated(out, files, { check, place: { root, specs: options.specs }, beside: options.beside })
  if (check && changed.length > 0) {
    throw findingError('gen.check', `${out} is out of date: ${changed.join(', ')}`, {
      hint: 'run `heddle gen` and commit the result',
    })
  }
  if (options.depfile !== undefined) await writeDepfile({ ...options, out, file: resolve(root, options.depfile) }, context)
  // A kernel is also a unit that `check` compiles and `doctor` counts: an op or a group in one of its storage types.
  const kernels = [...files.keys()].filter((file) => file.endsWith('.cu')).length
  for (const error of [...read.left, ...read.refused]) {
    context.log(`note: ${error.message}${error.hint === undefined ? '' : ` (${error.hint})`}\n`)
  }
  for (const { file, line, column, op, message } of [...notes.values()].flat())
    context.log(`note: ${file}:${line}:${column}: ${op}: ${message}\n`)
  context.log(
    `gen: ${counted(kernels, 'kernel')}, ${counted(files.size, 'file')}, ${changed.length} ${check ? 'differ' : 'written'}, ${out}\n`,
  )
  return { kernels: [...read.kernels, ...read.templates].map(({ name }) => name), changed, notes: [...notes.values()].flat() }
}

export const genCommand = (context: () => CliContext) =>
  new Command('gen')
    .description('compile specs to CUDA source')
    .option('--check', 'change nothing; exit 1 if the generated source is out of date')
    .option('--specs <dir>', 'folder of the spec modules', 'specs')
    .option('--out <dir>', 'folder of the generated source', 'generated')
    .option('--beside', 'write beside existing files, in a folder that heddle has not written to before')
    .option('--tuning <file>', 'measured schedules; default: tuning.json beside the specs, if any')
    .option('--depfile <file>', 'write the files that were read, for make and ninja')
    .option('--json', 'print the result as JSON')
    .action(async (options) => {
      const result = await gen(options, context())
      if (options.json) context().out(json(result))
    })
