/**
 * Kernels that plans derive, and their equality. A plan may use a kernel in several places: where groups differ only in the names of tensors and
 * axes, the second use is bound to the parameters of the first.
 */
import type { Kernel } from '../ir/kernel.js'
import { printKernel } from '../ir/print.js'
import { isTemplate, type TemplateKernel } from '../ir/template.js'
import type { Derived } from './rows/derive.js'

/** A kernel derived by a plan: a row program, or a template with compiled slots. */
export type PlannedKernel = Kernel | TemplateKernel

/** True if kernels are equal but for source locations, typical sizes, and which inputs are weights: see `commonConstants`. */
export const sameKernel = (a: PlannedKernel, b: PlannedKernel): boolean => a === b || referenceOf(a) === referenceOf(b)

const ignored: readonly string[] = ['source', 'span', 'typical', 'constant', 'facts']

/** Cached per kernel, since a kernel of many plans is compared many times. */
const references = new WeakMap<PlannedKernel, string>()

function referenceOf(kernel: PlannedKernel): string {
  const known = references.get(kernel)
  if (known !== undefined) return known
  const made = isTemplate(kernel) ? inJson(kernel) : printKernel({ ...kernel, source: nowhere })
  references.set(kernel, made)
  return made
}

const nowhere = { file: '', line: 0, column: 0 }

const inJson = (kernel: PlannedKernel): string =>
  JSON.stringify(kernel, (key, value: unknown) => (ignored.includes(key) ? undefined : value))

/** Binds another use to the parameters of a known kernel; undefined if the derived kernel is a different one. */
export function boundTo(known: PlannedKernel, derived: Derived<PlannedKernel>): Derived<PlannedKernel> | undefined {
  if (sameKernel(known, derived.kernel)) return derived
  const names = namesBetween(derived.kernel, known)
  if (names === undefined || !isSame(JSON.parse(inJson(derived.kernel)), JSON.parse(inJson(known)), names)) return undefined
  const called = (name: string): string => names.get(name) ?? name
  const bound = (bindings: Derived['inputs']) => bindings.map((binding) => ({ ...binding, param: called(binding.param) }))
  return {
    kernel: known,
    inputs: bound(derived.inputs),
    outputs: bound(derived.outputs),
    attrs: Object.fromEntries(Object.entries(derived.attrs).map(([name, value]) => [called(name), value])),
  }
}

/** Names in one kernel by the names of dimensions, tensors and attributes in another, matched by order; undefined if that is not a bijection. */
function namesBetween(from: PlannedKernel, to: PlannedKernel): ReadonlyMap<string, string> | undefined {
  const namesOf = ({ dims, tensors, attrs }: PlannedKernel) => [...dims, ...[...tensors, ...attrs].map(({ name }) => name)]
  const counts = ({ dims, tensors, attrs }: PlannedKernel) => `${dims.length} ${tensors.length} ${attrs.length}`
  const [left, right] = [namesOf(from), namesOf(to)]
  if (counts(from) !== counts(to) || new Set(left).size < left.length || new Set(right).size < right.length) return undefined
  return new Map(left.map((name, at) => [name, right[at] ?? name]))
}

/**
 * True if two structures are equal up to names. A keyword of the structure that is spelt like a name makes them different: the use then needs its
 * own kernel name, which is always correct.
 */
function isSame(a: unknown, b: unknown, names: ReadonlyMap<string, string>): boolean {
  if (typeof a === 'string') return (names.get(a) ?? a) === b
  if (a === null || b === null || typeof a !== 'object' || typeof b !== 'object') return a === b
  const [left, right] = [Object.entries(a), new Map(Object.entries(b))]
  return left.length === right.size && left.every(([key, value]) => isSame(value, right.get(key), names))
}

/**
 * The kernel as text without names and source locations: the same for kernels that `boundTo` would bind to each other, and stable from run to run.
 */
export function anonymous(kernel: PlannedKernel): string {
  const { dims, tensors, attrs } = kernel
  const names = [...dims, ...[...tensors, ...attrs].map(({ name }) => name)]
  const places = new Map(names.map((name, at) => [name, `#${at}`]))
  return JSON.stringify(kernel, (key, value: unknown) =>
    ignored.includes(key)
      ? undefined
      : value === kernel.name
        ? '#'
        : typeof value === 'string'
          ? (places.get(value) ?? value)
          : value,
  )
}
