/**
 * Builder that a graph's build function calls: one method per kind of node. Each checks its operands when it is called, so that errors are
 * reported at the author's line.
 */
import { concerning, type HeddleError, inTurn, usageError, type Written } from '../errors.js'
import { getOwn } from '../ir/get_own.js'
import type { AttrValue, GraphNode, GraphValue, ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import { multiplyExtents, parseExtent, parseShape, printExtent, printShape, type Shape, sameExtent } from '../ir/shape.js'
import { expectArguments, expectParts } from './arguments.js'
import { fixedExtent } from './graph_extents.js'
import { bindInput, dtypeRef, productOf } from './graph_nodes.js'
import { type GraphTensor, Unknowns } from './graph_unknown.js'
import { type LayoutDecl, UsedLayouts } from './layout.js'
import type { Op, TensorDecl, Tensors } from './types.js'
import { writtenAt } from './written.js'

export type Handles<T extends Tensors> = { readonly [K in keyof T]: GraphTensor }

/** Storage form of a matmul's result, if it does not follow from its factors. */
export interface MatmulResult {
  /** A storage type or a type parameter: `i32` of int8 factors, or a float type. */
  readonly result?: string
  readonly layout?: LayoutDecl
}

const pending = ''

/** Refusals of unknown inputs or attributes of an op, one for each: usage `graph.input`, `graph.attribute`. */
function others(op: string, what: 'input' | 'attribute', given: object, known: object): (() => never)[] {
  const names = Object.keys(known)
  const hint = names.length === 0 ? `it has no ${what}s` : `it has ${names.join(', ')}`
  return Object.keys(given).flatMap((other) =>
    Object.hasOwn(known, other)
      ? []
      : () => {
          throw usageError(`graph.${what}`, `${op} has no ${what} ${other}`, { hint, about: { path: [other] } })
        },
  )
}

/** Value of an extent that is one dimension of an op, as its inputs or its facts fix it. */
function boundBy(
  { factor, dims }: Shape[number],
  op: Op,
  bound: Readonly<Record<string, Shape[number]>>,
): Shape[number] | undefined {
  const [dim = ''] = dims
  return dims.length === 1 && factor === 1 ? (getOwn(bound, dim) ?? fixedExtent(op, dim, bound)) : undefined
}

/** @param types known type parameters */
function untyped({ name, outputs }: Op, output: string, types: Readonly<Record<string, DTypeRef>>): HeddleError {
  const params = [...new Set(Object.values<TensorDecl>(outputs).map(({ type }) => dtypeRef(type)))]
  const free = params.flatMap((ref) => (typeof ref === 'string' || types[ref.param] !== undefined ? [] : [ref.param]))
  const type = outputs[output]?.type
  return usageError('graph.output', `${name}: no input fixes the storage type ${type} of output ${output}`, {
    hint: `pass types as the fifth argument of apply: g.apply(op, inputs, {}, {}, { ${free.map((param) => `${param}: '...'`).join(', ')} })`,
  })
}

/** @param free extents that no input fixes @param of the output that has them */
function unfixed(op: string, free: readonly string[], of: string): HeddleError {
  const what = free.length === 1 ? 'dimension' : 'dimensions'
  return usageError('graph.output', `${op}: no input fixes ${what} ${free.join(', ')}, of ${of}`, {
    hint: `pass extents as the fourth argument of apply: g.apply(op, inputs, {}, { ${free.map((name) => `${name}: '...'`).join(', ')} })`,
  })
}

/** Builder of a graph: one method per kind of node. */
export class GraphBuilder {
  /** Ops applied so far, by name. */
  readonly ops = new Map<string, Op>()
  /** Layouts of the values so far. */
  readonly layouts = new UsedLayouts()
  readonly values: GraphValue[] = []
  readonly nodes: GraphNode[] = []
  /** Source location of each node. */
  readonly written: Written[] = []
  /** Index of each node among all requested nodes, from 0; refused ones have no entry. */
  readonly positions: number[] = []
  readonly #made = new WeakSet<GraphTensor>()
  readonly #unknowns: Unknowns
  #requested = 0

  /** @param unknowns continues after an error if it collects them; otherwise the first ends the build */
  constructor(unknowns = new Unknowns(false)) {
    this.#unknowns = unknowns
  }

  /** Handle of a value that was added to `values`, to extend an existing graph. */
  adopt(value: ValueId): GraphTensor {
    const handle = { value }
    this.#made.add(handle)
    return handle
  }

  /** Adds a value that no node computes: an input or a weight of the graph. */
  declare(decl: TensorDecl): GraphTensor {
    return this.#value({ dtype: dtypeRef(decl.type), shape: parseShape(decl.dims), layout: this.layouts.nameOf(decl.layout) })
  }

  /**
   * Applies an op. Its dimensions are bound to the extents of its inputs, and those that no input has to `extents`; likewise its type
   * parameters, and those that no input has to `results`.
   * @throws usage `graph.*` naming op, tensor and extents
   */
  apply<I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
    op: Op<I, O, A>,
    inputs: Handles<I>,
    attrs: { readonly [K in keyof A]?: AttrValue } = {},
    extents: Readonly<Record<string, string>> = {},
    results: Readonly<Record<string, string>> = {},
  ): Handles<O> {
    expectArguments('graph.config', 'apply', this.apply, {
      op: [op, 'op'],
      inputs: [inputs, 'record'],
      attrs: [attrs, 'record'],
      extents: [extents, 'textsByName'],
      results: [results, 'textsByName'],
    })
    return this.#node(
      () => this.#applied(op, inputs, attrs, extents, results),
      (because) => Object.fromEntries(Object.keys(op.outputs).map((name) => [name, this.#unknowns.make(because)])) as Handles<O>,
    )
  }

  #applied<I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
    op: Op<I, O, A>,
    inputs: Handles<I>,
    attrs: { readonly [K in keyof A]?: AttrValue },
    extents: Readonly<Record<string, string>>,
    results: Readonly<Record<string, string>>,
  ): Handles<O> | undefined {
    const dims: Record<string, Shape[number]> = Object.fromEntries(
      Object.entries(extents).map(([dim, extent]) => [dim, concerning({ path: [dim] }, () => parseExtent(extent))]),
    )
    const types: Record<string, DTypeRef> = Object.fromEntries(
      Object.entries(results).map(([param, type]) => [param, dtypeRef(type)]),
    )
    const ids: Record<string, ValueId> = {}
    const given = inputs as Readonly<Record<string, GraphTensor>>
    const wanted = Object.entries<TensorDecl>(op.inputs)
    const missing = wanted.filter(([name]) => given[name] === undefined)
    inTurn([
      ...missing.map(([name]) => () => {
        throw usageError('graph.input', `${op.name}: input ${name} is missing`)
      }),
      // An input under a wrong name is also missing under the right one, which is reported first.
      ...(missing.length > 0 ? [] : others(op.name, 'input', given, op.inputs)),
      ...others(op.name, 'attribute', attrs, op.attrs),
      // Each shape is checked against the dimensions that those before it have fixed.
      ...wanted.map(([name, decl]) => () => {
        const handle = given[name]
        if (handle === undefined || this.#unknowns.has(handle)) return
        concerning({ path: [name] }, () => bindInput(op.name, name, decl, this.at(handle), dims, types))
        ids[name] = handle.value
      }),
    ])
    this.ops.set(op.name, op as unknown as Op)
    if (Object.values(given).some(this.#unknowns.has)) return undefined
    const outputs: Record<string, GraphTensor> = {}
    for (const [name, decl] of Object.entries<TensorDecl>(op.outputs)) {
      const extents = parseShape(decl.dims).map((extent) => ({ extent, bound: boundBy(extent, op, dims) }))
      const free = extents.flatMap(({ extent, bound }) => (bound === undefined ? [printExtent(extent)] : []))
      if (free.length > 0) throw unfixed(op.name, free, `"${decl.dims}" of output ${name}`)
      const shape = extents.flatMap(({ bound }) => bound ?? [])
      const ref = dtypeRef(decl.type)
      const dtype = typeof ref === 'string' ? ref : types[ref.param]
      if (dtype === undefined) throw untyped(op, name, types)
      outputs[name] = this.#value({ dtype, shape, layout: this.layouts.nameOf(decl.layout) })
    }
    this.#add(this.apply, {
      kind: 'op',
      name: pending,
      op: op.name,
      types,
      inputs: ids,
      outputs: Object.fromEntries(Object.entries(outputs).map(([name, handle]) => [name, handle.value])),
      attrs: attrs as Readonly<Record<string, AttrValue>>,
    })
    return outputs as Handles<O>
  }

  /**
   * Multiplies two tensors over named axes, as in `matmul('m k, n k -> m n', x, w)`: the names identify the axes, in any order.
   * Accumulates in float32, or for two int8 tensors in int32. The result is row-major and has the type of the factors, `i32` for int8,
   * unless `wanted` says otherwise.
   * @throws usage `graph.matmul` for subscripts that do not fit, `graph.dtype` for unsupported types of factors or results
   */
  matmul(subscripts: string, a: GraphTensor, b: GraphTensor, wanted: LayoutDecl | MatmulResult = {}): GraphTensor {
    expectArguments('graph.config', 'matmul', this.matmul, { subscripts: [subscripts, 'text'], result: [wanted, 'record'] })
    const { layout, result }: MatmulResult = 'name' in wanted ? { layout: wanted } : wanted
    if (!('name' in wanted)) expectParts('graph.config', 'result of matmul', this.matmul, ['result', 'layout'], wanted)
    expectArguments('graph.config', 'matmul', this.matmul, { layout: [layout, 'layout?'], result: [result, 'text?'] })
    return this.#node(() => {
      const made = concerning({ path: [subscripts] }, () => productOf(subscripts, this.#known(a), this.#known(b), result))
      if (made === undefined) return undefined
      const out = this.#value({ dtype: made.dtype, shape: made.shape, layout: this.layouts.nameOf(layout) })
      const { subscripts: axes } = made
      this.#add(this.matmul, { kind: 'matmul', name: pending, a: a.value, b: b.value, out: out.value, subscripts: axes })
      return out
    }, this.#unknowns.make)
  }

  /** The same elements under another shape. Both must be row-major and of equal size. */
  view(input: GraphTensor, dims: string): GraphTensor {
    expectArguments('graph.config', 'view', this.view, { dims: [dims, 'text'] })
    return this.#node(() => {
      const shape = concerning({ path: [dims] }, () => parseShape(dims))
      if (this.#unknowns.has(input)) return undefined
      const from = this.at(input)
      const about = { path: [dims] }
      if (!sameExtent(multiplyExtents(from.shape), multiplyExtents(shape))) {
        throw usageError('graph.view', `"${printShape(from.shape)}" cannot be viewed as "${dims}": the sizes differ`, { about })
      }
      if (from.layout !== 'row')
        throw usageError('graph.view', `a value in layout ${from.layout} cannot be viewed as "${dims}"`, { about })
      const out = this.#value({ dtype: from.dtype, shape, layout: 'row' })
      this.#add(this.view, { kind: 'view', name: pending, input: input.value, out: out.value })
      return out
    }, this.#unknowns.make)
  }

  /** @throws usage `graph.tensor` for anything but a tensor of this graph */
  at(handle: GraphTensor): GraphValue {
    const value = this.#made.has(handle) ? this.values[handle.value] : undefined
    if (value === undefined) {
      const what = handle === undefined ? 'expected a tensor, got undefined' : 'the tensor belongs to another graph'
      throw usageError('graph.tensor', what, { hint: 'use inputs and weights of this graph, and results of its nodes' })
    }
    return value
  }

  /** The value of a handle; undefined if it is unknown. */
  #known = (handle: GraphTensor): GraphValue | undefined => (this.#unknowns.has(handle) ? undefined : this.at(handle))

  #value(value: GraphValue): GraphTensor {
    this.values.push(value)
    return this.adopt(this.values.length - 1)
  }

  /** Result of a node; unknown if the node is refused or an operand is unknown. */
  #node<T>(action: () => T | undefined, unknown: (because?: readonly HeddleError[]) => T): T {
    const made = this.#unknowns.attempt(() => action() ?? unknown(), unknown)
    this.#requested++
    return made
  }

  #add(method: (...given: never[]) => unknown, node: GraphNode): void {
    this.nodes.push(node)
    this.positions.push(this.#requested)
    this.written.push(writtenAt(method))
  }
}
