/** The forms in which the values of a program exist while it is settled, and what the compiled program calls them. */
import type { Program, ProgramValue, ProgramValueId } from '../ir/program.js'
import type { CompiledValue } from './compiled.js'
import { printForm, type StorageForm, storedShape } from './storage_form.js'

/** A form of a value that exists, and its name among the compiled program's values. */
interface Made {
  readonly held: StorageForm
  readonly name: string
}

export class Forms {
  readonly #program: Program
  readonly #made = new Map<ProgramValueId, Made[]>()
  readonly #resultNames: ReadonlyMap<ProgramValueId, string>
  /** Every value of the compiled program. */
  readonly values: Record<string, CompiledValue> = {}

  constructor(program: Program) {
    this.#program = program
    const given = new Set([...Object.values(program.inputs), ...Object.values(program.states).map(({ value }) => value)])
    this.#resultNames = new Map(
      Object.entries(program.outputs).flatMap(([name, id]) => (given.has(id) ? [] : [[id, name] as const])),
    )
  }

  /** In the order they were made. */
  of(id: ProgramValueId): readonly Made[] {
    return this.#made.get(id) ?? []
  }

  /** As the program declares it: with padding, in its own type and layout. */
  declared(id: ProgramValueId): StorageForm {
    const { dtype, layout } = this.value(id)
    return { rows: 'padded', ragged: undefined, store: dtype, layout }
  }

  value(id: ProgramValueId): ProgramValue {
    const value = this.#program.values[id]
    if (value === undefined) throw new Error(`internal: no value ${id} in ${this.#program.name}`)
    return value
  }

  /** A new form of a value. */
  add(id: ProgramValueId, held: StorageForm): string {
    const value = this.value(id)
    const before = this.#made.get(id) ?? []
    const plain = this.#resultNames.get(id) ?? value.name
    const name = this.#unused(before.length === 0 ? plain : `${value.name} as ${printForm(held)}`)
    this.#made.set(id, [...before, { held, name }])
    const { rows, ragged, store, layout } = held
    const shape = storedShape(value.shape, held, this.#program.ragged)
    this.values[name] = { dtype: store, shape, layout, rows, ...(ragged === undefined ? {} : { ragged }) }
    return name
  }

  #unused(name: string): string {
    let found = name
    for (let twin = 2; Object.hasOwn(this.values, found); twin++) found = `${name} ${twin}`
    return found
  }
}
