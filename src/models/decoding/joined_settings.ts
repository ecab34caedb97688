/** Joins a caller's options with the model's own settings. The caller's take precedence; conflicting settings are dropped and reported. */
import { HeddleError, usageError } from '../../errors.js'
import { expectRanges, type GenerationOptions } from './generation_options.js'
import { type GenerationSettings, optionsWithin } from './generation_settings.js'

/**
 * The given options, completed with the model's own settings.
 * @param log receives a line for each setting that is not followed
 * @throws usage `generate.<option>` for a number in the settings that is out of range, unless an option overrides it
 */
export function joinedSettings(
  given: GenerationOptions,
  { settings, vocab }: { readonly settings: GenerationSettings; readonly vocab: number },
  log: (line: string) => void,
): GenerationOptions {
  for (const line of settings.ignored) log(line)
  const stated = optionsWithin(settings.options, vocab)
  const without = (names: readonly (keyof GenerationOptions)[]): GenerationOptions => {
    const isOf = ([name]: readonly [string, unknown]): boolean => names.some((each) => each === name)
    for (const [name, value] of Object.entries(stated).filter(isOf)) {
      if (given[name as keyof GenerationOptions] === undefined)
        log(`the model's own ${name} ${JSON.stringify(value)} conflicts with the given options and is ignored`)
    }
    return Object.fromEntries(Object.entries(stated).filter((each) => !isOf(each)))
  }
  const has = (names: readonly (keyof GenerationOptions)[]): boolean => names.some((name) => given[name] !== undefined)
  // Beams and sampling exclude each other; a limit excludes a larger minimum.
  const least = stated.minNewTokens ?? 0
  const short = given.minNewTokens === undefined && given.maxNewTokens !== undefined && least > given.maxNewTokens
  const excluded: readonly (keyof GenerationOptions)[] = [
    ...(has(ofBeams) ? ofDraws : has(ofDraws) ? ofBeams : []),
    ...(short ? (['minNewTokens'] as const) : []),
  ]
  const own = without(excluded)
  expectOwn(Object.fromEntries(Object.entries(own).filter(([name]) => !Object.hasOwn(given, name))), settings.file)
  return { ...own, ...given }
}

/** @throws usage `generate.<option>` naming the file that states a number out of range */
function expectOwn(options: GenerationOptions, file: string): void {
  try {
    expectRanges(options)
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    throw usageError(error.code, `${file}: ${error.message}`, {
      hint: 'give the option, which overrides the file, or ignore the file with --no-settings, or settings: false',
    })
  }
}

const ofBeams = ['beams', 'returned', 'rule', 'lengthPenalty', 'earlyStopping'] as const
const ofDraws = ['temperature', 'topK', 'topP', 'minP', 'seed'] as const
