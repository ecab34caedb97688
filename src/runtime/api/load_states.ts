/** Inputs that outlive runs: checked, and given memory with what they hold before the first run. */
import type { DType } from '../../ir/dtype.js'
import type { Layouts } from '../layouts.js'
import { openStates } from '../states.js'
import type { AnyTensor } from './call_types.js'
import type { StateParts } from './check_run.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import { bytesIn, layoutOf } from './form.js'
import { anyTensor, refuse } from './load_checks.js'
import type { StateOption } from './model_types.js'
import { nameHint } from './names.js'
import { type ModelSource, resultName } from './source.js'

export function checkState(source: ModelSource, name: string, state: StateOption): AnyTensor {
  const names = Object.keys(source.inputs)
  if (!names.includes(name)) {
    throw refuse(source, 'states', `state ${name} is no input`, nameHint('inputs', names, name))
  }
  if (typeof state !== 'object' || state === null || state.value === undefined) {
    throw refuse(
      source,
      'states',
      `state ${name} has no value to begin with`,
      "write { value: zeros('f32', shape), next: 'output' }",
    )
  }
  const outputs = Object.keys(source.outputs)
  if (state.next !== undefined && !outputs.includes(state.next)) {
    throw refuse(source, 'states', `state ${name}: there is no output ${state.next}`, nameHint('outputs', outputs, state.next))
  }
  return anyTensor(source, name, state.value)
}

/** Memory of the states, with what they hold before the first run. */
export async function openStateMemory(
  core: DeviceCore,
  layouts: Layouts,
  source: ModelSource,
  types: Readonly<Record<string, DType>>,
  values: Readonly<Record<string, AnyTensor>>,
  options: Readonly<Record<string, StateOption>>,
): Promise<{ readonly states: Readonly<Record<string, StateParts>>; release(): void }> {
  const names = Object.keys(values)
  if (names.length === 0) return { states: {}, release: () => undefined }
  const decls = Object.fromEntries(
    Object.entries(values).map(([name, { shape }]) => {
      const { dtype, layout } = source.inputs[name] ?? { dtype: 'f32', layout: 'row' }
      return [name, { dtype: typeof dtype === 'string' ? dtype : (types[dtype.param] ?? 'f32'), shape, layout }]
    }),
  )
  const opened = await core.track(openStates({ device: core.native, layouts }, decls))
  const states = Object.fromEntries(
    Object.entries(opened.tensors).map(([name, tensor]): [string, StateParts] => {
      const next = options[name]?.next
      const layout = layoutOf(layouts, tensor.layout ?? 'row', tensor.shape.length)
      return [name, { tensor, layout, ...(next === undefined ? {} : { next: resultName(next) }) }]
    }),
  )
  try {
    for (const [name, state] of Object.entries(states)) {
      const given = values[name]
      if (given === undefined) continue
      const tensor = given instanceof DeviceTensor ? await given.read() : given
      const { buffer, offset } = state.tensor.slice
      await core.track(buffer.write(offset, bytesIn(tensor, state.layout)))
    }
    return { states, release: () => opened.release() }
  } catch (error) {
    opened.release()
    throw error
  }
}
