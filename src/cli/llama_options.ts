/** Command-line options for LLaMA-like models. */
import { type Command, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { cacheTypes } from '../../specs/graphs/llama_caches.js'
import { rotations } from '../models/llama/weights.js'
import { usualAlpha } from '../quant/index.js'
import { positive } from './options.js'

/** `--caches`, for every verb that runs these models. */
export const cachesOption = () =>
  new Option('--caches <type>', 'cache keys and values in the storage type (float, the default), in f32, or as int8').choices(
    cacheTypes,
  )

/** Adds these options to a command. */
export const llamaOptions = <A extends unknown[], O extends Record<string, unknown>>(command: Command<A, O>) =>
  command
    .option('--chunk <tokens>', 'prompt tokens processed at a time', positive)
    .addOption(
      new Option(
        '--invariant [rows]',
        'compute everything for this many rows (8), so that each result is identical bit for bit in any batch',
      )
        .preset('8')
        .argParser(positive),
    )
    .addOption(cachesOption())
    .addOption(
      new Option('--rotation <how>', 'inverse frequencies in float32, or rounded to the storage type of the model').choices(
        rotations,
      ),
    )
    .option('--smooth <alpha>', `strength of smoothing, with --scales, from 0 to 1; default: ${usualAlpha}`, share)

/** Parses a number from 0 to 1. */
function share(text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('Expected a number from 0 to 1.')
}
