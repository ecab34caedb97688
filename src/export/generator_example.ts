/** C++ example of an exported generator: reads prompts of token ids from a file, one per line, and writes texts to standard output. */
import { render } from '../emit/templates.js'
import type { LoweredGenerator } from './generator.js'

export const generatorExample = ({ parts: { name } }: LoweredGenerator): string => render('generator_example', { name })
