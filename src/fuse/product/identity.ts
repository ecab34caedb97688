/**
 * An identity op. It stores the result of a matmul that is used outside the group in addition to the values computed from it, and views rows that are
 * computed for a matmul in the matmul's shape. It is a member of a group like any other, and disappears when bodies are merged.
 */
import { dim, index } from '../../ir/build.js'
import { dtypeInfo } from '../../ir/dtype.js'
import type { Graph, ValueId } from '../../ir/graph.js'
import type { Kernel } from '../../ir/kernel.js'
import { rowMajor } from '../../ir/layout.js'
import { valueAt } from '../graph/edit.js'
import type { Member } from '../space/space.js'

/** Storage types of a graph's type parameter where no op limits it. */
export const floatTypes = ['f32', 'f16', 'bf16'] as const

/** A member that copies `from` to `to`, two values of one shape and type. `axes` are the names of its dimensions. */
export function identityMember(graph: Graph, name: string, from: ValueId, to: ValueId, axes: readonly string[]): Member {
  const { dtype } = valueAt(graph.values, from)
  const rows = axes.slice(0, -1).map((axis) => ({ index: `i_${axis}`, dim: axis }))
  const last = axes.at(-1) ?? ''
  const type = typeof dtype === 'string' ? dtypeInfo[dtype].scalar : 'f32'
  const indices = [...rows.map((row) => index(row.index)), index('c')]
  const kernel: Kernel = {
    name,
    source: { file: graph.name, line: 1, column: 1 },
    dims: axes,
    types: typeof dtype === 'string' ? {} : { [dtype.param]: floatTypes },
    attrs: [],
    tensors: [
      { name: 'x', access: 'in', dtype, dims: axes, layout: rowMajor(axes) },
      { name: 'y', access: 'out', dtype, dims: axes, layout: rowMajor(axes) },
    ],
    rows,
    body: [
      {
        kind: 'storeRow',
        tensor: 'y',
        rows: indices.slice(0, -1),
        length: dim(last),
        index: 'c',
        value: { kind: 'load', type, tensor: 'x', indices },
      },
    ],
  }
  const types = typeof dtype === 'string' ? {} : { [dtype.param]: dtype }
  return { kernel, node: { kind: 'op', name, op: name, types, inputs: { x: from }, outputs: { y: to }, attrs: {} } }
}
