/**
 * Monoids of authors as CUDA text: a struct beside the kernels, as native/device/monoids.cuh has one for each of the language's own. What
 * threads exchange are the words of the fields (native/device/fields.cuh).
 */
import type { Kernel } from '../ir/kernel.js'
import type { OwnField, OwnMonoid } from '../ir/own_monoid.js'
import { freeNames } from '../ir/walk.js'
import { expressionText, type Scope } from './expression.js'
import { literalText } from './literal.js'
import { scalarText } from './names.js'
import { ownMonoids, ownName } from './own_monoids.js'

/** A field of a value as text. */
export const fieldText = ({ fields }: OwnMonoid, field: number, value: string): string =>
  `heddle::field<${scalarText[fields[field]?.type ?? 'f32']}, ${field}>(${value})`

const fieldsText = (values: readonly string[]): string => `heddle::fields(${values.join(', ')})`

/** An element as text, of the texts of its fields. */
export const elementText = fieldsText

const identityText = ({ type, identity }: OwnField): string => literalText({ kind: 'const', type, value: identity })

/** The structs of a kernel's monoids. */
export const structTexts = (kernel: Pick<Kernel, 'name' | 'body'>): readonly string[] =>
  ownMonoids(kernel).map((monoid) => structText(monoid, ownName(monoid, kernel)))

function structText(monoid: OwnMonoid, name: string): string {
  const { fields, left, right, combine } = monoid
  const texts = new Map<string, string>()
  const read = new Set(combine.flatMap((expr) => [...freeNames(expr)]))
  const parts: readonly (readonly [string, readonly string[]])[] = [
    ['left', left],
    ['right', right],
  ]
  const taken = parts.flatMap(([part, locals]) =>
    locals.flatMap((local, i) => {
      texts.set(local, `${part}${i}`)
      const type = scalarText[fields[i]?.type ?? 'f32']
      return read.has(local) ? [`    const ${type} ${part}${i} = ${fieldText(monoid, i, part)};`] : []
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
  const member = 'static __device__ __forceinline__'
  return [
    '// A monoid of the op: how two neighbouring parts of a row combine.',
    `struct ${name} {`,
    `  using Value = heddle::Fields<${fields.length}>;`,
    '  using Element = Value;',
    `  ${member} Value identity() { return ${fieldsText(fields.map(identityText))}; }`,
    `  ${member} Value lift(Element element, int) { return element; }`,
    `  ${member} Value combine([[maybe_unused]] const Value& left, [[maybe_unused]] const Value& right) {`,
    ...taken,
    `    return ${fieldsText(combine.map((expr) => expressionText(expr, scope)))};`,
    '  }',
    `  ${member} Value result(const Value& value) { return value; }`,
    '};',
    '',
  ].join('\n')
}
