/** `heddle run`: cases through a model. Everything is checked before the model runs, and output appears when all of it is there. */
import { resolve } from 'node:path'
import { Option } from '@commander-js/extra-typings'
import writeFileAtomic from 'write-file-atomic'
import { usageError } from '../errors.js'
import type { Encoder, EncoderResult } from '../models/encoder/encoder_pipeline.js'
import { restorePunctuation } from '../models/encoder/punctuation.js'
import { loadTokenizer } from '../models/files/tokenizer.js'
import { type Case, readCases } from './cases.js'
import type { CliContext } from './context.js'
import { expectNoGeneration, type GenerateVerbOptions, generatesText, generateTexts, generationCommand } from './generate.js'
import { positive } from './options.js'
import { deviceKinds, dtypes, expectFolder, openOptions, openPipeline, planText } from './pipeline.js'
import { tokenIds } from './token_ids.js'

export interface RunVerbOptions extends GenerateVerbOptions {
  readonly text?: string | undefined
  /** A file with one case a line. */
  readonly cases?: string | undefined
  /** Under `text`: a result line instead of the text with its marks. */
  readonly json?: boolean | undefined
  /** A file instead of stdout: written whole or not at all. */
  readonly out?: string | undefined
}

/** The shortest decimal that is the same float32. */
export function compact(value: number): number {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits))
    if (Math.fround(short) === value) return short
  }
  return Number(value.toPrecision(9))
}

const compactRow = (row: Float32Array): number[] => Array.from(row, compact)

/** One result as a JSON line. */
function resultLine(result: EncoderResult): string {
  const fields =
    result.kind === 'token-classifier'
      ? { labels: result.labelIds, logits: result.logits.map(compactRow) }
      : { states: result.states.map(compactRow), pooled: result.pooled === undefined ? null : compactRow(result.pooled) }
  return `${JSON.stringify(fields)}\n`
}

/** True when every label is the empty one or a punctuation mark, so that a result can be read as text. */
const marksText = ({ config: { labels } }: Encoder): boolean =>
  labels.length > 1 && labels.every((label) => label === 'O' || /^\p{P}$/u.test(label))

/** @returns what is printed. @throws usage `run.*`, `plan.unknown`, …; environment for what the machine lacks */
export async function run(model: string, options: RunVerbOptions, context: CliContext): Promise<string> {
  const { text, cases: file } = options
  if (text === undefined && file === undefined) {
    throw usageError('run.input', 'nothing to run', { hint: 'give --text TEXT or --cases FILE.jsonl' })
  }
  if (text !== undefined && text.trim() === '') throw usageError('run.empty', 'empty batch: the text is empty')
  const cases: readonly Case[] = file === undefined ? [{ text: text ?? '' }] : await readCases(file, context.signal)
  const folder = resolve(context.root, model)
  expectFolder(folder)
  if (await generatesText(folder)) return generateTexts(folder, cases, options, context)
  expectNoGeneration(options)
  const pipeline = await openPipeline(folder, { ...options, signal: context.signal }, context.root, openOptions(context))
  try {
    const { encoder } = pipeline
    context.log(
      `${pipeline.device.info().name} (${pipeline.device.kind}), ${encoder.dtype}, ${planText(encoder.plan, pipeline.planReason)}\n`,
    )
    const runOptions = { signal: context.signal, ...(options.batch === undefined ? {} : { batch: options.batch }) }
    if (text !== undefined && !options.json && marksText(encoder)) {
      return `${await restorePunctuation(encoder, await loadTokenizer(folder), text, runOptions)}\n`
    }
    const results = await encoder.run(await tokenIds(folder, cases), runOptions)
    return results.map(resultLine).join('')
  } finally {
    pipeline.close()
  }
}

export const runCommand = (context: () => CliContext) =>
  generationCommand('run')
    .description('run a model on a text or on a file of cases')
    .argument('<model>', 'a folder with config.json, model.safetensors and tokenizer.json')
    .addOption(new Option('--text <text>', 'one text').conflicts('cases'))
    .option('--cases <file>', 'one {"input_ids":[...]} or {"text":"..."} a line')
    .addOption(new Option('--device <device>', 'default: cuda if a GPU works, else simt').choices(deviceKinds))
    .addOption(new Option('--dtype <dtype>', 'storage type of weights and activations').choices(dtypes))
    .option('--plan <name>', 'fusion plan; default: what suits the model, the device and the storage type')
    .option('--scales <file>', 'activation scales of the model, for quantised plans')
    .option('--batch <count>', 'cases run together', positive)
    .option('--out <file>', 'write the result to a file')
    .option('--json', 'print one JSON line per case')
    .action(async (model, options) => {
      const result = await run(model, options, context())
      if (options.out === undefined) context().out(result)
      else await writeFileAtomic(resolve(context().root, options.out), result)
    })
