/** The row axes of an op: the leading dimensions that its outputs share, one per row index of its body. */
import { Node } from 'ts-morph'
import type { RowAxis } from '../../ir/kernel.js'
import { reject } from '../diagnostics/reject.js'
import { readBrand } from '../static/resolve.js'
import type { Lowering, ValueOf } from '../static/values.js'
import type { Signature } from './signature.js'

/** Explains that a recurrence over rows does not fill an output with a row per step. */
const leavesLast = ', and stores a number or a row with them: of a row that a fold carries only the last is left'
const stepHint =
  'return the last row, and numbers of each step; for a row of each step make the step an op of its own, launched for each, whose row is an output'

/** True if a body has a recurrence that carries a row: one of its initial fields is a row. */
function carriesRow(body: Node): boolean {
  const isOf = (node: Node | undefined, kind: string): boolean =>
    Node.isCallExpression(node) && readBrand(node.getExpression())?.kind === kind
  return body.getDescendants().some((node) => {
    const start = Node.isCallExpression(node) && isOf(node, 'fold') ? node.getArguments()[1] : undefined
    if (!Node.isObjectLiteralExpression(start)) return false
    return start.getProperties().some((field) => Node.isPropertyAssignment(field) && isOf(field.getInitializer(), 'row'))
  })
}

/** The dimensions of the row indices: the leading dimensions common to all outputs. @throws refusal if outputs share none */
export function rowAxes(signature: Signature, rows: ValueOf<'function'>, unique: Lowering['unique']): RowAxis[] {
  const names = rows.node.getParameters().map((parameter) => parameter.getName())
  const outputs = signature.tensors.filter(({ access }) => access === 'out')
  const [first] = outputs
  for (const { name, dims } of outputs) {
    const shape = `output ${name} has the dimensions (${dims.join(' ')})`
    if (dims.length !== names.length && dims.length !== names.length + 1) {
      reject(
        'shape',
        rows.node,
        `${shape}, but the body takes ${names.length} row indices${carriesRow(rows.node) ? leavesLast : ''}`,
        carriesRow(rows.node) ? stepHint : 'take an index for every dimension, or for all but the last',
      )
    }
    const common = first?.dims.slice(0, names.length)
    if (common?.some((extent, axis) => extent !== dims[axis])) {
      reject(
        'shape',
        signature.written.get(name) ?? rows.node,
        `${shape}, but the rows run over (${common.join(' ')})`,
        `outputs of one op share their leading dimensions: make ${name} an op of its own`,
      )
    }
  }
  return names.map((name, axis) => ({ index: unique(name), dim: first?.dims[axis] ?? '' }))
}
