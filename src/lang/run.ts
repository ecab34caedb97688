/**
 * Runs an op's body as plain TypeScript, over logical tensors in double precision. This run is the oracle that every
 * other form of the op is compared with. Outputs of small integers and 8-bit floats are saturated
 * (src/ir/store.ts); floats are not rounded. Elements of u32 and i64 beyond int32 are read as its nearest number.
 */
import { usageError } from '../errors.js'
import { type DType, isDType } from '../ir/dtype.js'
import { asRead, forEachPoint, type HostTensor, position } from '../ir/evaluate.js'
import { fixedByFacts } from '../ir/facts/solve.js'
import { storedNumber } from '../ir/store.js'
import { dimFactsOf } from './dim_facts.js'
import type { Inputs, Op, TensorDecl, Tensors as TensorDecls } from './types.js'

export interface RunOptions {
  /** Values of attributes; others have the op's defaults. */
  readonly attrs?: Readonly<Record<string, number>>
  /** Extents of dimensions that no input has. */
  readonly dims?: Readonly<Record<string, number>>
}

type Tensors = Readonly<Record<string, HostTensor>>

const storageOf = (type: string): DType | undefined => (isDType(type) ? type : undefined)

const axesOf = (decl: TensorDecl): readonly string[] => (decl.dims === '' ? [] : decl.dims.split(' '))

/**
 * Computes every output of the op for the given inputs.
 * @throws usage `run.input`, `run.shape`, `run.dim` for tensors that do not fit the op; finding `evaluate.bounds` for a read outside a tensor
 */
export function runOp(op: Op, inputs: Tensors, options: RunOptions = {}): Record<string, HostTensor> {
  const unknown = [...Object.keys(inputs), ...Object.keys(options.attrs ?? {})].find(
    (name) => !(Object.hasOwn(op.inputs, name) || Object.hasOwn(op.attrs, name)),
  )
  if (unknown !== undefined) throw usageError('run.input', `${op.name}: ${unknown} is neither an input nor an attribute`)
  const dims = extentsOf(op, inputs, options)
  const accessors = Object.fromEntries(
    Object.entries(op.inputs).map(([name, { type }]) => {
      const read = accessor(name, asRead(storageOf(type), inputs[name] ?? { data: [], shape: [] }))
      return [name, type === 'bool' ? (...indices: number[]) => read(...indices) !== 0 : read]
    }),
  )
  const program = op.body(accessors as Inputs<TensorDecls>, { ...op.attrs, ...options.attrs, ...dims })
  const outputs = Object.entries(op.outputs).map(([name, decl]) => {
    const shape = axesOf(decl).map((axis) => extent(op, axis, dims))
    return {
      name,
      shape,
      dtype: storageOf(decl.type),
      data: new Float64Array(shape.reduce((product, size) => product * size, 1)),
    }
  })
  const space = (outputs[0]?.shape ?? []).slice(0, program.length)
  forEachPoint(space, (point) => {
    const results = program(...point)
    for (const { name, shape, data, dtype } of outputs) {
      const result = results[name]
      if (result === undefined) throw usageError('run.output', `${op.name}: the body returns no ${name}`)
      if (typeof result !== 'function') data[position(name, point, shape)] = storedNumber(dtype, Number(result))
      else {
        const length = shape.at(-1) ?? 0
        const first = length === 0 ? 0 : position(name, [...point, 0], shape)
        for (let c = 0; c < length; c++) data[first + c] = storedNumber(dtype, Number(result(c)))
      }
    }
  })
  return Object.fromEntries(outputs.map(({ name, shape, data }) => [name, { shape, data }]))
}

const inside = (index: number, extent: number): boolean => index >>> 0 === index && index < extent

/** Reads one element. Bodies spend their time here, so no list of indices is allocated if all of them are in bounds. */
function accessor(name: string, { data, shape }: HostTensor): (...indices: number[]) => number {
  const read = (...indices: number[]): number => data[position(name, indices, shape)] ?? Number.NaN
  const [p = 0, q = 0, r = 0, s = 0] = shape
  switch (shape.length) {
    case 1:
      return (i) => (inside(i, p) ? (data[i] ?? Number.NaN) : read(i))
    case 2:
      return (i, j) => (inside(i, p) && inside(j, q) ? (data[i * q + j] ?? Number.NaN) : read(i, j))
    case 3:
      return (i, j, k) =>
        inside(i, p) && inside(j, q) && inside(k, r) ? (data[(i * q + j) * r + k] ?? Number.NaN) : read(i, j, k)
    case 4:
      return (i, j, k, l) =>
        inside(i, p) && inside(j, q) && inside(k, r) && inside(l, s)
          ? (data[((i * q + j) * r + k) * s + l] ?? Number.NaN)
          : read(i, j, k, l)
    default:
      return read
  }
}

function extent(op: Op, axis: string, dims: Readonly<Record<string, number>>): number {
  const size = dims[axis]
  if (size === undefined) throw usageError('run.dim', `${op.name}: dimension ${axis} has no extent`)
  return size
}

/** Extents of all dimensions, from the shapes of the inputs, the options, and the facts of the op. */
function extentsOf(op: Op, inputs: Tensors, options: RunOptions): Record<string, number> {
  const dims: Record<string, number> = { ...options.dims }
  for (const [name, decl] of Object.entries(op.inputs)) {
    const input = inputs[name]
    if (input === undefined) throw usageError('run.input', `${op.name}: input ${name} is missing`)
    const { shape, data } = input
    const elements = shape.reduce((product, size) => product * size, 1)
    if (data.length !== elements) {
      throw usageError(
        'run.shape',
        `${op.name}: ${name} has ${data.length} elements, its shape [${shape.join(', ')}] has ${elements}`,
      )
    }
    const axes = axesOf(decl)
    if (axes.length !== shape.length) {
      throw usageError('run.shape', `${op.name}: ${name} is "${decl.dims}", the tensor given has shape [${shape.join(', ')}]`)
    }
    for (const [i, axis] of axes.entries()) {
      const size = shape[i] ?? 0
      const known = dims[axis] ?? size
      if (known !== size)
        throw usageError('run.shape', `${op.name}: dimension ${axis} of ${name} is ${size}, but ${known} elsewhere`)
      dims[axis] = size
    }
  }
  const open = op.dims.filter((axis) => dims[axis] === undefined)
  Object.assign(dims, fixedByFacts(dimFactsOf(op), { ...op.attrs, ...options.attrs, ...dims }, open))
  for (const axis of op.dims) extent(op, axis, dims)
  return dims
}
