/** Merges options of a run with a model's own settings. */
import type { GenerationOptions } from '../models/decoding/generation_options.js'
import type { GenerationSettings } from '../models/decoding/generation_settings.js'
import { joinedSettings } from '../models/decoding/joined_settings.js'
import { flagNames, type GenerationFlags, generationOf } from './generation_flags.js'

/** Options of a run that override or disable settings. */
export type SettingsFlags = GenerationFlags & {
  readonly stop?: readonly string[] | undefined
  readonly settings?: boolean | undefined
}

/**
 * Options of the command line, which take precedence over the model's own settings.
 * @throws usage `generate.<option>` for a number of the settings that is out of range and not overridden by an option
 */
export function settingsOf(
  flags: SettingsFlags,
  { settings, vocab }: { readonly settings: GenerationSettings; readonly vocab: number },
  log: (text: string) => void,
): { readonly options: GenerationOptions; readonly stop: readonly string[] } {
  const given = generationOf(Object.fromEntries(flagNames.map((name) => [name, flags[name]])))
  if (flags.settings === false) return { options: given, stop: flags.stop ?? [] }
  const options = joinedSettings(given, { settings, vocab }, (line) => log(`${line}\n`))
  return { options, stop: [...settings.stop, ...(flags.stop ?? [])] }
}
