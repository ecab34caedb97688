/** A library of several programs, of one runtime: their names in C, the header that includes theirs, and its README. */
import { usageError } from '../errors.js'
import { type Example, onlyExample } from './cmake.js'
import { type CNames, namesOf } from './header.js'
import { identifier } from './identifiers.js'
import type { Lowered } from './lowered.js'

/** A program with its names in C. */
export interface Named {
  readonly lowered: Lowered
  readonly names: CNames
}

export interface Library {
  /** Name of the CMake target and of the file, an identifier. */
  readonly name: string
  readonly programs: readonly Named[]
}

/**
 * A program is called by its name, in a library of several storage types by its name and type: `rms_norm_f16`.
 * @throws usage `export.name` for two programs with the same name in C, and for a program with the name of a library of several
 */
export function libraryOf(name: string, programs: readonly Lowered[]): Library {
  const isTyped = new Set(programs.map(({ dtype }) => dtype)).size > 1
  const named = programs.map((lowered) => ({
    lowered,
    names: namesOf(lowered, identifier(isTyped ? `${lowered.name}_${lowered.dtype}` : lowered.name)),
  }))
  const all = named.map(({ names }) => names.program)
  const twin = all.find((each, i) => all.indexOf(each) !== i)
  if (twin !== undefined)
    throw usageError('export.name', `two programs are called ${twin} in C`, { hint: 'rename one of them, or export each alone' })
  const library = identifier(name)
  if (all.length > 1 && all.includes(library)) {
    throw usageError('export.name', `expected a name of the library that none of its programs has, got ${library}`, {
      hint: 'choose another with --library',
    })
  }
  return { name: library, programs: named }
}

/** Examples of a library, one per program, with their files. */
export const examplesOf = ({ programs }: Library): readonly (readonly [Example, Named])[] =>
  programs.map((each) => {
    const { program } = each.names
    return [programs.length === 1 ? onlyExample : { name: `example_${program}`, file: `example/${program}.cpp` }, each]
  })

/** Header of a library whose name is no program's: it includes those of its programs. */
export function libraryHeader({ name, programs }: Library): string {
  const guard = `HEDDLE_LIBRARY_${name.toUpperCase()}_H`
  return `/* Programs of the library ${name}, made by \`heddle export\`. */
#ifndef ${guard}
#define ${guard}

${programs.map(({ names }) => `#include "${names.program}.h"\n`).join('')}
#endif
`
}
