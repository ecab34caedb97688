/** Stores of a body's outputs: the statement of each, with its value checked against the output's shape and storage type. */
import type { Node } from 'ts-morph'
import { coerce, dim } from '../../ir/build.js'
import { type DType, dtypeInfo, type ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import type { Stmt, TensorParam } from '../../ir/kernel.js'
import { storedExpr } from '../../ir/store.js'
import { loop } from '../constructs/rows.js'
import { quote, reject } from '../diagnostics/reject.js'
import type { Signature } from '../signature/signature.js'
import { describe, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { storedCondition } from '../types/conditions.js'

/** Scalar type that a body reads from a tensor and stores into it. */
export const scalarOf = ({ dtype }: TensorParam, types: Signature['types']): ScalarType => {
  const choice = typeof dtype === 'string' ? dtype : types[dtype.param]?.[0]
  if (choice === 'bool') return 'bool'
  return choice === undefined ? 'f32' : dtypeInfo[choice].scalar
}

const plural: Readonly<Record<ScalarType, string>> = { f32: 'floats', i32: 'integers', bool: 'conditions' }

/** Hint for a value whose type the output cannot hold. */
const storedHint = (output: ScalarType, value: Expr): string =>
  output === 'bool' ? 'compare it, as in a !== 0' : value.type === 'bool' ? 'write condition ? 1 : 0' : 'convert it with toInt'

/** The storage type of a tensor, if all instances have the same one. */
export function storageOf({ dtype }: TensorParam, types: Signature['types']): DType | undefined {
  const choices: readonly DType[] = typeof dtype === 'string' ? [dtype] : (types[dtype.param] ?? [])
  return choices.length === 1 ? choices[0] : undefined
}

/** An output to store: its node in the returned object, and the row indices of the body. */
interface Site {
  readonly tensor: TensorParam
  readonly node: Node
  readonly rows: readonly Expr[]
  readonly types: Signature['types']
  readonly place: Place
  readonly context: Lowering
}

/** Refuses a row whose length is not the output's last dimension. */
function expectLength(length: Expr, { tensor, node }: Site, hint: string): void {
  const wanted = lastDim(tensor)
  if (length.kind === 'dim' && length.name === wanted) return
  const given =
    length.kind === 'dim' || length.kind === 'attr'
      ? length.name
      : length.kind === 'const'
        ? String(length.value)
        : 'another length'
  reject('shape', node, `output ${tensor.name} has rows of ${wanted} elements, this row has ${given}`, hint)
}

const lastDim = ({ dims }: TensorParam): string => dims.at(-1) ?? ''

/** A value, converted to the storage of an output. */
function converted(expr: Expr, { tensor, node, types }: Site): Expr {
  const type = scalarOf(tensor, types)
  const value =
    coerce(expr, type) ??
    reject(
      'dtype',
      node,
      `output ${tensor.name} holds ${plural[type]}, ${quote(node)} is ${describe(scalar(expr))}`,
      storedHint(type, expr),
    )
  if (type === 'bool') return storedCondition(value, tensor.updates)
  // A named value stands for the whole replacement of the elements.
  return tensor.updates !== undefined && value.kind === 'local'
    ? value
    : storedExpr(storageOf(tensor, types), value, tensor.updates)
}

function storeHistogram(value: ValueOf<'histogram'>, site: Site): Stmt {
  const { tensor, node, rows, types, place, context } = site
  expectLength(value.bins, site, `write histogram(${lastDim(tensor)}, n, (c) => ...)`)
  if (storageOf(tensor, types) !== 'i32')
    reject(
      'dtype',
      node,
      `output ${tensor.name} is stored as ${typeof tensor.dtype === 'string' ? tensor.dtype : tensor.dtype.param}, a histogram counts in 32 bits`,
      'declare it as i32',
    )
  const counted = loop(value.length, value.element, value.node, place, context)
  if (counted.value.type !== 'i32')
    reject('dtype', value.node, `a histogram counts integers, its element is ${describe(scalar(counted.value))}`, 'use toInt')
  return { kind: 'histogram', tensor: tensor.name, rows, bins: value.bins, length: value.length, ...counted }
}

/** The statement that stores one output. */
export function storeOf(value: Value, site: Site): Stmt {
  const { tensor, node, rows, place, context } = site
  const { name, dims } = tensor
  const shape = `output ${name} has the dimensions (${dims.join(' ')}), the body's indices run over (${dims.slice(0, rows.length).join(' ')})`
  if (value.kind === 'scalar') {
    if (dims.length !== rows.length)
      reject('shape', node, `${shape}: it takes a row, ${quote(node)} is a number`, `write row(${dims.at(-1)}, (c) => ...)`)
    return { kind: 'store', tensor: name, indices: rows, value: converted(value.expr, site) }
  }
  if (value.kind === 'record') return reject('dtype', node, `output ${name} is an object`, 'an output is a row or a number')
  if (dims.length !== rows.length + 1)
    reject(
      'shape',
      node,
      `${shape}: each of its elements is a number, ${quote(node)} is a row`,
      'reduce the row, or take one row index less',
    )
  if (value.kind === 'histogram') return storeHistogram(value, site)
  const length = value.kind === 'row' || value.kind === 'pendingRow' ? value.length : dim(lastDim(tensor))
  expectLength(length, site, `write row(${lastDim(tensor)}, (c) => ...)`)
  const of = value.kind === 'pendingRow' ? value.element : value
  const { index: at, value: element } = loop(length, of, node, place, context)
  return { kind: 'storeRow', tensor: name, rows, length, index: at, value: converted(element, site) }
}
