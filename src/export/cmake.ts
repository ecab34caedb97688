/** The CMakeLists.txt of an export: a shared library of the program with its kernels, for either target, and the example. */
import { render } from '../emit/templates.js'
import type { Target } from '../toolchain/index.js'

/** An executable that shows a program. */
export interface Example {
  readonly name: string
  readonly file: string
}

/** The example of a library of one program. */
export const onlyExample: Example = { name: 'example', file: 'example/main.cpp' }

/** @param kernels relative to the kernels folder @param sources of the export itself, and other sources of the package that it needs */
export const cmakeText = (
  library: string,
  kernels: readonly string[],
  target: Target,
  sources: readonly string[],
  examples: readonly Example[] = [onlyExample],
): string =>
  render('export_cmake', {
    ...{ library, kernels, target, examples, sources: sources.join(' ') },
    isOne: examples.length === 1,
    built: examples.map(({ name }) => `build/${name}`).join(', '),
  })
