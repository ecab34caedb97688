/** Inputs and states of a program under construction: declared values, and the next value of each state. */
import { usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { ProgramStateDecl } from '../../ir/program.js'
import type { TensorDecl } from '../types.js'
import { describe } from './checks.js'
import type { ProgramResult, ProgramTensor } from './types.js'
import type { ProgramValues } from './values.js'

export class ProgramStates {
  readonly inputs: Record<string, number> = {}
  readonly states: Record<string, ProgramStateDecl> = {}
  readonly #program: string
  readonly #values: ProgramValues

  constructor(program: string, values: ProgramValues) {
    this.#program = program
    this.#values = values
  }

  /** True if an input or a state has the name. */
  has(name: string): boolean {
    return Object.hasOwn(this.inputs, name) || Object.hasOwn(this.states, name)
  }

  input(name: string, decl: TensorDecl): ProgramResult {
    const handle = this.#values.declare(name, decl, this.has(name))
    this.inputs[name] = handle.value
    return handle
  }

  state(name: string, decl: TensorDecl, { cleared = false }: { readonly cleared?: boolean }): ProgramResult {
    const handle = this.#values.declare(name, decl, this.has(name))
    this.states[name] = { value: handle.value, next: undefined, cleared }
    return handle
  }

  /** Sets the value of a state after a run. @throws usage `program.state` for anything but a state, and for a value of another form */
  follow(state: ProgramTensor, value: ProgramTensor): void {
    const before = this.#values.at(state, `${this.#program}: next`)
    const decl = getOwn(this.states, before.name)
    const at = `${this.#program}: ${before.name}`
    if (decl === undefined || decl.value !== state.value)
      throw usageError('program.state', `${at} is not a state`, { hint: 'declare it by p.state()' })
    const after = this.#values.at(value, at)
    if (describe(before) !== describe(after))
      throw usageError('program.state', `${at} is ${describe(before)}, its next value ${after.name} is ${describe(after)}`)
    this.states[before.name] = { ...decl, next: value.value }
  }
}
