/** The options of verbs that only LLaMA-like models have. */
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { cacheTypes } from '../models/llama/programs.js'
import { rotations } from '../models/llama/weights.js'
import { usualAlpha } from '../quant/index.js'
import { positive } from './options.js'

/** Of every verb that runs these models. */
export const cachesOption = () =>
  new Option('--caches <type>', 'keys and values as the storage type has them (default), or as int8').choices(cacheTypes)

/** A command with these options. */
export const llamaOptions = <A extends unknown[], O extends Record<string, unknown>>(command: Command<A, O>) =>
  command
    .option('--chunk <tokens>', 'tokens of prompts that are read at once', positive)
    .addOption(
      new Option(
        '--invariant [rows]',
        'compute everything for so many rows (8), so that each result is the same bit for bit whatever else is run',
      )
        .preset('8')
        .argParser(positive),
    )
    .addOption(cachesOption())
    .addOption(
      new Option('--rotation <how>', 'inverse frequencies in float32, or rounded to the type the model is stored in').choices(
        rotations,
      ),
    )
    .option('--smooth <alpha>', `with --scales, from 0 to 1; default: ${usualAlpha}`, share)

/** A number from 0 to 1. */
function share(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('Expected a number from 0 to 1.')
}
