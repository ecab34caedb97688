/**
 * Translation units of a full build. Most of the compile time of a small kernel goes into headers, which the instances of an op share: their
 * sources become one translation unit, each in a namespace of its own. Programs, which need single instances, never compile such units, so that
 * no object shared by two of their libraries defines a kernel that another object defines too.
 */
import { basename } from 'node:path'
import { canonicalJson, sha256 } from './hash.js'
import type { KernelResources } from './ptxas.js'
import type { Recipe } from './recipe.js'
import type { KeyedFile } from './sources.js'

/** Maximum number of files per unit: compilers run in parallel, and the last one should not run alone for long. */
const maxFiles = 8

const isInclude = (line: string): boolean => line.startsWith('#include')

/**
 * Grouping of files into units: by op, so that an edit of the op recompiles little else; or by reached headers, which is the cheapest if
 * everything is compiled once.
 */
export type Sharing = 'op' | 'headers'

/** Groups files into units with the same flags. Units that reach most headers come first: they take longest. */
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
    const count = Math.ceil(group.length / maxFiles)
    return Array.from({ length: count }, (_, unit) => group.filter((_, at) => at % count === unit))
  })
  return units.sort((a, b) => mostHeaders(b) - mostHeaders(a))
}

const mostHeaders = (unit: readonly KeyedFile[]): number => Math.max(...unit.map(({ headers }) => headers.length))

/** Cache key of a unit's object. */
export const unitKey = (files: readonly KeyedFile[]): string =>
  files.length === 1 ? (files[0]?.key ?? '') : sha256(canonicalJson({ unit: files.map(({ source, key }) => ({ source, key })) }))

/** Namespace of a file's source, which makes kernel names unique. */
const scopeOf = ({ source }: KeyedFile): string => `instance_of_${basename(source).replace(/\W.*$/s, '')}`

const lineOf = ({ path }: KeyedFile): string => `#line 1 ${JSON.stringify(path)}\n`

/** Source of a unit. Messages of the compiler name the original files. */
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

/** True if a symbol is that of a kernel of the device headers whose template arguments are none of a source. */
export const isOfHeaders = (symbol: string): boolean => symbol.startsWith('_ZN6heddle') && !/(?:slots|instance)_of_/.test(symbol)

/** Resources of each file's kernels. A kernel of the headers that belongs to no file is assigned to the first. */
export function resourcesByFile(
  files: readonly KeyedFile[],
  resources: readonly KernelResources[],
): readonly (readonly KernelResources[])[] {
  // In a mangled name, each part follows its length.
  const parts = files.map((file) => `${scopeOf(file).length}${scopeOf(file)}`)
  const owner = ({ kernel }: KernelResources): number =>
    Math.max(
      parts.findIndex((part) => kernel.includes(part)),
      0,
    )
  return files.map((_, at) => resources.filter((each) => owner(each) === at))
}
