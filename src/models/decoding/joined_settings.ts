/** Options of a caller joined with a model's own settings: the caller's come first, and what does not go with them is left out and reported. */
import { HeddleError, usageError } from '../../errors.js'
import { expectRanges, type GenerationOptions } from './generation_options.js'
import { type GenerationSettings, optionsWithin } from './generation_settings.js'

/**
 * The options given, before the model's own settings.
 * @param log takes a line for each setting that is not followed
 * @throws usage `generate.<option>` for a number of the settings that is out of range and that no option takes the place of
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
        log(`the model's own ${name} ${JSON.stringify(value)} does not go with what is asked for, and is left out`)
    }
    return Object.fromEntries(Object.entries(stated).filter((each) => !isOf(each)))
  }
  const has = (names: readonly (keyof GenerationOptions)[]): boolean => names.some((name) => given[name] !== undefined)
  // Beams exclude draws, and draws exclude beams; a limit excludes a larger minimum.
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
      hint: 'give the option, which comes before the file, or leave the file out with --no-settings, or settings: false',
    })
  }
}

const ofBeams = ['beams', 'returned', 'rule', 'lengthPenalty', 'earlyStopping'] as const
const ofDraws = ['temperature', 'topK', 'topP', 'minP', 'seed'] as const
