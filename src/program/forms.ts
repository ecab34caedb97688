/** Storage forms of a program's values while conversions are inserted, and their names in the compiled program. */
import type { Program, ProgramValue, ProgramValueId } from '../ir/program.js'
import type { CompiledValue } from './compiled.js'
import { printForm, type StorageForm, storedShape } from './storage_form.js'

/** An existing form of a value, and its name among the compiled program's values. */
interface Made {
  readonly form: StorageForm
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

  /** Forms of a value, in the order they were made. */
  of(id: ProgramValueId): readonly Made[] {
    return this.#made.get(id) ?? []
  }

  /** The declared form: with padding, in the value's own type and layout. */
  declared(id: ProgramValueId): StorageForm {
    const { dtype, layout } = this.value(id)
    return { rows: 'padded', ragged: undefined, store: dtype, layout }
  }

  value(id: ProgramValueId): ProgramValue {
    const value = this.#program.values[id]
    if (value === undefined) throw new Error(`internal: no value ${id} in ${this.#program.name}`)
    return value
  }

  /** Adds a form of a value. */
  add(id: ProgramValueId, form: StorageForm): string {
    const value = this.value(id)
    const before = this.#made.get(id) ?? []
    const plain = this.#resultNames.get(id) ?? value.name
    const name = this.#unused(before.length === 0 ? plain : `${value.name} as ${printForm(form)}`)
    this.#made.set(id, [...before, { form, name }])
    const { rows, ragged, store, layout } = form
    const shape = storedShape(value.shape, form, this.#program.ragged)
    this.values[name] = { dtype: store, shape, layout, rows, ...(ragged === undefined ? {} : { ragged }) }
    return name
  }

  #unused(name: string): string {
    let found = name
    for (let twin = 2; Object.hasOwn(this.values, found); twin++) found = `${name} ${twin}`
    return found
  }
}
