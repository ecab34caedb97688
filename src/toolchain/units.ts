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

/**
 * Whose texts share a unit: instances of an op, so that an edit of the op compiles little besides; or whatever reaches the same headers, which
 * is the cheapest where everything is compiled once.
 */
export type Sharing = 'op' | 'headers'

/** Files by the unit they are compiled in; in one unit, all are compiled with the same flags. Those that reach most headers come first: they take longest. */
export function unitsOf(recipe: Recipe, files: readonly KeyedFile[], sharing: Sharing = 'op'): readonly (readonly KeyedFile[])[] {
  const alike = new Map<string, KeyedFile[]>()
  for (const file of files) {
    const { op, source, headers } = file
    const flags = recipe.compileFlags(headers)
    const group = op === undefined ? { source } : sharing === 'op' ? { op, flags } : { headers: [...headers].sort(), flags }
    const key = canonicalJson(group)
    alike.set(key, [...(alike.get(key) ?? []), file])
  }
  const units = [...alike.values()].flatMap((group) => {
    const count = Math.ceil(group.length / mostFiles)
    return Array.from({ length: count }, (_, unit) => group.filter((_, at) => at % count === unit))
  })
  return units.sort((a, b) => mostHeaders(b) - mostHeaders(a))
}

const mostHeaders = (unit: readonly KeyedFile[]): number => Math.max(...unit.map(({ headers }) => headers.length))

/** What the object of a unit is found by. */
export const unitKey = (files: readonly KeyedFile[]): string =>
  files.length === 1 ? (files[0]?.key ?? '') : sha256(canonicalJson({ unit: files.map(({ source, key }) => ({ source, key })) }))

/** The namespace of a file's text: names of kernels are told apart by it. */
const scopeOf = ({ source }: KeyedFile): string => `instance_of_${basename(source).replace(/\W.*$/s, '')}`

const lineOf = ({ path }: KeyedFile): string => `#line 1 ${JSON.stringify(path)}\n`

/** The text of a unit. Compilers name the files themselves. */
export function unitText(files: readonly KeyedFile[]): string {
  const [only, ...others] = files
  if (only !== undefined && others.length === 0) return `${lineOf(only)}${only.text}`
  const lines = files.map(({ text }) => text.split('\n'))
  const headers = [...new Set(lines.flat().filter(isInclude))].sort()
  const bodies = files.map((file, at) => {
    const body = (lines[at] ?? []).map((line) => (isInclude(line) ? '' : line)).join('\n')
    return `namespace ${scopeOf(file)} {\n${lineOf(file)}${body}\n}\n`
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
