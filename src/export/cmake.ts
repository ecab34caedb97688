/** The CMakeLists.txt of an export: a shared library of the program with its kernels, for either target, and the example. */
import { render } from '../emit/templates.js'
import type { Target } from '../toolchain/index.js'

/** @param kernels relative to the kernels folder @param sources of the export itself, and other sources of the package that it needs */
export const cmakeText = (
  program: string,
  kernels: readonly string[],
  target: Target,
  sources: readonly string[] = [`src/${program}.cpp`],
): string => render('export_cmake', { program, kernels, target, sources: sources.join(' ') })
