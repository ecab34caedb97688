/**
 * `heddle score`: prints the mean negative log-likelihood of texts under a model, and its logits at given positions. Used to compare storage
 * types and quantised plans.
 */
import { resolve } from 'node:path'
import { Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { usageError } from '../errors.js'
import type { Score } from '../models/llama/score.js'
import { namedFile } from '../output.js'
import { readCases } from './cases.js'
import type { CliContext } from './context.js'
import { continuesText } from './continues_text.js'
import { runOptionsOf, withLlama } from './llama.js'
import type { LlamaFlagOptions } from './llama_flags.js'
import { llamaOptions } from './llama_options.js'
import { positive } from './options.js'
import { deviceOption, dtypes, expectFolder, type PipelineOptions } from './pipeline.js'
import { compact } from './run.js'
import { tokenIds } from './token_ids.js'

export interface ScoreVerbOptions extends PipelineOptions, LlamaFlagOptions {
  /** A file with one case per line. */
  readonly cases: string
  /** Positions whose logits are also printed. */
  readonly places?: readonly number[] | undefined
  readonly batch?: number | undefined
  readonly json?: boolean | undefined
  /** A file instead of stdout: written whole or not at all. */
  readonly out?: string | undefined
}

/** Parses integers separated by commas. */
function listOfPlaces(text: string): number[] {
  const parts = text.split(',').map((part) => part.trim())
  if (parts.every((part) => /^\d+$/.test(part))) return parts.map(Number)
  throw new InvalidArgumentError('Expected integers separated by commas.')
}

/** @returns the output text. @throws usage `run.*`, `plan.unknown`, …; environment for missing tools or devices */
export async function score(model: string, options: ScoreVerbOptions, context: CliContext): Promise<string> {
  const cases = await readCases(options.cases, context.signal)
  const folder = resolve(context.root, model)
  expectFolder(folder)
  if (!(await continuesText(folder)))
    throw usageError('score.model', `${model} is not a model that continues text, so it gives no likelihoods`)
  const inputs = await tokenIds(folder, cases)
  return withLlama(folder, options, context, async (llama) => {
    const { places = [] } = options
    const scores = await llama.score(inputs, { places, ...runOptionsOf(options, context.signal) })
    return options.json ? scores.map((each) => scoreLine(each, places)).join('') : table(scores)
  })
}

function scoreLine({ loss, losses, logits }: Score, places: readonly number[]): string {
  const shown = places.map((place, i) => ({ place, logits: Array.from(logits[i] ?? [], compact) }))
  const fields = { tokens: losses.length, mean_nll: loss, nll: losses.map(compact) }
  return `${JSON.stringify({ ...fields, ...(places.length === 0 ? {} : { logits: shown }) })}\n`
}

/** One line per case, and the mean over all tokens. */
function table(scores: readonly Score[]): string {
  const lines = scores.map(({ loss, losses }, i) => `case ${i}: ${loss.toFixed(5)} over ${losses.length} tokens\n`)
  const all = scores.flatMap(({ losses }) => losses)
  const mean = all.reduce((sum, loss) => sum + loss, 0) / all.length
  return `${lines.join('')}mean negative log-likelihood ${mean.toFixed(5)}, perplexity ${Math.exp(mean).toFixed(3)}\n`
}

export const scoreCommand = (context: () => CliContext) =>
  llamaOptions(new Command('score'))
    .description('print the log-likelihood of texts under a model')
    .argument('<model>', 'a folder with config.json, model.safetensors and tokenizer.json')
    .requiredOption('--cases <file>', 'one {"input_ids":[...]} or {"text":"..."} per line')
    .option('--places <list>', 'also print logits at these positions, such as 0,63,511', listOfPlaces)
    .addOption(deviceOption())
    .addOption(new Option('--dtype <dtype>', 'storage type of weights and activations').choices(dtypes))
    .option('--plan <name>', 'fusion plan; default: chosen by model, device and storage type')
    .option('--scales <file>', 'a file from `heddle calibrate` for the model, for quantised plans')
    .option('--batch <count>', 'cases per batch', positive)
    .option('--out <file>', 'write the result to a file')
    .option('--json', 'print one JSON line per case')
    .action(async (model, options) => {
      const write = options.out === undefined ? context().out : await namedFile(resolve(context().root, options.out))
      await write(await score(model, options, context()))
    })
