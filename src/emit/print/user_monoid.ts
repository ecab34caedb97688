/**
 * User monoids and recurrences as CUDA source: a struct beside the kernels, like those of the built-in monoids in native/device/monoids.cuh.
 * Threads exchange the words of the fields (native/device/fields.cuh).
 */
import { local } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel } from '../../ir/kernel.js'
import type { MonoidField, Shift, UserMonoid } from '../../ir/user_monoid.js'
import type { UserRecurrence } from '../../ir/user_recurrence.js'
import { freeNames } from '../../ir/walk.js'
import { expressionText, type Scope } from './expression.js'
import { literalText } from './literal.js'
import { scalarText } from './names.js'
import { isFold, type Own, ownsOf, userMonoidName } from './user_monoids.js'

/** A field of a value as source. */
export const fieldText = ({ fields }: Pick<Own, 'fields'>, field: number, value: string): string =>
  wordText(fields[field]?.type ?? 'f32', field, value)

const wordText = (type: 'f32' | 'i32', field: number, value: string): string =>
  `heddle::field<${scalarText[type]}, ${field}>(${value})`

/** A value as source, built from the source of its fields: at least one word. */
export const fieldsText = (values: readonly string[]): string =>
  `heddle::fields(${values.length === 0 ? '0' : values.join(', ')})`

const identityText = ({ type, identity }: MonoidField): string => literalText({ kind: 'const', type, value: identity })

/** The structs of a kernel's monoids and recurrences. */
export const structTexts = (kernel: Pick<Kernel, 'name' | 'body'>): readonly string[] =>
  ownsOf(kernel).map((own) =>
    isFold(own) ? foldText(own, userMonoidName(own, kernel)) : monoidText(own, userMonoidName(own, kernel)),
  )

const member = 'static __device__ __forceinline__'

function monoidText({ fields, left, right, combine, shift }: UserMonoid, name: string): string {
  const types = fields.map(({ type }) => type)
  const parts = [
    { part: 'left', locals: left, types },
    { part: 'right', locals: right, types },
  ]
  return [
    shift === undefined
      ? '// A monoid of the op: how two neighbouring parts of a row combine.'
      : '// A maximum, and sums of exponentials shifted by it: how two parts of a row combine.',
    `struct ${name} {`,
    `  using Value = heddle::Fields<${fields.length}>;`,
    '  using Element = Value;',
    `  ${member} Value identity() { return ${fieldsText(fields.map(identityText))}; }`,
    `  ${member} Value lift(Element element, int) { return element; }`,
    `  ${member} Value combine([[maybe_unused]] const Value& left, [[maybe_unused]] const Value& right) {`,
    ...closedText(combine, parts),
    '  }',
    `  ${member} Value result(const Value& value) { return value; }`,
    ...(shift === undefined ? [] : scaledText(shift, left, types)),
    '};',
    '',
  ].join('\n')
}

/** A part with its sums scaled to a maximum. */
const scaledText = ({ top, scaled }: Shift, left: readonly string[], types: Part['types']): readonly string[] => [
  `  ${member} Value scaled([[maybe_unused]] const Value& left, const heddle::Fields<1>& top) {`,
  ...closedText(
    [local(top), ...scaled],
    [
      { part: 'left', locals: left, types },
      { part: 'top', locals: [top], types: ['f32'] },
    ],
  ),
  '  }',
]

function foldText({ fields, taken, before, element, next }: UserRecurrence, name: string): string {
  const parts = [
    { part: 'before', locals: before, types: fields.map(({ type }) => type) },
    { part: 'element', locals: element, types: taken },
  ]
  return [
    '// A recurrence of the op: what a step makes of what is carried and of its element.',
    `struct ${name} {`,
    `  using Value = heddle::Fields<${fields.length}>;`,
    `  using Element = heddle::Fields<${Math.max(1, taken.length)}>;`,
    `  ${member} Value step([[maybe_unused]] const Value& before, [[maybe_unused]] const Element& element) {`,
    ...closedText(next, parts),
    '  }',
    '};',
    '',
  ].join('\n')
}

interface Part {
  /** The name of the parameter. */
  readonly part: string
  readonly locals: readonly string[]
  readonly types: readonly ('f32' | 'i32')[]
}

/** Lines of a function that reads only its parameters: those it reads are unpacked, then the fields are computed. */
function closedText(made: readonly Expr[], parts: readonly Part[]): readonly string[] {
  const texts = new Map<string, string>()
  const read = new Set(made.flatMap((expr) => [...freeNames(expr)]))
  const taken = parts.flatMap(({ part, locals, types }) =>
    locals.flatMap((local, i) => {
      texts.set(local, `${part}${i}`)
      const type = types[i] ?? 'f32'
      return read.has(local) ? [`    const ${scalarText[type]} ${part}${i} = ${wordText(type, i, part)};`] : []
    }),
  )
  const value = (wanted: string): string => {
    const known = texts.get(wanted)
    if (known === undefined) throw new Error(`internal: a monoid reads ${wanted}`)
    return known
  }
  const unknown = (wanted: string): never => {
    throw new Error(`internal: a monoid reads ${wanted}`)
  }
  const names = { value, dim: unknown, attr: unknown, tensor: unknown, type: unknown, first: unknown, fresh: unknown }
  const used = { dims: new Set<string>(), attrs: new Set<string>(), indices: new Set<string>() }
  const scope: Scope = { names, used, tensors: [], fixed: {}, elements: new Map() }
  return [...taken, `    return ${fieldsText(made.map((expr) => expressionText(expr, scope)))};`]
}
