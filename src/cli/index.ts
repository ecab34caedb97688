/** The verbs as functions: what `import ... from 'heddle/commands'` offers. */

export type { EmbedTextOptions, EmbedTexts } from '../models/encoder/embed_texts.js'
export type {
  AnswerMessages,
  LlamaChatOptions,
  LlamaSessionOptions,
  LlamaTextOptions,
} from '../models/llama/chat.js'
export type { GeneratorTextOptions } from '../models/seq2seq/text.js'
export type { WriteText } from '../models/writing/options.js'
export type { Finish, TextStream, WrittenText } from '../models/writing/written.js'
export { type BuildVerbOptions, type BuildVerbResult, build } from './build.js'
export { bundle } from './bundle.js'
export { type CalibrateOptions, type CalibrateResult, calibrate } from './calibrate.js'
export { type CheckVerbOptions, check } from './check.js'
export { clean } from './clean.js'
export type { CliContext } from './context.js'
export { demo } from './demo.js'
export { type DoctorReport, doctor } from './doctor.js'
export { type ExploreOptions, explore } from './explore.js'
export { type GenOptions, type GenResult, gen } from './gen.js'
export { type Generator, openGenerator } from './generate.js'
export { type InitOptions, type InitResult, init } from './init.js'
export { type Inspection, inspect } from './inspect.js'
export { type OpenLlama, type OpenLlamaOptions, openLlama } from './llama.js'
export { type CliHost, main } from './main.js'
export { openPipeline, type Pipeline, type PipelineOptions } from './pipeline.js'
export { diffPlans, type PlanOptions, showPlan } from './plan.js'
export { type ReproVerbOptions, repro } from './repro.js'
export { type RunVerbOptions, run } from './run.js'
export { type ScoreVerbOptions, score } from './score.js'
export { type TuneOptions, tuneVerb as tune } from './tune.js'
export { type TuneLibraryOptions, type TuneLibraryResult, tuneLibrary } from './tune_library.js'
export { type WatchOptions, watch } from './watch.js'
