/**
 * Lowers bodies to statements. The body is applied to its inputs and environment, then to its row indices; its results are
 * stored. A body written element by element then becomes a row program like any other.
 */
import { Node } from 'ts-morph'
import { dim, index } from '../../ir/build.js'
import type { Expr } from '../../ir/expr.js'
import type { Kernel, RowAxis, Stmt, TensorParam } from '../../ir/kernel.js'
import { freeNames, substitute } from '../../ir/walk.js'
import { type Refusals, Reported } from '../diagnostics/refusals.js'
import { reject } from '../diagnostics/reject.js'
import { rowAxes } from '../signature/row_axes.js'
import type { Signature, SpanOf } from '../signature/signature.js'
import {
  describe,
  innerScope,
  type Lowering,
  type Place,
  refused,
  scalar,
  usable,
  type Value,
  type ValueOf,
} from '../static/values.js'
import { lowering } from './lowering.js'
import { countWhereStored } from './stored_counts.js'
import { scalarOf, storageOf, storeOf } from './stores.js'

const outputsOf = ({ tensors }: { readonly tensors: readonly TensorParam[] }): TensorParam[] =>
  tensors.filter((tensor) => tensor.access === 'out')

/** Arguments of the body: an accessor for each input, extents and attributes by name. */
function parameters({ tensors, types, dims, attrs, body, refused: names }: Signature): readonly [Value, Value] {
  const inputs = tensors
    .filter((tensor) => tensor.access === 'in')
    .map((tensor): [string, Value] => [
      tensor.name,
      { kind: 'access', tensor: tensor.name, dims: tensor.dims, type: scalarOf(tensor, types) },
    ])
  const environment = [
    ...dims.map((name): [string, Value] => [name, scalar(dim(name))]),
    ...attrs.map(({ name, type }): [string, Value] => [name, scalar({ kind: 'attr', type, name })]),
  ]
  // Names that the signature was refused for: a body that reads them ends without another error.
  const missing = [...names].map((name): [string, Value] => [name, refused])
  return [
    { kind: 'record', fields: new Map([...inputs, ...missing]), node: body },
    { kind: 'record', fields: new Map([...environment, ...missing]), node: body },
  ]
}

/** Node of an output's value in the returned object. */
function outputNode(record: Node, name: string): Node {
  const property = Node.isObjectLiteralExpression(record) ? record.getProperty(name) : undefined
  return Node.isPropertyAssignment(property) ? (property.getInitializer() ?? property) : (property ?? record)
}

interface LoweredBody {
  readonly rows: RowAxis[]
  readonly body: Stmt[]
  /** Node of each output's value. */
  readonly values: ReadonlyMap<string, Node>
  readonly unique: Lowering['unique']
}

/** Applies the body to its inputs and environment, and returns the function of the row indices. */
function rowFunction(signature: Signature, context: Lowering, place: Place): ValueOf<'function'> {
  const { body } = signature
  const hint = 'write body: ({ x }, { n }) => (m) => ({ y: ... })'
  const outer = context.evaluate(body, place)
  if (outer.kind !== 'function') return reject('signature', body, `the body is ${describe(outer)}, not a function`, hint)
  const given = parameters(signature).slice(0, outer.node.getParameters().length)
  const inner = context.call(outer, given, body, place)
  if (inner.kind === 'function') return inner
  return reject('signature', body, `the body returns ${describe(inner)}, not a function of the row indices`, hint)
}

/** Refuses fields of the returned object that are not outputs. */
function refuseUnknown(result: ValueOf<'record'>, signature: Signature, context: Lowering): void {
  const outputs = outputsOf(signature)
  for (const name of result.fields.keys()) {
    if (outputs.some((output) => output.name === name) || signature.refused.has(name)) continue
    context.attempt(() =>
      reject(
        'unknownOutput',
        outputNode(result.node, name),
        `${name} is not an output of ${signature.name}`,
        `its outputs are ${outputs.map((output) => output.name).join(', ')}`,
      ),
    )
  }
}

/** Lowers the body to statements and finds its row axes. */
function applyBody(signature: Signature, refusals: Refusals, spanOf: SpanOf): LoweredBody {
  const body: Stmt[] = []
  const context = lowering(body, signature.body, refusals, spanOf, signature.written.keys())
  const place: Place = { scope: innerScope(), level: 'row' }
  const inner = rowFunction(signature, context, place)
  const rows = rowAxes(signature, inner, context.unique)
  for (const row of rows) if (row.dim !== '') context.spans.set(row.index, row.dim)
  const indices = rows.map((row) => index(row.index))
  const result = context.call(inner, indices.map(scalar), inner.node, place)
  const outputs = outputsOf(signature)
  if (result.kind !== 'record') {
    return reject(
      'missingOutput',
      inner.node.getBody() ?? inner.node,
      `the body returns ${describe(result)}, not its outputs`,
      `return { ${outputs.map(({ name }) => name).join(', ')} }`,
    )
  }
  refuseUnknown(result, signature, context)
  const values = new Map<string, Node>()
  for (const tensor of outputs) {
    const { name } = tensor
    const value = result.fields.get(name)
    const node = outputNode(result.node, name)
    values.set(name, node)
    const stored = context.attempt(() =>
      value === undefined
        ? reject('missingOutput', result.node, `output ${name} is missing`, `return it: { ${name}: ... }`)
        : storeOf(usable(value), { tensor, node, rows: indices, types: signature.types, place, context }),
    )
    if (stored !== undefined) body.push(stored)
  }
  return { rows, body, values, unique: context.unique }
}

/**
 * A body that names every dimension and has no row construct is elementwise: its last index becomes the loop of a row
 * store, so that schedules see one form. Values that do not depend on that index stay outside.
 */
function rowsFromElements({ rows, body, unique }: LoweredBody): Pick<Kernel, 'rows' | 'body'> {
  const last = rows.at(-1)
  if (last === undefined || !body.every((stmt) => stmt.kind === 'let' || stmt.kind === 'store')) return { rows, body }
  const inside = new Map<string, Expr>()
  const result: Stmt[] = []
  for (const stmt of body) {
    const value = substitute(stmt.value, inside)
    if (stmt.kind === 'let') {
      if (freeNames(value).has(last.index)) inside.set(stmt.name, value)
      else result.push(stmt)
    } else {
      // Every loop of a kernel has its own index.
      const at = result.some((other) => other.kind === 'storeRow') ? unique(last.index) : last.index
      const element = substitute(value, new Map([[last.index, index(at)]]))
      result.push({
        kind: 'storeRow',
        tensor: stmt.tensor,
        rows: stmt.indices.slice(0, -1),
        length: dim(last.dim),
        index: at,
        value: element,
      })
    }
  }
  return { rows: rows.slice(0, -1), body: result }
}

/** The row axes and statements of an op's body, and the nodes of its outputs. @throws Rejection located in the author's source. */
export function lowerBody(
  signature: Signature,
  refusals: Refusals,
  spanOf: SpanOf,
): Pick<Kernel, 'rows' | 'body'> & Pick<LoweredBody, 'values'> {
  const lowered = applyBody(signature, refusals, spanOf)
  // The rest of a partly refused body is incomplete.
  if (refusals.count > 0) throw new Reported()
  const { rows, body } = rowsFromElements(lowered)
  const plain = signature.tensors.filter((tensor) => storageOf(tensor, signature.types) === 'i32')
  return { rows, body: countWhereStored(body, new Set(plain.map(({ name }) => name))), values: lowered.values }
}
