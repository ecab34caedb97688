/** States of a model: inputs of a graph that are kept between runs, and the states of a program. They are checked, allocated and initialised. */

import type { DType } from '../../ir/dtype.js'
import { resolveDType } from '../../ir/instance.js'
import { evaluateExtent } from '../../ir/shape.js'
import type { Layouts } from '../layouts.js'
import { openStates, type StateDecl } from '../states.js'
import type { AnyTensor } from './call_types.js'
import type { StateParts } from './check_run.js'
import type { DeviceCore } from './core.js'
import type { Declared } from './declared.js'
import { DeviceTensor } from './device_tensor.js'
import { bytesIn, layoutOf } from './form.js'
import { anyTensor, recordOf, refuse } from './load_checks.js'
import { nameHint } from './names.js'
import type { SourceState } from './source.js'

/** State of a graph: the initial value of an input, and the output that becomes its next value. */
interface GivenState {
  readonly value: AnyTensor
  readonly next: string | undefined
}

/** Checks the states of a graph. @throws usage `load.states` for an unknown input or output, and for a state without a value */
export function keptInputs(declared: Declared, given: unknown): Readonly<Record<string, GivenState>> {
  const names = Object.keys(declared.inputs)
  const states = Object.entries(recordOf(declared, 'states', given)).map(([name, state]): [string, GivenState] => {
    if (!names.includes(name)) throw refuse(declared, 'states', `state ${name} is not an input`, nameHint('inputs', names, name))
    const { value, next, ...others } = recordOf(declared, 'states', state)
    const [other] = Object.keys(others)
    if (other !== undefined) {
      throw refuse(declared, 'states', `state ${name} has no field ${other}`, nameHint('fields', ['value', 'next'], other))
    }
    if (value === undefined) {
      const write = "write { value: zeros('f32', shape), next: 'output' }"
      throw refuse(declared, 'states', `state ${name} has no initial value`, write)
    }
    const { outputs } = declared
    if (next !== undefined && !(typeof next === 'string' && outputs.includes(next))) {
      const what = `state ${name}: there is no output ${String(next)}`
      throw refuse(declared, 'states', what, nameHint('outputs', outputs, String(next)))
    }
    return [name, { value: anyTensor(declared, name, value), next }]
  })
  return Object.fromEntries(states)
}

/** Initial values of states of a program. @throws usage `load.states` for an unknown state */
export function firstValues(
  declared: Declared,
  states: Readonly<Record<string, SourceState>>,
  given: unknown,
): Readonly<Record<string, AnyTensor>> {
  const names = Object.keys(states)
  const values = Object.entries(recordOf(declared, 'states', given)).map(([name, value]): [string, AnyTensor] => {
    if (!names.includes(name)) throw refuse(declared, 'states', `there is no state ${name}`, nameHint('states', names, name))
    return [name, anyTensor(declared, name, value)]
  })
  return Object.fromEntries(values)
}

/** Device, layouts, types and sizes of states. */
export interface StateStage {
  readonly core: DeviceCore
  readonly layouts: Layouts
  readonly types: Readonly<Record<string, DType>>
  readonly sizes: Readonly<Record<string, number>>
}

/** Allocates the states and writes their initial values. */
export async function openStateMemory(
  { core, layouts, types, sizes }: StateStage,
  states: Readonly<Record<string, SourceState>>,
  values: Readonly<Record<string, AnyTensor>>,
): Promise<{ readonly states: Readonly<Record<string, StateParts>>; release(): void }> {
  if (Object.keys(states).length === 0) return { states: {}, release: () => undefined }
  const decls = Object.entries(states).map(([name, { value, cleared }]): [string, StateDecl] => {
    const shape = value.shape.map((extent) => evaluateExtent(extent, sizes))
    return [name, { dtype: resolveDType(value.dtype, types), shape, layout: value.layout, cleared }]
  })
  const opened = await core.track(openStates({ device: core.native, layouts }, Object.fromEntries(decls)))
  try {
    const parts = Object.entries(opened.tensors).map(([name, tensor]): [string, StateParts] => {
      const next = states[name]?.next
      const layout = layoutOf(layouts, tensor.layout ?? 'row', tensor.shape.length)
      return [name, { tensor, layout, ...(next === undefined ? {} : { next }) }]
    })
    for (const [name, state] of parts) {
      const given = values[name]
      if (given === undefined) continue
      const tensor = given instanceof DeviceTensor ? await given.read() : given
      const { buffer, offset } = state.tensor.slice
      await core.track(buffer.write(offset, bytesIn(tensor, state.layout)))
    }
    return { states: Object.fromEntries(parts), release: () => opened.release() }
  } catch (error) {
    opened.release()
    throw error
  }
}
