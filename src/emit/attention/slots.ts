/**
 * Slots of attention as CUDA source: small functions of indices and numbers. A parameter has a name only if the source uses it. The names that a
 * slot uses are recorded while its source is emitted, never parsed from it.
 */
import { f32 } from '../../ir/build.js'
import type { Expr, ExprOf } from '../../ir/expr.js'
import type { RowValue } from '../../ir/template.js'
import { freeNames, rewrite } from '../../ir/walk.js'
import { bodyWriter, lines } from '../kernels/frame.js'
import type { Noted } from '../kernels/template.js'
import { expressionText, offsetText, type Scope, tensorOf } from '../print/expression.js'
import { scalarText } from '../print/names.js'
import { beforeStore } from '../print/rounding.js'

/** Parameters of slots that are numbers; the others are indices. */
const numbers: readonly string[] = ['raw', 'result', 'total', 'top', 'i_float', 'j_float', 'apart', 'further', 'pair']

/** A scope over the same names that records every name its source uses. */
export const notingScope = (scope: Pick<Scope, 'names' | 'tensors'>): Scope & Noted => ({
  ...scope,
  used: { dims: new Set(), attrs: new Set(), indices: new Set(), locals: new Set(), tensors: new Set() },
  fixed: {},
  elements: new Map(),
})

export class SlotWriter {
  readonly #writer = bodyWriter()
  readonly #scope: Scope
  /** Parameters that are numbers of another type than float. */
  readonly #integers = new Set<string>()

  constructor(scope: Scope) {
    this.#scope = scope
  }

  comment(text: string): void {
    this.#writer.writeLine(`/// ${text}`)
  }

  constant(name: string, value: boolean | number): void {
    this.#writer.writeLine(`static constexpr ${typeof value === 'number' ? 'int' : 'bool'} ${name} = ${value};`)
  }

  /** Writes a function for the host. `more` are parameters that the source may use. */
  host(result: string, name: string, text: string, more: readonly string[] = []): void {
    this.#writer.writeLine(
      `${result} ${name}(${more.map((parameter) => `[[maybe_unused]] ${parameter}`).join(', ')}) const { return ${text}; }`,
    )
  }

  /** Writes a device function that returns `text`; `more` are further parameters, declared even if unused. */
  define(result: string, name: string, parameters: readonly string[], text: () => string, more: readonly string[] = []): void {
    const list = this.#named(parameters, text)
    const all = [list.parameters, ...more.map((parameter) => `[[maybe_unused]] ${parameter}`)].join(', ')
    this.#writer.writeLine(`__device__ __forceinline__ ${result} ${name}(${all}) const { return ${list.text}; }`)
  }

  /** Writes a template that returns one of several values, by number. */
  choices(name: string, parameters: readonly string[], values: readonly Expr[]): void {
    const list = this.#named(parameters, () => values.map((value) => expressionText(value, this.#scope)))
    this.#writer.writeLine('template <int At>')
    this.#writer.write(`__device__ __forceinline__ auto ${name}(${list.parameters}) const `).block(() => {
      list.text.forEach((text, at) => {
        this.#writer.writeLine(`if constexpr (At == ${at}) return ${text};`)
      })
    })
  }

  value(name: string, parameters: readonly string[], expr: Expr): void {
    this.define(scalarText[expr.type], name, parameters, () => expressionText(expr, this.#scope))
  }

  /** Writes a function that stores values of a row of the softmax; nothing where there are none. */
  rowValues(values: readonly RowValue[]): void {
    if (values.length === 0) return
    const { names, used } = this.#scope
    const list = this.#named(['total', 'top', 'b', 'h', 'i'], () =>
      values.map(({ tensor, indices, value }) => {
        used.tensors?.add(tensor)
        const stored = beforeStore(value, tensorOf(tensor, this.#scope).dtype)
        const [place, text] = [offsetText(tensor, indices, this.#scope), expressionText(stored, this.#scope)]
        return `heddle::write(${names.tensor(tensor)}, ${place}, ${text});`
      }),
    )
    this.comment('Values of a row that are stored beside its result.')
    if (values.every(({ value }) => isShifted(value))) this.constant('rows_shift', true)
    this.#writer.write(`__device__ __forceinline__ void store_row(${list.parameters}) const `).block(() => {
      for (const line of list.text) this.#writer.writeLine(line)
    })
  }

  /** Declares that a parameter is an integer. */
  integer(parameter: string): void {
    this.#integers.add(parameter)
  }

  /** Writes a template that reads Vec consecutive elements, of which `valid` exist, from that of `load` on. */
  chunk(name: string, parameters: readonly string[], { tensor, indices }: ExprOf<'load'>): void {
    const list = this.#named(parameters, () => offsetText(tensor, indices, this.#scope))
    this.#scope.used.tensors?.add(tensor)
    const { names } = this.#scope
    const [head, text] = [`auto ${name}(${list.parameters}, int valid)`, `${names.tensor(tensor)}, ${list.text}, valid`]
    this.#writer.writeLine('template <int Vec>')
    this.#writer.writeLine(`__device__ __forceinline__ ${head} const { return heddle::load_chunk<Vec>(${text}); }`)
  }

  /** Writes a template that sets Vec consecutive elements. */
  elements(name: string, template: string, parameters: readonly string[], statements: () => readonly string[]): void {
    const list = this.#named(parameters, statements)
    this.#writer.writeLine(template)
    const head = `__device__ __forceinline__ void ${name}(${list.parameters}, int valid, float (&elements)[Vec]) const `
    this.#writer.write(head).block(() => {
      for (const line of list.text) this.#writer.writeLine(line)
    })
  }

  get text(): string {
    return lines(this.#writer)
  }

  #named<Text>(parameters: readonly string[], make: () => Text): { readonly parameters: string; readonly text: Text } {
    const { names, used } = this.#scope
    used.indices.clear()
    used.locals?.clear()
    const text = make()
    const list = parameters.map((parameter) => {
      const isNumber = numbers.includes(parameter) && !this.#integers.has(parameter)
      const isUsed = used.indices.has(parameter) || used.locals?.has(parameter)
      return `${isNumber ? 'float' : 'int'}${isUsed === true ? ` ${names.value(parameter)}` : ''}`
    })
    return { parameters: list.join(', '), text }
  }
}

/** True if a value depends on `total` and `top` through `log(total) + top` alone, which is the same for sums relative to any score. */
function isShifted(value: Expr): boolean {
  const isLocal = (expr: Expr | undefined, name: string): boolean => expr?.kind === 'local' && expr.name === name
  const isLog = (expr: Expr | undefined): boolean => expr?.kind === 'call' && expr.fn === 'log' && isLocal(expr.args[0], 'total')
  const left = rewrite(value, (node) => {
    const [a, b] = node.kind === 'call' && node.fn === 'add' ? node.args : []
    return (isLog(a) && isLocal(b, 'top')) || (isLocal(a, 'top') && isLog(b)) ? f32(0) : node
  })
  const names = freeNames(left)
  return !names.has('total') && !names.has('top')
}
