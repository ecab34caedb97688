/** One run of a model against its inputs: names, storage types, layouts, and the sizes that shapes give. */
import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { GraphApplication } from '../application.js'
import type { Layouts } from '../layouts.js'
import type { DeviceTensor as HeldTensor, Session } from '../session.js'
import type { AnyTensor } from './call_types.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import { listed, nameHint } from './names.js'
import { Sizes } from './sizes.js'
import type { ModelSource } from './source.js'
import { checkTensor, type Tensor, typeName } from './tensor.js'

/** A state: its memory, and the program value it holds after a run. */
export interface StateParts {
  readonly tensor: HeldTensor
  readonly layout: LayoutDecl | undefined
  readonly next?: string
}

export interface ModelParts {
  readonly core: DeviceCore
  readonly source: ModelSource
  readonly applications: readonly GraphApplication[]
  readonly session: Session
  readonly layouts: Layouts
  readonly types: Readonly<Record<string, DType>>
  /** What weights and states say. */
  readonly sizes: Sizes
  readonly dims: readonly string[]
  readonly states: Readonly<Record<string, StateParts>>
  release(): void
}

export interface CheckedRun {
  readonly inputs: Readonly<Record<string, AnyTensor>>
  readonly dims: Readonly<Record<string, number>>
  readonly key: string
}

/** @throws usage `run.input`, `run.tensor`, `run.dtype`, `run.layout`, `run.rank`, `run.extent`, `run.dims` */
export function checkRun({ source, states, types, dims, sizes: known }: ModelParts, given: unknown): CheckedRun {
  const { name: model } = source
  const names = Object.keys(source.inputs).filter((name) => !Object.hasOwn(states, name))
  if (typeof given !== 'object' || given === null) {
    throw usageError('run.input', `${model}: the inputs of a run must be an object, got ${typeName(given)}`, {
      hint: `write { ${names.join(', ')} }`,
    })
  }
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    const what = Object.hasOwn(states, unknown) ? `${unknown} is a state, which is not given` : `there is no input ${unknown}`
    throw usageError('run.input', `${model}: ${what}`, { hint: nameHint('inputs', names, unknown) })
  }
  const sizes = new Sizes(model, 'run', known)
  const inputs: Record<string, AnyTensor> = {}
  for (const name of names) {
    const value = source.inputs[name]
    const tensor: unknown = (given as Readonly<Record<string, unknown>>)[name]
    if (tensor === undefined || value === undefined) {
      throw usageError('run.input', `${model}: input ${name} is missing`, { hint: listed('inputs', names) })
    }
    const checked = tensor instanceof DeviceTensor ? tensor : checkTensor(`${model}: ${name}`, 'run', tensor)
    const wanted = typeof value.dtype === 'string' ? value.dtype : types[value.dtype.param]
    if (checked.dtype !== wanted) {
      throw usageError('run.dtype', `${model}: ${name} must be ${wanted}, the tensor given is ${checked.dtype}`, {
        hint: `tensor('${wanted}', shape, toNumbers(${name})) converts`,
      })
    }
    const layout = tensor instanceof DeviceTensor ? (tensor.layout?.name ?? 'row') : value.layout
    if (layout !== value.layout) {
      throw usageError(
        'run.layout',
        `${model}: ${name} must lie in layout ${value.layout}, the device tensor given lies in ${layout}`,
      )
    }
    sizes.bind(name, value.shape, checked.shape)
    inputs[name] = checked
  }
  const all = sizes.all(dims)
  return { inputs, dims: all, key: JSON.stringify(all) }
}

/** Inputs of one's own, for a run that has to wait: whoever asked for it may change theirs. */
export const snapshot = (inputs: Readonly<Record<string, AnyTensor>>): Record<string, AnyTensor> =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, tensor]) => [
      name,
      tensor instanceof DeviceTensor ? tensor : ({ ...tensor, data: tensor.data.slice() } as Tensor),
    ]),
  )
