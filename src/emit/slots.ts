/**
 * Slots of attention as CUDA text: small functions of indices and numbers, whose parameters have names only where the text uses them.
 * What a slot uses is noted while its text is made, never read off the text.
 */
import type { Expr } from '../ir/expr.js'
import { expressionText, type Scope } from './expression.js'
import { bodyWriter, lines } from './kernel.js'
import { scalarText } from './names.js'
import type { Noted } from './template.js'

/** Parameters of slots that are numbers; the others are indices. */
const numbers: readonly string[] = ['raw', 'result', 'total', 'top', 'i_float', 'j_float']

/** A scope that notes everything its text names, over the same names. */
export const notingScope = (scope: Pick<Scope, 'names' | 'tensors'>): Scope & Noted => ({
  ...scope,
  used: { dims: new Set(), attrs: new Set(), indices: new Set(), locals: new Set(), tensors: new Set() },
  fixed: {},
  elements: new Map(),
})

export class SlotWriter {
  readonly #writer = bodyWriter()
  readonly #scope: Scope

  constructor(scope: Scope) {
    this.#scope = scope
  }

  comment(text: string): void {
    this.#writer.writeLine(`/// ${text}`)
  }

  constant(name: string, value: boolean | number): void {
    this.#writer.writeLine(`static constexpr ${typeof value === 'number' ? 'int' : 'bool'} ${name} = ${value};`)
  }

  /** A function for the host. */
  host(result: string, name: string, text: string): void {
    this.#writer.writeLine(`${result} ${name}() const { return ${text}; }`)
  }

  /** A device function that returns what `text` says. */
  define(result: string, name: string, parameters: readonly string[], text: () => string): void {
    const list = this.#named(parameters, text)
    this.#writer.writeLine(`__device__ __forceinline__ ${result} ${name}(${list.parameters}) const { return ${list.text}; }`)
  }

  value(name: string, parameters: readonly string[], expr: Expr): void {
    this.define(scalarText[expr.type], name, parameters, () => expressionText(expr, this.#scope))
  }

  /** A template that sets Vec neighbouring elements. */
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
      const isNumber = numbers.includes(parameter)
      const isUsed = used.indices.has(parameter) || used.locals?.has(parameter)
      return `${isNumber ? 'float' : 'int'}${isUsed === true ? ` ${names.value(parameter)}` : ''}`
    })
    return { parameters: list.join(', '), text }
  }
}
