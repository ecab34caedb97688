/** Options of a run joined with a model's own settings. */
import { HeddleError, usageError } from '../errors.js'
import { expectRanges, type GenerationOptions } from '../models/decoding/generation_options.js'
import { type GenerationSettings, optionsWithin } from '../models/decoding/generation_settings.js'
import { flagNames, type GenerationFlags, generationOf } from './generation_flags.js'

/** Options of a run that its settings are chosen by. */
export type SettingsFlags = GenerationFlags & {
  readonly stop?: readonly string[] | undefined
  readonly settings?: boolean | undefined
}

/**
 * The options given on the command line, before the model's own settings.
 * @throws usage `generate.<option>` for a number of the settings that is out of range and that no option takes the place of
 */
export function settingsOf(
  flags: SettingsFlags,
  { settings, vocab }: { readonly settings: GenerationSettings; readonly vocab: number },
  log: (text: string) => void,
): { readonly options: GenerationOptions; readonly stop: readonly string[] } {
  const given = generationOf(Object.fromEntries(flagNames.map((name) => [name, flags[name]])))
  if (flags.settings === false) return { options: given, stop: flags.stop ?? [] }
  for (const line of settings.ignored) log(`${line}\n`)
  const stated = optionsWithin(settings.options, vocab)
  const without = (names: readonly (keyof GenerationOptions)[]): GenerationOptions => {
    const isOf = ([name]: readonly [string, unknown]): boolean => names.some((each) => each === name)
    for (const [name, value] of Object.entries(stated).filter(isOf)) {
      if (given[name as keyof GenerationOptions] === undefined)
        log(`the model's own ${name} ${JSON.stringify(value)} does not go with what is asked for, and is left out\n`)
    }
    return Object.fromEntries(Object.entries(stated).filter((each) => !isOf(each)))
  }
  const has = (names: readonly (keyof GenerationOptions)[]): boolean => names.some((name) => given[name] !== undefined)
  // Beams exclude draws, and draws exclude beams; a limit excludes a larger minimum.
  const least = stated.minNewTokens ?? 0
  const short = given.minNewTokens === undefined && given.maxNewTokens !== undefined && least > given.maxNewTokens
  const excluded: readonly (keyof GenerationOptions)[] = has(ofBeams)
    ? [...ofDraws, 'repetitionPenalty', 'minNewTokens']
    : [...(has(ofDraws) ? ofBeams : []), ...(short ? (['minNewTokens'] as const) : [])]
  const own = without(excluded)
  expectOwn(Object.fromEntries(Object.entries(own).filter(([name]) => !Object.hasOwn(given, name))), settings.file)
  return { options: { ...own, ...given }, stop: [...settings.stop, ...(flags.stop ?? [])] }
}

/** @throws usage `generate.<option>` naming the file that states a number out of range */
function expectOwn(options: GenerationOptions, file: string): void {
  try {
    expectRanges(options)
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    throw usageError(error.code, `${file}: ${error.message}`, {
      hint: 'give the option, which comes before the file, or leave the file out with --no-settings',
    })
  }
}

const ofBeams = ['beams', 'returned', 'rule', 'lengthPenalty', 'earlyStopping'] as const
const ofDraws = ['temperature', 'topK', 'topP', 'minP', 'seed'] as const
