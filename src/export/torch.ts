/**
 * Python file of an export: an op of `torch.library` over the exported library. A fake implementation computes its shapes, so that `torch.compile`
 * has no graph break. Launches are on the current stream, so that a CUDA graph can capture it.
 */

import { render } from '../emit/templates.js'
import { abiType, type DType, dtypes } from '../ir/dtype.js'
import { multiplyExtents } from '../ir/shape.js'
import type { LoweredGenerator } from './generator.js'
import type { CNames } from './header.js'
import type { Lowered, LoweredValue } from './lowered.js'
import type { Size } from './sizes.js'
import { inPython, plainText, quoted } from './text.js'

const torchTypes: Readonly<Record<DType, string>> = {
  f32: 'torch.float32',
  f16: 'torch.float16',
  bf16: 'torch.bfloat16',
  i32: 'torch.int32',
  i8: 'torch.int8',
  u8: 'torch.uint8',
  f8e4m3: 'torch.float8_e4m3fn',
  f8e5m2: 'torch.float8_e5m2',
  i16: 'torch.int16',
  u32: 'torch.uint32',
  i64: 'torch.int64',
  bool: 'torch.bool',
}

/** Source of an open dimension's size: an axis of an input. */
interface Axis {
  readonly dim: string
  readonly input: string
  readonly axis: number
}

/** PyTorch types of the library's storage type numbers. */
const numberedTypes = dtypes.map((type) => `${torchTypes[type]}: ${abiType(type)}`).join(', ')

/** @param file name of the library that has the program */
const libraryText = (program: string, file: string): string =>
  render('torch_library', { program, file, upper: program.toUpperCase() }).trimEnd()

/** Python file of a generator: an op that takes token ids of prompts and returns those of texts. */
export const generatorTorch = ({ parts: { name, logprobs }, plan, dtype }: LoweredGenerator): string =>
  render('torch_generator', {
    ...{ name, program: name, plan, dtype, upper: name.toUpperCase(), logprobs },
    ...{ dtypes: numberedTypes, library: libraryText(name, name) },
  })

/** Python file of a program: its op. @param file name of the library that has the program */
export function torchText(lowered: Lowered, names: CNames, file: string = names.program): string {
  const { program } = names
  const args = names.inputs.map((name) => (taken.has(name) || name === program ? `in_${name}` : name))
  // Inside the op, dimensions and outputs have names that no tensor has.
  const results = names.outputs.map((name) => `out_${name}`)
  const outside = (dim: string): string => (args.includes(dim) || taken.has(dim) || dim === program ? `size_${dim}` : dim)
  const { axes, explicit, defaulted } = sourcesOf(lowered, args)
  const stateful = lowered.states.length > 0
  const tensors = [...args, ...(stateful ? ['states'] : [])]
  const optional = (dim: string, text: string): string => `${outside(dim)}${defaulted(dim) ? text : ''}`
  const parameters = [
    ...tensors.map((name) => `${name}: torch.Tensor`),
    'program: int',
    ...explicit.map((dim) => `${outside(dim)}: int${defaulted(dim) ? ' = -1' : ''}`),
  ]
  const types = results.map(() => 'torch.Tensor').join(', ')
  const most = (dim: string): string => text(lowered.most[dim] ?? { factor: 0, dims: [] })
  const device = tensors[0] === undefined ? 'DEVICE' : `${tensors[0]}.device`
  const made = (value: LoweredValue, i: number): string =>
    `${results[i]} = torch.empty(${shapeOf(value)}, dtype=${torchTypes[value.dtype]}, device=${device})`
  const checked = (value: LoweredValue, i: number): string =>
    `${args[i]} = _expect(${quoted(args[i] ?? '')}, ${args[i]}, ${torchTypes[value.dtype]}, ${shapeOf(value)})`
  return render('torch', {
    ...{
      program,
      name: lowered.name,
      plan: lowered.plan,
      dtype: lowered.dtype,
      upper: program.toUpperCase(),
      stateful,
      device,
      library: libraryText(program, file),
    },
    given: [...tensors, ...explicit.filter((dim) => !defaulted(dim)).map(outside)].join(', '),
    dtypes: numberedTypes,
    stateNames: lowered.states.map(({ name }) => quoted(name)).join(', '),
    states: lowered.states.map(stateText),
    outer: lowered.dims.map(outside).join(', '),
    outerSizes: lowered.dims.map((dim) => `${inside(dim)} = ${outside(dim)}`),
    parameters: parameters.join(', '),
    returned: results.length === 0 ? 'None' : results.length === 1 ? types : `Tuple[${types}]`,
    sizes: [
      ...axes.map(({ dim, input, axis }) => `${inside(dim)} = ${input}.shape[${axis}]`),
      ...explicit.map(
        (dim) => `${inside(dim)} = ${defaulted(dim) ? `${most(dim)} if ${outside(dim)} < 0 else ` : ''}${outside(dim)}`,
      ),
    ],
    checks: lowered.inputs.map(checked),
    made: lowered.outputs.map(made),
    dims: lowered.dims.map(inside).join(', '),
    inputs: args.join(', '),
    outputs: results.join(', '),
    results: results.length === 0 ? 'None' : results.join(', '),
    called: ['self', ...tensors, ...explicit.map((dim) => optional(dim, '=-1'))].join(', '),
    passed: [...tensors, 'self.handle', ...explicit.map(outside)].join(', '),
  })
}

/** Names that the file uses for other things. */
const taken = new Set(
  (
    'program self states sizes workspace torch name value like inputs outputs begin size shape dtype strides state found data made ctypes ' +
    'math os'
  ).split(' '),
)

const inside = (dim: string): string => `d_${dim}`
const text = (size: Size): string => plainText(size, inside, inPython)

/** A tuple in Python. */
const tuple = (sizes: readonly Size[]): string => `(${sizes.map(text).join(', ')}${sizes.length === 1 ? ',' : ''})`

/** Shape of a value in PyTorch; for a layout with padding, a list of its memory's elements. */
const shapeOf = ({ shape, padded }: LoweredValue): string => tuple(padded === undefined ? shape : [padded])

/** An entry of the table of states. States in layouts with padding, or without strides, are lists. */
function stateText(state: LoweredValue): string {
  const { name, dtype, shape, layout, padded, strides } = state
  const isList = padded !== undefined || (layout !== 'row' && strides === undefined)
  const extents = padded === undefined && isList ? [multiplyExtents(shape)] : padded === undefined ? shape : [padded]
  return `(${quoted(name)}, ${torchTypes[dtype]}, ${tuple(extents)}, ${isList || strides === undefined ? 'None' : tuple(strides)})`
}

/** Open dimensions given by the shapes of inputs, and those that a caller passes; of these, optional ones come last. */
function sourcesOf({ dims, inputs, most }: Lowered, args: readonly string[]) {
  const axes = dims.flatMap((dim): Axis[] => {
    const found = inputs.flatMap(({ shape }, i) => {
      const axis = shape.findIndex(({ factor, dims: of }) => factor === 1 && of.length === 1 && of[0] === dim)
      return axis < 0 ? [] : [{ dim, input: args[i] ?? '', axis }]
    })
    return found.slice(0, 1)
  })
  const rest = dims.filter((dim) => !axes.some((axis) => axis.dim === dim))
  const defaulted = (dim: string): boolean => most[dim] !== undefined
  return { axes, explicit: [...rest.filter((dim) => !defaulted(dim)), ...rest.filter(defaulted)], defaulted }
}
