/** A graph under construction: values, nodes and one kernel written as IR per op. Names carry no meaning, as no pass may read them. */
import { randomFrom } from '../../../src/fuse/check/inputs.js'
import { dim, index } from '../../../src/ir/build.js'
import type { DType } from '../../../src/ir/dtype.js'
import type { Expr } from '../../../src/ir/expr.js'
import type { Graph, GraphNode, GraphValue, ValueId } from '../../../src/ir/graph.js'
import type { DTypeRef, Kernel, Stmt, TensorParam } from '../../../src/ir/kernel.js'
import { rowMajor } from '../../../src/ir/layout.js'
import { parseShape, printShape } from '../../../src/ir/shape.js'

/** Draws that a seed decides. */
export class Random {
  readonly next: () => number

  constructor(seed: number) {
    this.next = randomFrom(seed)
  }

  below(limit: number): number {
    return Math.floor(this.next() * limit)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<T>(list: readonly T[]): T {
    const found = list[this.below(list.length)]
    if (found === undefined) throw new Error('nothing to pick from')
    return found
  }

  shuffle<T>(list: readonly T[]): T[] {
    return list
      .map((item) => [this.next(), item] as const)
      .sort(([a], [b]) => a - b)
      .map(([, item]) => item)
  }
}

/** Elements of an input: floats with signs, lengths from 0 to the whole extent, or one of three documents. */
export type Content = 'float' | 'length' | 'id'

/** A tensor an op reads: the value, and the kernel's dimension of each of its axes. */
export interface Read {
  readonly value: ValueId
  readonly dims: readonly string[]
}

/** Loads an element of a tensor. */
export type At = (...indices: readonly Expr[]) => Expr

/** An op's own view of itself: its tensors by name, and its dimensions. */
export interface OpDraft {
  /** Dimensions of the result, by the kernel's names, and the corresponding ones of the graph. */
  readonly over: readonly string[]
  readonly extents: Readonly<Record<string, string>>
  readonly reads: Readonly<Record<string, Read>>
  /** Statements up to the stores, given the indices of the rows. */
  readonly body: (given: Readonly<Record<string, At>>, at: Readonly<Record<string, Expr>>) => readonly Stmt[]
}

export const T = { param: 'T' } as const
const floats: readonly DType[] = ['f32', 'f16', 'bf16']

export class Draft {
  readonly values: GraphValue[] = []
  readonly nodes: GraphNode[] = []
  readonly inputs: Record<string, ValueId> = {}
  readonly contents = new Map<ValueId, Content>()
  readonly kernels = new Map<string, Kernel>()
  readonly outputs: Record<string, ValueId> = {}

  value(shape: string, dtype: DTypeRef = T): ValueId {
    this.values.push({ dtype, shape: parseShape(shape), layout: 'row' })
    return this.values.length - 1
  }

  input(shape: string, content: Content = 'float'): ValueId {
    const id = this.value(shape, content === 'float' ? T : 'i32')
    this.inputs[`in${id}`] = id
    this.contents.set(id, content)
    return id
  }

  shapeOf(id: ValueId): string {
    return printShape(this.values[id]?.shape ?? [])
  }

  /** Adds an op that stores one result `y`. */
  op({ over, extents, reads, body }: OpDraft): ValueId {
    const name = `op${this.nodes.length}`
    const rows = over.slice(0, -1).map((each) => ({ index: `${each}1`, dim: each }))
    const out = this.value(over.map((each) => extents[each] ?? each).join(' '))
    const tensors: TensorParam[] = Object.entries(reads).map(([param, { value, dims }]) => ({
      name: param,
      access: 'in',
      dtype: this.values[value]?.dtype ?? T,
      dims,
      layout: rowMajor(dims),
    }))
    const given: Record<string, At> = {}
    for (const [param, { value }] of Object.entries(reads)) {
      const type = this.values[value]?.dtype === 'i32' ? 'i32' : 'f32'
      given[param] = (...indices) => ({ kind: 'load', type, tensor: param, indices })
    }
    const at = Object.fromEntries(rows.map((row) => [row.dim, index(row.index)]))
    const dims = [...new Set([...over, ...Object.values(reads).flatMap((read) => read.dims)])]
    this.kernels.set(name, {
      name,
      source: { file: 'specs/ops.ts', line: 1, column: 1 },
      dims,
      types: { T: floats },
      attrs: [],
      tensors: [...tensors, { name: 'y', access: 'out', dtype: T, dims: over, layout: rowMajor(over) }],
      rows,
      body: body(given, at),
    })
    const inputs = Object.fromEntries(Object.entries(reads).map(([param, { value }]) => [param, value]))
    this.nodes.push({ kind: 'op', name, op: name, types: { T }, inputs, outputs: { y: out }, attrs: {} })
    return out
  }

  /** Adds an elementwise op: each element of the result as an expression of its indices. */
  each(
    over: readonly string[],
    extents: Readonly<Record<string, string>>,
    reads: Readonly<Record<string, Read>>,
    value: (given: Readonly<Record<string, At>>, at: Readonly<Record<string, Expr>>) => Expr,
  ): ValueId {
    const last = over.at(-1) ?? ''
    return this.op({
      over,
      extents,
      reads,
      body: (given, at) => [
        {
          kind: 'storeRow',
          tensor: 'y',
          rows: over.slice(0, -1).map((each) => at[each] ?? index(each)),
          length: dim(last),
          index: `${last}1`,
          value: value(given, { ...at, [last]: index(`${last}1`) }),
        },
      ],
    })
  }

  matmul(text: string, a: ValueId, b: ValueId): ValueId {
    const [left = '', out = ''] = text.split('->')
    const [first = '', second = ''] = left.split(',')
    const axes = (part: string): string[] => part.trim().split(/\s+/)
    const subscripts = { a: axes(first), b: axes(second), out: axes(out) }
    const extents = new Map<string, string>()
    for (const [names, id] of [
      [subscripts.a, a],
      [subscripts.b, b],
    ] as const)
      this.shapeOf(id)
        .split(' ')
        .forEach((extent, at) => {
          extents.set(names[at] ?? '', extent)
        })
    const made = this.value(subscripts.out.map((axis) => extents.get(axis) ?? '').join(' '))
    this.nodes.push({ kind: 'matmul', name: `mm${this.nodes.length}`, a, b, out: made, subscripts })
    return made
  }

  view(input: ValueId, shape: string): ValueId {
    const out = this.value(shape)
    this.nodes.push({ kind: 'view', name: `view${this.nodes.length}`, input, out })
    return out
  }

  output(id: ValueId): void {
    this.outputs[`out${id}`] = id
  }

  graph(): Graph {
    const { values, nodes, inputs, outputs } = this
    return { name: 'drawn', values, nodes, inputs, weights: {}, outputs, attrs: [] }
  }

  /** Names of the nodes that groups may have, in order. */
  members(): string[] {
    return this.nodes.flatMap(({ kind, name }) => (kind === 'view' ? [] : [name]))
  }
}

/** A random graph with a plan, and the data to run it. */
export interface Case {
  readonly family: string
  readonly seed: number
  readonly draft: Draft
  readonly groups: readonly (readonly string[])[]
  readonly dims: Readonly<Record<string, number>>
  /** Softmax of attention: the logits that it reads and the weights that it returns, both with the extent of the scores last. */
  readonly masked?: { readonly logits: ValueId; readonly weights: ValueId } | undefined
  /** Groups that become library matmuls. */
  readonly library?: readonly string[]
}
