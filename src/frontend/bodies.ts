/**
 * Lowers bodies to statements. The body is applied to its inputs and environment, then to its row indices; its results are
 * stored. A body written element by element then becomes a row program like any other.
 */
import { Node } from 'ts-morph'
import { coerce, dim, index } from '../ir/build.js'
import { type DType, dtypeInfo, type ScalarType } from '../ir/dtype.js'
import type { Expr } from '../ir/expr.js'
import type { Kernel, RowAxis, Stmt, TensorParam } from '../ir/kernel.js'
import { storedExpr } from '../ir/store.js'
import { freeNames, substitute } from '../ir/walk.js'
import { storedCondition } from './conditions.js'
import { quote, reject } from './diagnostics.js'
import { lowering } from './lowering.js'
import { type Refusals, Reported } from './refusals.js'
import { rowAxes } from './row_axes.js'
import { loop } from './rows.js'
import type { Signature, SpanOf } from './signature.js'
import { countWhereStored } from './stored_counts.js'
import { describe, innerScope, type Lowering, type Place, refused, scalar, usable, type Value } from './values.js'

/** Scalar type that a body reads from a tensor and stores into it. */
const scalarOf = ({ dtype }: TensorParam, types: Signature['types']): ScalarType => {
  const choice = typeof dtype === 'string' ? dtype : types[dtype.param]?.[0]
  if (choice === 'bool') return 'bool'
  return choice === undefined ? 'f32' : dtypeInfo[choice].scalar
}

const plural: Readonly<Record<ScalarType, string>> = { f32: 'floats', i32: 'integers', bool: 'conditions' }

/** Hint for a value whose type the output cannot hold. */
const storedHint = (output: ScalarType, value: Expr): string =>
  output === 'bool' ? 'compare it, as in a !== 0' : value.type === 'bool' ? 'write condition ? 1 : 0' : 'convert it with toInt'

/** The storage type of a tensor, if all instances have the same one. */
function storageOf({ dtype }: TensorParam, types: Signature['types']): DType | undefined {
  const choices: readonly DType[] = typeof dtype === 'string' ? [dtype] : (types[dtype.param] ?? [])
  return choices.length === 1 ? choices[0] : undefined
}

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

/** Refuses a row whose length is not the output's last dimension. */
function expectLength(length: Expr, wanted: string, output: string, node: Node, hint: string): void {
  if (length.kind === 'dim' && length.name === wanted) return
  const given =
    length.kind === 'dim' || length.kind === 'attr'
      ? length.name
      : length.kind === 'const'
        ? String(length.value)
        : 'another length'
  reject('shape', node, `output ${output} has rows of ${wanted} elements, this row has ${given}`, hint)
}

/** The statement that stores one output. */
function storeOf(
  tensor: TensorParam,
  value: Value,
  node: Node,
  rows: readonly Expr[],
  signature: Signature,
  place: Place,
  context: Lowering,
): Stmt {
  const { name, dims } = tensor
  const type = scalarOf(tensor, signature.types)
  // A named value stands for the whole replacement of the elements.
  const stored = (expr: Expr): Expr =>
    tensor.updates !== undefined && expr.kind === 'local'
      ? expr
      : storedExpr(storageOf(tensor, signature.types), expr, tensor.updates)
  const convert = (expr: Expr): Expr =>
    type === 'bool' ? storedCondition(scalarFor(expr), tensor.updates) : stored(scalarFor(expr))
  const scalarFor = (expr: Expr): Expr =>
    coerce(expr, type) ??
    reject(
      'dtype',
      node,
      `output ${name} holds ${plural[type]}, ${quote(node)} is ${describe(scalar(expr))}`,
      storedHint(type, expr),
    )
  const shape = `output ${name} has the dimensions (${dims.join(' ')}), the body's indices run over (${dims.slice(0, rows.length).join(' ')})`
  if (value.kind === 'scalar') {
    if (dims.length !== rows.length)
      reject('shape', node, `${shape}: it takes a row, ${quote(node)} is a number`, `write row(${dims.at(-1)}, (c) => ...)`)
    return { kind: 'store', tensor: name, indices: rows, value: convert(value.expr) }
  }
  if (value.kind === 'record') return reject('dtype', node, `output ${name} is an object`, 'an output is a row or a number')
  if (dims.length !== rows.length + 1)
    reject(
      'shape',
      node,
      `${shape}: each of its elements is a number, ${quote(node)} is a row`,
      'reduce the row, or take one row index less',
    )
  const wanted = dims.at(-1) ?? ''
  if (value.kind === 'histogram') {
    expectLength(value.bins, wanted, name, node, `write histogram(${wanted}, n, (c) => ...)`)
    if (storageOf(tensor, signature.types) !== 'i32')
      reject(
        'dtype',
        node,
        `output ${name} is stored as ${typeof tensor.dtype === 'string' ? tensor.dtype : tensor.dtype.param}, a histogram counts in 32 bits`,
        'declare it as i32',
      )
    const counted = loop(value.length, value.element, value.node, place, context)
    if (counted.value.type !== 'i32')
      reject('dtype', value.node, `a histogram counts integers, its element is ${describe(scalar(counted.value))}`, 'use toInt')
    return { kind: 'histogram', tensor: name, rows, bins: value.bins, length: value.length, ...counted }
  }
  const length = value.kind === 'row' || value.kind === 'pendingRow' ? value.length : dim(wanted)
  expectLength(length, wanted, name, node, `write row(${wanted}, (c) => ...)`)
  const of = value.kind === 'pendingRow' ? value.element : value
  const { index: at, value: element } = loop(length, of, node, place, context)
  return { kind: 'storeRow', tensor: name, rows, length, index: at, value: convert(element) }
}

interface LoweredBody {
  readonly rows: RowAxis[]
  readonly body: Stmt[]
  /** Node of each output's value. */
  readonly values: ReadonlyMap<string, Node>
  readonly unique: Lowering['unique']
}

/** Lowers the body to statements and finds its row axes. */
function applyBody(signature: Signature, refusals: Refusals, spanOf: SpanOf): LoweredBody {
  const body: Stmt[] = []
  const context = lowering(body, signature.body, refusals, spanOf, signature.written.keys())
  const place: Place = { scope: innerScope(), level: 'row' }
  const outer = context.evaluate(signature.body, place)
  if (outer.kind !== 'function') {
    return reject(
      'signature',
      signature.body,
      `the body is ${describe(outer)}, not a function`,
      'write body: ({ x }, { n }) => (m) => ({ y: ... })',
    )
  }
  const given = parameters(signature).slice(0, outer.node.getParameters().length)
  const inner = context.call(outer, given, signature.body, place)
  if (inner.kind !== 'function') {
    return reject(
      'signature',
      signature.body,
      `the body returns ${describe(inner)}, not a function of the row indices`,
      'write body: ({ x }, { n }) => (m) => ({ y: ... })',
    )
  }
  const rows = rowAxes(signature, inner, context.unique)
  for (const row of rows) if (row.dim !== '') context.spans.set(row.index, row.dim)
  const indices = rows.map((row) => index(row.index))
  const result = context.call(inner, indices.map(scalar), inner.node, place)
  if (result.kind !== 'record') {
    return reject(
      'missingOutput',
      inner.node.getBody() ?? inner.node,
      `the body returns ${describe(result)}, not its outputs`,
      `return { ${outputsOf(signature)
        .map(({ name }) => name)
        .join(', ')} }`,
    )
  }
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
  const values = new Map<string, Node>()
  for (const output of outputs) {
    const value = result.fields.get(output.name)
    const node = outputNode(result.node, output.name)
    values.set(output.name, node)
    const stored = context.attempt(() =>
      value === undefined
        ? reject('missingOutput', result.node, `output ${output.name} is missing`, `return it: { ${output.name}: ... }`)
        : storeOf(output, usable(value), node, indices, signature, place, context),
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
