/** C header of an exported generator, and a thin C++ class over it. */
import { render } from '../emit/templates.js'
import type { LoweredGenerator } from './generator.js'

/** Number of list items that a comment shows. */
const shown = 8

const listText = (values: readonly number[]): string =>
  values.length === 0 ? 'none' : `${values.slice(0, shown).join(', ')}${values.length > shown ? ', ...' : ''}`

const guardOf = (name: string, ending: 'H' | 'HPP'): string => `HEDDLE_GENERATOR_${name.toUpperCase()}_${ending}`

export function generatorHeader({ parts, plan, dtype, steppers }: LoweredGenerator): string {
  const { name, sources, vocab, positions, ends, mostBeams, mostTopK } = parts
  const reads = sources
    ? 'Prompts are sources: each is read whole, and a text is generated anew.'
    : 'Prompts are continued: a text is the continuation of its prompt. They may have any lengths.'
  return render('generator_header', {
    ...{ name, guard: guardOf(name, 'H'), plan, dtype, reads, vocab, positions, mostBeams, mostTopK },
    ends: listText(ends),
    choices: steppers.map(({ way }) => way).join(', '),
  })
}

export const generatorWrapper = ({ parts: { name, logprobs } }: LoweredGenerator): string =>
  render('generator_wrapper', { name, guard: guardOf(name, 'HPP'), logprobs })
