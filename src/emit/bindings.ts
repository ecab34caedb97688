/** The text of `generated/bindings.ts`: one typed constant an op, in terms of `src/emit/binding.ts`. */
import type { Kernel } from '../ir/kernel.js'
import { placeText, render } from './templates.js'

/** Where generated bindings find `bindOp`, seen from `generated/`. */
const library = '../src/emit/binding.js'

type Signature = Pick<Kernel, 'name' | 'source' | 'types' | 'tensors' | 'attrs' | 'dims'>

export function bindingsText(kernels: readonly Signature[]): string {
  const byName = new Map(kernels.map((kernel) => [kernel.name, kernel]))
  const ops = [...byName.values()].map((kernel) => ({
    name: camelCase(kernel.name),
    source: placeText(kernel.source),
    types: `{ ${Object.entries(kernel.types)
      .map(([param, choices]) => `${param}: ${union(choices)}`)
      .join('; ')} }`,
    tensors: union(kernel.tensors.map((t) => t.name)),
    attrs: union(kernel.attrs.map((attr) => attr.name)),
    spec: specText(kernel),
  }))
  return `${render('bindings', { ops, library }).trimEnd()}\n`
}

const specText = (kernel: Signature): string => {
  const tensors = kernel.tensors.map((t) => `${t.name}: ${list(t.dims)}`).join(', ')
  const attrs = kernel.attrs.map((attr) => `${attr.name}: ${attr.default}`).join(', ')
  return [
    '{',
    `  op: ${quote(kernel.name)},`,
    `  types: ${list(Object.keys(kernel.types))},`,
    `  tensors: { ${tensors} },`,
    `  dims: ${list(kernel.dims)},`,
    `  attrs: ${attrs === '' ? '{}' : `{ ${attrs} }`},`,
    '}',
  ].join('\n')
}

const quote = (text: string): string => `'${text}'`
const list = (names: readonly string[]): string => `[${names.map(quote).join(', ')}]`
const union = (names: readonly string[]): string => (names.length === 0 ? 'never' : names.map(quote).join(' | '))

/** Op names may be reserved words of JavaScript (`delete`), which take an underscore. */
function camelCase(name: string): string {
  const camel = name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
  return reserved.has(camel) ? `${camel}_` : camel
}

const reserved = new Set(
  (
    'arguments await break case catch class const continue debugger default delete do else enum eval export extends false ' +
    'finally for function if implements import in instanceof interface let new null package private protected public return ' +
    'static super switch this throw true try typeof var void while with yield bindOp'
  ).split(' '),
)
