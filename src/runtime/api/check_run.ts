/** Checks the inputs of a run: names, storage types, layouts, and sizes from shapes. */
import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { evaluateExtent, printExtent } from '../../ir/shape.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { Layouts } from '../layouts.js'
import { packedRows } from '../packed_rows.js'
import type { TensorSlice as HeldTensor, Session } from '../session.js'
import type { AnyTensor } from './call_types.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import { checkGiven } from './given.js'
import { listed, nameHint } from './names.js'
import { Sizes } from './sizes.js'
import type { ModelSource, RaggedInput } from './source.js'
import { type Tensor, toNumbers, typeName } from './tensor.js'

/** A state: its memory, and the program value that it holds after a run. */
export interface StateParts {
  readonly tensor: HeldTensor
  readonly layout: LayoutDecl | undefined
  readonly next?: string
}

export interface ModelParts {
  readonly core: DeviceCore
  readonly source: ModelSource
  readonly session: Session
  readonly layouts: Layouts
  readonly types: Readonly<Record<string, DType>>
  /** Sizes fixed by weights and states. */
  readonly sizes: Sizes
  readonly states: Readonly<Record<string, StateParts>>
  release(): void
}

export interface CheckedRun {
  readonly inputs: Readonly<Record<string, AnyTensor>>
  readonly dims: Readonly<Record<string, number>>
  readonly key: string
}

/** @throws usage `run.*` */
export function checkRun({ source, states, types, sizes: known }: ModelParts, given: unknown): CheckedRun {
  const { name: model } = source
  const names = Object.keys(source.inputs).filter((name) => !Object.hasOwn(states, name))
  if (typeof given !== 'object' || given === null) {
    throw usageError('run.input', `${model}: inputs of a run: expected an object, got ${typeName(given)}`, {
      hint: `write { ${names.join(', ')} }`,
    })
  }
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    const what = Object.hasOwn(states, unknown) ? `${unknown} is a state, not an input of a run` : `there is no input ${unknown}`
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
    const checked = tensor instanceof DeviceTensor ? tensor : checkGiven(`${model}: ${name}`, 'run', tensor)
    const wanted = typeof value.dtype === 'string' ? value.dtype : types[value.dtype.param]
    if (checked.dtype !== wanted) {
      throw usageError('run.dtype', `${model}: ${name}: expected ${wanted}, got ${checked.dtype}`, {
        hint: `tensor('${wanted}', shape, toNumbers(${name})) converts`,
      })
    }
    const layout = tensor instanceof DeviceTensor ? (tensor.layout?.name ?? 'row') : value.layout
    if (layout !== value.layout) {
      throw usageError(
        'run.layout',
        `${model}: ${name}: expected a device tensor in layout ${value.layout}, got layout ${layout}`,
      )
    }
    sizes.bind(name, value.shape, checked.shape)
    inputs[name] = checked
  }
  sizes.assumeTypical(source.typical)
  sizes.assume(source.factors)
  const counted = source.ragged.map(({ tokens }) => tokens)
  const all = sizes.all(source.dims.filter((dim) => !counted.includes(dim)))
  for (const axis of source.ragged) {
    const rows = tokensOf(model, axis, inputs[axis.lengths ?? ''], sizes, all)
    if (rows !== undefined) all[axis.tokens] = rows
  }
  return { inputs, dims: all, key: JSON.stringify(all) }
}

/**
 * Packed rows (without padding): the number that inputs or the caller fix, else enough for the lengths, or for full sequences if the lengths are
 * on the device. Undefined if the model does not use the axis. @throws usage `run.lengths` for lengths out of range, or too many tokens
 */
function tokensOf(
  model: string,
  { batch, seq, tokens, lengths: name }: RaggedInput,
  given: AnyTensor | undefined,
  sizes: Sizes,
  all: Readonly<Record<string, number>>,
): number | undefined {
  if ([...batch.dims, ...seq.dims].some((dim) => all[dim] === undefined)) return undefined
  const [sequences, positions] = [evaluateExtent(batch, all), evaluateExtent(seq, all)]
  const known = sizes.of(tokens)
  if (known !== undefined && known > sequences * positions) {
    throw usageError(
      'run.lengths',
      `${model}: ${tokens} is ${known}, ${sequences} sequences of ${positions} have at most ${sequences * positions}`,
    )
  }
  if (given === undefined || given instanceof DeviceTensor) return known ?? sequences * positions
  const lengths = Array.from(toNumbers(given))
  const wrong = lengths.findIndex((length) => length < 0 || length > positions)
  if (wrong >= 0) {
    throw usageError('run.lengths', `${model}: sequence ${wrong} has length ${lengths[wrong]} according to ${name}`, {
      hint: `lengths are integers in [0, ${printExtent(seq)}], ${printExtent(seq)} is ${positions}`,
    })
  }
  const sum = lengths.reduce((total, length) => total + length, 0)
  if (known === undefined) return Math.max(1, packedRows(lengths, positions))
  if (sum <= known) return known
  throw usageError('run.lengths', `${model}: sequences of ${sum} tokens, according to ${name}, do not fit into ${known} rows`)
}

/** Copies the host inputs of a run that has to wait: its caller may change the originals. */
export const snapshot = (inputs: Readonly<Record<string, AnyTensor>>): Record<string, AnyTensor> =>
  Object.fromEntries(
    Object.entries(inputs).map(([name, tensor]) => [
      name,
      tensor instanceof DeviceTensor ? tensor : ({ ...tensor, data: tensor.data.slice() } as Tensor<DType>),
    ]),
  )
