/**
 * Checks a call against the declaration of its op: names, storage types, ranks and extents of inputs, values of dimensions and attributes.
 * Pure: the result describes the call completely, except for its kernel.
 */
import { usageError } from '../../errors.js'
import { type DType, isDType } from '../../ir/dtype.js'
import { getOwn } from '../../ir/get_own.js'
import type { TensorDecl } from '../../lang/types.js'
import { axesOf, Extents } from './call_extents.js'
import { checkRecord } from './call_record.js'
import type { AnyOp, AnyTensor } from './call_types.js'
import { DeviceTensor, type Form } from './device_tensor.js'
import { checkGiven } from './given.js'
import { listed, nameHint } from './names.js'
import { typeName } from './tensor.js'

/** Options of a call before they are checked. */
export interface GivenOptions {
  readonly attrs?: unknown
  readonly dtype?: unknown
  readonly dims?: unknown
}

export interface CheckedCall {
  readonly op: AnyOp
  readonly inputs: Readonly<Record<string, AnyTensor>>
  readonly types: Readonly<Record<string, DType>>
  readonly dims: Readonly<Record<string, number>>
  readonly attrs: Readonly<Record<string, number>>
  readonly outputs: Readonly<Record<string, Form>>
}

/** @throws usage `call.op`, `call.input`, `call.tensor`, `call.dtype`, `call.rank`, `call.extent`, `call.dims`, `call.attrs`, `call.layout` */
export function checkCall(given: unknown, inputs: unknown, options: GivenOptions): CheckedCall {
  const op = checkOp(given)
  const tensors = checkNames(op, inputs)
  const dims = new Extents(op, options.dims)
  const types = new Types(op, options.dtype)
  for (const [name, decl] of Object.entries(op.inputs)) {
    const tensor = getOwn(tensors, name)
    if (tensor === undefined) continue
    dims.bind(name, decl, tensor.shape)
    types.bind(name, decl, tensor.dtype)
    if (tensor instanceof DeviceTensor) checkLayout(op, name, decl, tensor)
  }
  const attrs = checkAttrs(op, options.attrs)
  const extents = dims.all(attrs)
  const chosen = types.all()
  const outputs = Object.entries(op.outputs).map(([name, decl]) => {
    const shape = axesOf(decl).map((axis) => extents[axis] ?? 0)
    return [name, { dtype: dtypeOf(decl, chosen), shape, layout: decl.layout }] as const
  })
  return {
    op,
    inputs: tensors,
    types: chosen,
    dims: extents,
    attrs,
    outputs: Object.fromEntries(outputs),
  }
}

function checkOp(given: unknown): AnyOp {
  const isOp =
    typeof given === 'object' && given !== null && 'body' in given && 'inputs' in given && 'outputs' in given && 'name' in given
  if (isOp) return given as AnyOp
  throw usageError('call.op', `first argument of call: expected an op, got ${typeName(given)}`, {
    hint: "pass an op, as op('name', { ... }) returns it: import { double } from './specs/double.js'",
  })
}

/** Given tensors, by the op's names of inputs. */
function checkNames(op: AnyOp, inputs: unknown): Readonly<Record<string, AnyTensor>> {
  const names = Object.keys(op.inputs)
  if (typeof inputs !== 'object' || inputs === null) {
    throw usageError('call.input', `${op.name}: inputs of a call: expected an object, got ${typeName(inputs)}`, {
      hint: `write { ${names.join(', ')} }`,
    })
  }
  const unknown = Object.keys(inputs).find((name) => !names.includes(name))
  if (unknown !== undefined) {
    throw usageError('call.input', `${op.name} has no input ${unknown}`, { hint: nameHint('inputs', names, unknown) })
  }
  return Object.fromEntries(
    names.map((name) => {
      const given: unknown = (inputs as Readonly<Record<string, unknown>>)[name]
      if (given === undefined) {
        throw usageError('call.input', `${op.name}: input ${name} is missing`, { hint: listed('inputs', names) })
      }
      return [name, given instanceof DeviceTensor ? given : checkGiven(`${op.name}: ${name}`, 'call', given)]
    }),
  )
}

/** Storage types of the op's type parameters, each with its origin. */
class Types {
  readonly #op: AnyOp
  readonly #found = new Map<string, { readonly dtype: DType; readonly by: string }>()

  constructor(op: AnyOp, given: unknown) {
    this.#op = op
    const params = Object.keys(op.types)
    if (given === undefined) return
    if (params.length === 0) {
      throw usageError('call.dtype', `${op.name} has no type parameter for the option dtype`)
    }
    const chosen = typeof given === 'string' ? Object.fromEntries(params.map((param) => [param, given])) : given
    for (const [param, dtype] of Object.entries(checkRecord(op, 'dtype', chosen, "'f32', or { T: 'f32' }"))) {
      if (!params.includes(param)) {
        throw usageError('call.dtype', `${op.name} has no type parameter ${param}`, {
          hint: nameHint('type parameters', params, param),
        })
      }
      this.#found.set(param, { dtype: this.#allowed(param, dtype, 'the option dtype'), by: 'the option dtype' })
    }
  }

  bind(name: string, { type }: TensorDecl, dtype: DType): void {
    const where = `${this.#op.name}: ${name}`
    if (isDType(type)) {
      if (dtype !== type) throw usageError('call.dtype', `${where}: expected ${type}, got ${dtype}`)
      return
    }
    const known = this.#found.get(type)
    if (known !== undefined && known.dtype !== dtype) {
      throw usageError('call.dtype', `${where} is ${dtype}, but ${type} is ${known.dtype} according to ${known.by}`, {
        hint: `tensors of type ${type} have one storage type: tensor('${known.dtype}', shape, toNumbers(${name})) converts`,
      })
    }
    this.#found.set(type, known ?? { dtype: this.#allowed(type, dtype, name), by: name })
  }

  /** All storage types, in the order of the declaration, which is that of instance keys. */
  all(): Record<string, DType> {
    return Object.fromEntries(
      Object.keys(this.#op.types).map((param) => {
        const found = this.#found.get(param)
        if (found !== undefined) return [param, found.dtype]
        throw usageError('call.dtype', `${this.#op.name}: no input has type ${param}: its storage type must be given`, {
          hint: `call(${this.#op.name}, { ... }, { dtype: { ${param}: '${this.#op.types[param]?.[0]}' } })`,
        })
      }),
    )
  }

  #allowed(param: string, dtype: unknown, by: string): DType {
    const choices = this.#op.types[param] ?? []
    const found = choices.find((choice) => choice === dtype)
    if (found !== undefined) return found
    throw usageError('call.dtype', `${this.#op.name}: ${param} cannot be ${String(dtype)}, as given by ${by}`, {
      hint: `${param} may be ${choices.join(', ')}`,
    })
  }
}

const dtypeOf = ({ type }: TensorDecl, types: Readonly<Record<string, DType>>): DType => {
  const dtype = isDType(type) ? type : types[type]
  if (dtype === undefined) throw usageError('call.op', `${type} is neither a storage type nor a type parameter of the op`)
  return dtype
}

function checkLayout(op: AnyOp, name: string, { layout }: TensorDecl, tensor: DeviceTensor): void {
  const [wanted, found] = [layout?.name ?? 'row', tensor.layout?.name ?? 'row']
  if (wanted === found) return
  throw usageError('call.layout', `${op.name}: ${name}: expected a device tensor in layout ${wanted}, got layout ${found}`, {
    hint: 'read it, and pass the host tensor: the call converts its layout',
  })
}

function checkAttrs(op: AnyOp, given: unknown): Record<string, number> {
  const names = Object.keys(op.attrs)
  const attrs = checkRecord(op, 'attrs', given)
  for (const [name, value] of Object.entries(attrs)) {
    if (!names.includes(name)) {
      throw usageError('call.attrs', `${op.name} has no attribute ${name}`, { hint: nameHint('attributes', names, name) })
    }
    if (!Number.isFinite(value)) {
      const found = typeof value === 'number' ? String(value) : typeName(value)
      throw usageError('call.attrs', `${op.name}: attribute ${name}: expected a finite number, got ${found}`)
    }
  }
  return { ...op.attrs, ...attrs }
}
