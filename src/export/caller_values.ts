/** The values of an exported program that its caller sees: states, inputs and outputs, with their storages and forms. */
import type { DType } from '../ir/dtype.js'
import { resolveDType } from '../ir/instance.js'
import { substituteShape } from '../lang/program/match.js'
import type { CompiledProgram } from '../program/index.js'
import type { FlatProgram } from '../runtime/program_flatten.js'
import type { WiredProgram } from '../runtime/program_wiring.js'
import { elementsOf, type Form, isPadded, type Known, type KnownLayouts, stridesOf } from './forms.js'
import type { LoweredState, LoweredValue } from './lowered.js'

/** Sizes, types and layouts by which values get their forms. */
export interface FormContext {
  readonly known: Known
  readonly types: Readonly<Record<string, DType>>
  readonly memory: KnownLayouts
}

export interface CallerValues {
  readonly states: readonly LoweredState[]
  readonly inputs: readonly LoweredValue[]
  readonly outputs: readonly LoweredValue[]
}

interface Program {
  readonly compiled: CompiledProgram
  readonly wired: WiredProgram
}

export function callerValues({ compiled, wired }: Program, flat: FlatProgram, context: FormContext): CallerValues {
  const valueAt = (name: string, wire: string, storage: number): LoweredValue => ({
    name,
    storage,
    ...memoryOf(compiledForm(compiled, wire, context), context.memory),
  })
  const states = Object.entries(compiled.states).map(([name, { cleared }]) => {
    const storage = flat.storages.findIndex(({ state }) => state === name)
    return { cleared, ...valueAt(name, name, storage) }
  })
  const inputs = wired.inputs.flatMap((name) => {
    const found = flat.inputs[name]
    return found === undefined ? [] : [valueAt(name, name, found.storage)]
  })
  const outputs = Object.entries(compiled.outputs).flatMap(([name, wire]) => {
    const found = flat.outputs[wire]
    return found === undefined ? [] : [valueAt(name, wire, found.storage)]
  })
  return { states, inputs, outputs }
}

/** A form with its padding and its strides. */
function memoryOf(form: Form, memory: KnownLayouts): Omit<LoweredValue, 'name' | 'storage'> {
  const strides = form.layout === 'row' ? undefined : stridesOf(form, memory)
  const padded = isPadded(form, memory) ? { padded: elementsOf(form, memory) } : {}
  return { ...form, ...padded, ...(strides === undefined ? {} : { strides }) }
}

function compiledForm({ values }: CompiledProgram, name: string, { known, types }: FormContext): Form {
  const value = values[name]
  if (value === undefined) throw new Error(`internal: there is no value ${name}`)
  const { dtype, shape, layout } = value
  return { dtype: resolveDType(dtype, types), shape: substituteShape(shape, known), layout }
}
