/**
 * Files that a whole build compiles together. Most of the time of a small kernel's compiler goes into headers, which the instances of an op
 * share: their texts become one translation unit, each in a namespace of its own. Programs, which need single instances, never compile
 * units, so that no object that two of their libraries share holds a kernel that another object holds too.
 */
import { basename } from 'node:path'
import { canonicalJson, sha256 } from './hash.js'
import type { KernelResources } from './ptxas.js'
import type { Recipe } from './recipe.js'
import type { KeyedFile } from './sources.js'

/** Texts of one unit at most: compilers run side by side, and the last one should not run alone for long. */
const mostFiles = 8

const isInclude = (line: string): boolean => line.startsWith('#include')

/** Files by the unit they are compiled in: instances of the same op that are compiled with the same flags. */
export function unitsOf(recipe: Recipe, files: readonly KeyedFile[]): readonly (readonly KeyedFile[])[] {
  const alike = new Map<string, KeyedFile[]>()
  for (const file of files) {
    const { op, source, headers } = file
    const group = op === undefined ? { source } : { op, flags: recipe.compileFlags(headers) }
    const key = canonicalJson(group)
    alike.set(key, [...(alike.get(key) ?? []), file])
  }
  return [...alike.values()].flatMap((group) => {
    const units = Math.ceil(group.length / mostFiles)
    return Array.from({ length: units }, (_, unit) => group.filter((_, at) => at % units === unit))
  })
}

/** What the object of a unit is found by. */
export const unitKey = (files: readonly KeyedFile[]): string =>
  files.length === 1 ? (files[0]?.key ?? '') : sha256(canonicalJson({ unit: files.map(({ source, key }) => ({ source, key })) }))

/** The namespace of a file's text: names of kernels are told apart by it. */
const scopeOf = ({ source }: KeyedFile): string => `instance_of_${basename(source).replace(/\W.*$/s, '')}`

/** The text of a unit. Compilers name the files themselves. @param texts of the files, in their order */
export function unitText(files: readonly KeyedFile[], texts: readonly string[]): string {
  const lines = texts.map((text) => text.split('\n'))
  const headers = [...new Set(lines.flat().filter(isInclude))].sort()
  const bodies = files.map((file, at) => {
    const body = (lines[at] ?? []).map((line) => (isInclude(line) ? '' : line)).join('\n')
    return `namespace ${scopeOf(file)} {\n#line 1 ${JSON.stringify(file.path)}\n${body}\n}\n`
  })
  return `${headers.join('\n')}\n${bodies.join('')}`
}

/** The resources of each file's kernels. A kernel of the headers that none of them names is the first file's. */
export function resourcesByFile(
  files: readonly KeyedFile[],
  resources: readonly KernelResources[],
): readonly (readonly KernelResources[])[] {
  // A mangled name has the length of each of its parts before it.
  const parts = files.map((file) => `${scopeOf(file).length}${scopeOf(file)}`)
  const owner = ({ kernel }: KernelResources): number =>
    Math.max(
      parts.findIndex((part) => kernel.includes(part)),
      0,
    )
  return files.map((_, at) => resources.filter((each) => owner(each) === at))
}
