/**
 * Verbs that measure, ship and list, as functions. Omitted options take the defaults of the command line. `import { bench } from 'heddle/commands'`.
 */
import { Command } from '@commander-js/extra-typings'
import { type BenchEncoderOptions, encoderCommand, runBenchEncoder } from './bench.js'
import { type BenchDecodingOptions, decodingCommand, runBenchDecoding } from './bench_decoding.js'
import { type BenchLlamaOptions, llamaCommand, runBenchLlama } from './bench_llama.js'
import { givenShapes, type ShapeOptions } from './bench_options.js'
import { addTarget, type BenchTargetOptions, runBenchTarget } from './bench_target.js'
import type { CliContext } from './context.js'
import { exportCommand, runExport } from './export.js'
import type { ExportOptions } from './export_sources.js'
import { tuneCommand } from './tune.js'
import { tuneLibrary as runTuneLibrary, type TuneLibraryOptions } from './tune_library.js'

/** Context of commands that are built only for the defaults of their options and never run. */
const unrun = (): never => {
  throw new Error('internal: a command that is only read for its options was run')
}

/** Times a kernel, graph or program under its plans. @throws as `runBenchTarget`; slowdowns against a baseline are in its comparisons */
export const bench = (name: string, options: Partial<BenchTargetOptions>, context: CliContext) =>
  runBenchTarget(name, { ...addTarget(new Command('bench'), unrun).opts(), on: undefined, ...options }, context)

/** Times forward passes of an encoder with random weights. @throws as `runBenchEncoder` */
export const benchEncoder = (options: Partial<BenchEncoderOptions> & ShapeOptions, context: CliContext) =>
  runBenchEncoder({ ...encoderCommand(unrun).opts(), ...options, shapes: givenShapes(options) }, context)

/** Times steps of a decoder with random weights. @throws as `runBenchDecoding` */
export const benchDecoding = (options: Partial<BenchDecodingOptions>, context: CliContext) =>
  runBenchDecoding({ ...decodingCommand(unrun).opts(), ...options }, context)

/** Times prompts and steps of a LLaMA-like model. @param shape a known one, or a model folder by `config` @throws as `runBenchLlama` */
export const benchLlama = (shape: string | undefined, options: Partial<BenchLlamaOptions>, context: CliContext) =>
  runBenchLlama(shape, { ...llamaCommand(unrun).opts(), ...options }, context)

/** Measures the algorithms of a matmul library. @throws as `tuneLibrary` of tune_library.ts */
export const tuneLibrary = (options: Partial<TuneLibraryOptions> & ShapeOptions, context: CliContext) => {
  const { plans, dtype, heads, size, most, repeats } = tuneCommand(unrun).opts()
  return runTuneLibrary({ plans, dtype, heads, size, most, repeats, ...options, shapes: givenShapes(options) }, context)
}

/** Writes a program, a graph or a kernel as C++, as `heddle export` does (`export` is a reserved word). @throws as `runExport` */
export const exportProgram = (name: string, options: Partial<ExportOptions> & Pick<ExportOptions, 'out'>, context: CliContext) =>
  runExport(name, { ...exportCommand(unrun).opts(), dtype: 'f32', ...options }, context)
