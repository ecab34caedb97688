/**
 * Run-time checks of argument types, for authors in untyped JavaScript. A wrong argument is refused with a code, the
 * statement and the expected kind, instead of a TypeError from inside.
 */
import { type ErrorCode, usageError, type Written } from '../errors.js'
import { expectKnown } from '../known_names.js'
import { writtenAt } from './written.js'

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isListOf = (value: unknown, is: (each: unknown) => boolean): boolean => Array.isArray(value) && value.every(is)
const isRecordOf = (value: unknown, is: (each: unknown) => boolean): boolean => isRecord(value) && Object.values(value).every(is)
const isTexts = (value: unknown): boolean => isListOf(value, isText)
const isLayout = (value: unknown): boolean => isRecord(value) && isText(value.name)
const isTensor = (value: unknown): boolean =>
  isRecord(value) && isText(value.type) && isText(value.dims) && (value.layout === undefined || isLayout(value.layout))

const kinds = {
  text: [isText, 'a string'],
  texts: [isTexts, 'a list of strings'],
  list: [(value: unknown) => Array.isArray(value), 'a list'],
  record: [isRecord, 'an object'],
  accuracy: [(value: unknown) => value === 'fast' || value === 'exact', "'fast' or 'exact'"],
  function: [(value: unknown) => typeof value === 'function', 'a function'],
  layout: [isLayout, "a layout, as layout('name', axes, { offset }) returns"],
  tensor: [isTensor, "a tensor, such as tensor('f32', 'm n')"],
  tensors: [(value: unknown) => isRecordOf(value, isTensor), "an object of tensors, such as { x: tensor('f32', 'm n') }"],
  textsByName: [(value: unknown) => isRecordOf(value, isText), 'an object of strings'],
  listsByName: [(value: unknown) => isRecordOf(value, isTexts), 'an object of lists of strings'],
  groups: [
    (value: unknown) => isRecordOf(value, (nodes) => isTexts(nodes) || isListOf(nodes, isTexts)),
    'an object of lists of nodes: { kernel: [...] }',
  ],
  weights: [
    (value: unknown) => isRecord(value) && (typeof value.of === 'function' ? isText(value.prefix) : isRecordOf(value, isText)),
    "weights by a prefix, p.weights('...'), or an object of their names",
  ],
  op: [
    (value: unknown) => isRecord(value) && isText(value.name) && [value.inputs, value.outputs, value.attrs].every(isRecord),
    'an op, as op(...) returns',
  ],
  graph: [
    (value: unknown) =>
      isRecord(value) &&
      isText(value.name) &&
      Array.isArray(value.inputs) &&
      isRecord(value.graph) &&
      isRecord(value.graph.outputs),
    'a graph, as graph(...) returns',
  ],
} as const satisfies Readonly<Record<string, readonly [is: (value: unknown) => boolean, text: string]>>

type Kind = keyof typeof kinds

/** A value for messages; its type if it cannot be printed. */
export function told(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value)
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  return typeof value === 'function' ? 'a function' : String(value)
}

type Callee = ((...given: never[]) => unknown) | Written

/** Arguments by name, with their expected kinds; a kind that ends in `?` is optional. */
export type Given = Readonly<Record<string, readonly [value: unknown, kind: Kind | `${Kind}?`]>>

/**
 * @param at declaration or call, for messages @param callee the function that was called, whose caller is the statement; or the statement itself
 * @throws usage `code` for the first argument of another kind
 */
export function expectArguments(code: ErrorCode, at: string, callee: Callee, given: Given): void {
  for (const [name, [value, wanted]] of Object.entries(given)) {
    if (value === undefined && wanted.endsWith('?')) continue
    const [is, text] = kinds[wanted.replace('?', '') as Kind]
    if (is(value)) continue
    throw usageError(code, `${at}: ${name} is ${told(value)}`, {
      hint: `expected ${text}`,
      about: { written: typeof callee === 'function' ? writtenAt(callee) : callee },
    })
  }
}

/**
 * Refuses unknown keys: they are misspelt, and would pass for omitted ones.
 * @param at declaration or call, for messages
 * @throws usage `code` for the first key that is not among the names
 */
export function expectParts(code: ErrorCode, at: string, callee: Callee, names: readonly string[], given: object): void {
  expectKnown(
    code,
    { at, what: 'part', written: () => (typeof callee === 'function' ? writtenAt(callee) : callee) },
    names,
    given,
  )
}
