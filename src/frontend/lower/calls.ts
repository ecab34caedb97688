/** Calls: one dispatch over all callable values, and the accesses of tensors and rows. */
import { Node } from 'ts-morph'
import { isTeamName } from '../../ir/constructs/team_call.js'
import type { ScalarType } from '../../ir/dtype.js'
import type { Expr } from '../../ir/expr.js'
import { isIntrinsicName } from '../../ir/intrinsics.js'
import { isMonoidName } from '../../ir/monoids.js'
import { argsort } from '../constructs/argsort.js'
import { checkInOrder } from '../constructs/in_order.js'
import { userMonoid } from '../constructs/monoid.js'
import { histogram, lengthAndElement, reduction, scan } from '../constructs/rows.js'
import { teamCall } from '../constructs/team.js'
import { topK } from '../constructs/top_k.js'
import { itemOf } from '../constructs/top_k_element.js'
import { quote, reject } from '../diagnostics/reject.js'
import { foldCall, integer } from '../recurrences/recurrence.js'
import { accessHint } from '../static/hints.js'
import { type Brand, describe, type Lowering, type Place, scalar, type Value, type ValueOf } from '../static/values.js'
import { asCondition } from '../types/conditions.js'
import { applyIntrinsic, argumentAt, asIndex, asScalar, checkSpan, nameHistogram } from '../types/scalars.js'
import { callFunction } from './functions.js'

function load(tensor: ValueOf<'access'>, args: readonly Value[], node: Node, place: Place, lowering: Lowering): Value {
  const { tensor: name, dims, type } = tensor
  if (args.length !== dims.length) {
    reject(
      'arity',
      node,
      `${name} has ${dims.length} dimensions (${dims.join(' ')}), ${args.length} indices given`,
      accessHint(name, dims, node, place.scope),
    )
  }
  const indices = args.map((arg, axis) => {
    const at = argumentAt(node, axis)
    const index = asIndex(arg, at, `index ${axis} of ${name}:`)
    return checkSpan(index, { dim: dims[axis] ?? '', what: `dimension ${axis} of ${name}` }, at, place, lowering)
  })
  return readStored(type, (stored) => ({ kind: 'load', type: stored, tensor: name, indices }))
}

/** Value of a read; conditions are stored as integers. */
const readStored = (type: ScalarType, read: (stored: 'f32' | 'i32') => Expr): Value =>
  scalar(type === 'bool' ? asCondition(read('i32')) : read(type))

function element(row: ValueOf<'row'>, args: readonly Value[], node: Node, place: Place, lowering: Lowering): Value {
  const [arg] = args
  if (arg === undefined || args.length !== 1)
    return reject('arity', node, `row ${row.name} takes 1 index, ${args.length} given`, `write ${row.name}(c)`)
  const at = argumentAt(node, 0)
  const index = asIndex(arg, at, `index of row ${row.name}:`)
  if (row.length.kind === 'const' && index.kind === 'const' && Number(index.value) >= Number(row.length.value))
    reject(
      'shape',
      at,
      `row ${row.name} has ${row.length.value} elements, there is no element ${index.value}`,
      'indices count from 0',
    )
  checkInOrder(row, index, node, lowering)
  const isChecked = row.length.kind === 'dim' && row.prefix !== true
  const read = isChecked ? checkSpan(index, { dim: row.length.name, what: `row ${row.name}` }, at, place, lowering) : index
  return readStored(row.type, (type) => ({ kind: 'element', type, row: row.name, index: read }))
}

function item({ items }: ValueOf<'list'>, args: readonly Value[], node: Node): Value {
  const [arg] = args
  if (arg === undefined || args.length !== 1)
    return reject('arity', node, `a ranking takes 1 index, ${args.length} given`, 'write best.values(0)')
  const at = argumentAt(node, 0)
  return scalar(itemOf(items, asIndex(arg, at, 'index of a ranking:'), at))
}

/** Hint for a call of an object: its callable fields, if it has any. */
function fieldsHint({ fields }: ValueOf<'record'>, node: Node): string {
  const object = quote(Node.isCallExpression(node) ? node.getExpression() : node)
  const names = [...fields].flatMap(([name, { kind }]) => (kind === 'scalar' ? [] : [`${object}.${name}(...)`]))
  return names.length === 0 ? 'only functions, tensors and rows can be called' : `call a field of it: ${names.join(', ')}`
}

/** Calls a function of `heddle`. */
function callBrand(
  brand: Brand,
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted: string | undefined,
): Value {
  const { kind, name } = brand
  if (kind === 'intrinsic' && isIntrinsicName(name)) {
    const nodes = args.map((_, at) => argumentAt(node, at))
    return scalar(
      applyIntrinsic(
        name,
        args.map((arg, at) => asScalar(arg, nodes[at] ?? node)),
        nodes,
        node,
      ),
    )
  }
  if (kind === 'reduction' && isMonoidName(name)) return reduction(name, args, node, place, lowering, wanted)
  if (kind === 'scan' && isMonoidName(name)) return scan(name, args, node, place, lowering, wanted)
  if (kind === 'team' && isTeamName(name)) return teamCall({ construct: name, args, node, place }, lowering, wanted)
  if (kind === 'histogram') return histogram(args, node, place)
  if (kind === 'argsort') return argsort(args, node, place, lowering, wanted)
  if (kind === 'topK') return topK(args, node, place, lowering, wanted)
  if (kind === 'fold' && (name === 'last' || name === 'each')) return foldCall(name, args, node, place, lowering, wanted)
  if (kind === 'int') return integer(args, node)
  if (kind === 'row') {
    const { length, of } = lengthAndElement(name, args, node)
    return { kind: 'pendingRow', length, element: of, node }
  }
  throw new Error(`internal: a body calls ${kind} ${name}`)
}

/** Calls any value. `wanted` is the author's name for the result, if any. */
export function callValue(
  callee: Value,
  args: readonly Value[],
  node: Node,
  place: Place,
  lowering: Lowering,
  wanted?: string,
): Value {
  switch (callee.kind) {
    case 'function':
      return callFunction(callee, args, node, place, lowering, wanted)
    case 'access':
      return load(callee, args, node, place, lowering)
    case 'row':
      return element(callee, args, node, place, lowering)
    case 'list':
      return item(callee, args, node)
    case 'monoid':
      return userMonoid(callee, args, node, place, lowering, wanted)
    case 'pendingRow':
      return callValue(callee.element, args, node, place, lowering)
    case 'brand':
      return callBrand(callee.brand, args, node, place, lowering, wanted)
    default:
      return reject(
        'callee',
        node,
        `${quote(Node.isCallExpression(node) ? node.getExpression() : node)} is ${describe(callee)}, not a function`,
        callee.kind === 'record'
          ? fieldsHint(callee, node)
          : callee.kind === 'histogram'
            ? nameHistogram
            : 'only functions, tensors and rows can be called',
      )
  }
}
