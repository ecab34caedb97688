/** A graph under construction: its inputs, and its nodes. */
import type { Domain, DType, Result, Stmt } from './describe.js'
import { OpDraft } from './draft.js'
import type { GivenDesc, GraphDesc, GraphType, NodeDesc, ValueDesc } from './graph_describe.js'
import { pruned } from './prune.js'
import type { Random } from './random.js'

/** A graph under construction. */
export class GraphDraft {
  readonly random: Random
  readonly name: string
  readonly main: GraphDesc['main']
  readonly given: GivenDesc[] = []
  readonly nodes: NodeDesc[] = []
  core: readonly string[] = []
  readonly stacks: (readonly string[])[] = []
  isRagged = false

  constructor(random: Random, name: string) {
    this.random = random
    this.name = name
    this.main = random.pick(['f32', 'f32', 'f32', 'f16', 'f16', 'f16', 'bf16'])
  }

  #next(): string {
    return `n${this.nodes.length + 1}`
  }

  input(dims: readonly string[], dtype: GraphType = 'T', domain: Domain = { kind: 'unit' }, name?: string): ValueDesc {
    return this.#give(dims, dtype, domain, false, name)
  }

  weight(dims: readonly string[], dtype: GraphType = 'T', domain: Domain = { kind: 'unit' }): ValueDesc {
    return this.#give(dims, dtype, domain, true)
  }

  #give(dims: readonly string[], dtype: GraphType, domain: Domain, isWeight: boolean, name?: string): ValueDesc {
    // A tensor of the graph's own type is declared so.
    const own = dtype === this.main ? 'T' : dtype
    const made: GivenDesc = {
      name: name ?? `${isWeight ? 'w' : 'x'}${this.given.length + 1}`,
      dtype: own,
      dims,
      domain,
      isWeight,
    }
    this.given.push(made)
    return made
  }

  matmul(
    subscripts: string,
    a: ValueDesc,
    b: ValueDesc,
    dims: readonly string[],
    dtype: GraphType = 'T',
    result?: DType,
  ): ValueDesc {
    const node: NodeDesc = {
      kind: 'matmul',
      name: this.#next(),
      dtype,
      dims,
      subscripts,
      a: a.name,
      b: b.name,
      ...(result === undefined ? {} : { result }),
    }
    this.nodes.push(node)
    return node
  }

  view(input: ValueDesc, dims: readonly string[]): ValueDesc {
    const node: NodeDesc = { kind: 'view', name: this.#next(), dtype: input.dtype, dims, input: input.name }
    this.nodes.push(node)
    return node
  }

  /**
   * An op over all axes of the first value. The others have some of its last axes, or one axis by its name.
   * @param axes of each value, which of the first one's axes its own are
   */
  op(
    reads: readonly { readonly value: ValueDesc; readonly axes: readonly number[] }[],
    dtype: GraphType,
    make: (op: OpInside) => Made,
  ): ValueDesc {
    const [first] = reads
    if (first === undefined) throw new Error('an op of nothing')
    const dims = first.value.dims.map((_, axis) => `d${axis}`)
    const draft = new OpDraft(this.random)
    draft.smooth = true
    const typed = (type: GraphType): DType => (type === 'T' ? this.main : type)
    for (const dim of dims) draft.dim(dim)
    const names = reads.map(({ value, axes }) =>
      draft.input(
        axes.map((axis) => dims[axis] ?? ''),
        { dtype: typed(value.dtype), domain: { kind: 'unit' } },
      ),
    )
    // Layouts are a plan's, in graphs.
    for (const [at, input] of draft.inputs.entries()) {
      const { layout: _, ...plain } = input
      draft.inputs[at] = plain
    }
    const made = make({ draft, dims, names })
    const name = this.#next()
    const isParam = [...reads.map(({ value }) => value.dtype), dtype].includes('T')
    const op = pruned({
      name: `${this.name}_${name}`,
      family: 'graph',
      dims: draft.dims,
      ...(isParam ? { param: this.main } : {}),
      inputs: draft.inputs,
      // Nodes use the declared defaults of attributes.
      attrs: draft.attrs.map((attr) => ({ ...attr, given: attr.initial })),
      rows: dims.slice(0, made.isRow ? -1 : undefined).map((dim) => ({ index: `i_${dim}`, dim })),
      monoids: [],
      body: made.body ?? [],
      outputs: [
        {
          name: 'y',
          dtype: typed(dtype),
          dims: made.isReduced === true ? dims.slice(0, -1) : dims,
          result: made.result,
          ...(made.updates === undefined ? {} : { updates: made.updates }),
        },
      ],
    })
    const inputs = Object.fromEntries(
      names.flatMap((param, at) =>
        op.inputs.some((input) => input.name === param) ? [[param, reads[at]?.value.name ?? '']] : [],
      ),
    )
    const kept = made.isReduced === true ? first.value.dims.slice(0, -1) : first.value.dims
    const node: NodeDesc = { kind: 'op', name, dtype, dims: kept, op, inputs }
    this.nodes.push(node)
    return node
  }

  /** The op of a node once more, for other values with the same number of axes. @throws for a node that is not one of these ops */
  again(made: ValueDesc, reads: readonly { readonly value: ValueDesc }[]): ValueDesc {
    const of = this.nodes.find(({ name }) => name === made.name)
    const [first] = reads
    if (of?.kind !== 'op' || first === undefined) throw new Error(`${made.name} is no op of these`)
    const inputs = Object.fromEntries(Object.keys(of.inputs).map((param, at) => [param, reads[at]?.value.name ?? '']))
    const node: NodeDesc = { ...of, name: this.#next(), dims: first.value.dims, inputs }
    this.nodes.push(node)
    return node
  }
}

export interface OpInside {
  readonly draft: OpDraft
  readonly dims: readonly string[]
  readonly names: readonly string[]
}
export interface Made {
  readonly result: Result
  readonly body?: readonly Stmt[]
  readonly isRow?: boolean
  /** Set if the result is a number for each row. */
  readonly isReduced?: boolean
  /** The input that the result replaces. */
  readonly updates?: string
}
