/**
 * Declaring a model layer as a graph of ops and matmuls. The build function runs once, with symbolic tensors; what it
 * returns names the nodes (by the keys of `nodes`), so plans can refer to them with checked names.
 */
import { usageError } from '../errors.js'
import { dtypeInfo, isDType } from '../ir/dtype.js'
import { type AttrValue, type Graph, type GraphNode, type GraphValue, outputsOf, type Scale, type ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import { inherited, isInherited, own } from '../ir/own.js'
import { multiplyExtents, parseExtent, parseShape, printShape, type Shape, sameExtent } from '../ir/shape.js'
import type { LayoutDecl } from './layout.js'
import type { Op, TensorDecl, Tensors } from './types.js'

/** A value inside a graph under construction. */
export interface GraphTensor {
  readonly value: ValueId
}

type Handles<T extends Tensors> = { readonly [K in keyof T]: GraphTensor }

export interface GraphConfig<I extends Tensors, W extends Tensors, A extends string, N extends string, O extends string> {
  readonly inputs: I
  readonly weights: W
  readonly attrs?: readonly A[]
  /** Attributes that are scales of values: calibration supplies them, by what it knows the value as. */
  readonly scales?: { readonly [K in A]?: Scale }
  /** Dimensions the graph is usually run with: what plans are priced for, and what kernels may be compiled for besides any size. */
  readonly typical?: Readonly<Record<string, number>>
  readonly build: (
    builder: GraphBuilder,
    inputs: Handles<I>,
    weights: Handles<W>,
    attrs: { readonly [K in A]: AttrValue },
  ) => { readonly nodes: { readonly [K in N]: GraphTensor }; readonly outputs: { readonly [K in O]: GraphTensor } }
}

/** What a program has to know of a graph to apply it. */
export interface GraphSignature {
  readonly inputs: Tensors
  readonly weights: readonly string[]
  readonly attrs: readonly string[]
  readonly outputs: readonly string[]
}

export interface GraphDecl<N extends string = string, I extends string = string, S extends GraphSignature = GraphSignature> {
  readonly name: string
  readonly graph: Graph
  /** These carry the names of nodes and inputs in the type. */
  readonly nodes: readonly N[]
  readonly inputs: readonly I[]
  readonly signature: S
}

/** The signature of a graph with these inputs, and with weights, attributes and outputs of these names. */
export interface SignatureOf<I extends Tensors, W extends string, A extends string, O extends string> extends GraphSignature {
  readonly inputs: I
  readonly weights: readonly W[]
  readonly attrs: readonly A[]
  readonly outputs: readonly O[]
}

/** What a matmul stores, where it is not what follows from its factors. */
export interface MatmulResult {
  /** A storage type or a type parameter: `i32` of int8 factors, or a float type. */
  readonly result?: string
  readonly layout?: LayoutDecl
}

const dtypeRef = (type: string): DTypeRef => (isDType(type) ? type : { param: type })

const pending = ''

const isInteger = (dtype: DTypeRef): boolean => typeof dtype === 'string' && dtypeInfo[dtype].scalar === 'i32'

/** The storage type of a matmul's result. @throws usage `graph.dtype` */
function resultType(subscripts: string, a: DTypeRef, b: DTypeRef, result: string | undefined): DTypeRef {
  const named = (dtype: DTypeRef): string => (typeof dtype === 'string' ? dtype : dtype.param)
  const refuse = (problem: string, hint: string) => usageError('graph.dtype', `"${subscripts}": ${problem}`, { hint })
  const integer = [a, b].find(isInteger)
  if (integer !== undefined)
    throw refuse(`a factor is stored as ${named(integer)}`, 'factors are floats or i8: convert it by an op of its own')
  const whole = a === 'i8' && b === 'i8'
  const wanted = result === undefined ? undefined : dtypeRef(result)
  if (wanted === undefined) {
    if (whole) return 'i32'
    if (named(a) === named(b)) return a
    throw refuse(`the factors are stored as ${named(a)} and ${named(b)}`, "say what the result is stored as: { result: 'f32' }")
  }
  if (wanted === 'i8' || wanted === 'u8') throw refuse(`sums do not fit ${wanted}`, 'quantise them by an op behind the matmul')
  if (wanted === 'i32' && !whole) throw refuse('sums of floats are stored as i32', "write { result: 'f32' }, and round by an op")
  return wanted
}

/** What a build function calls: one method per kind of node. */
export class GraphBuilder {
  readonly values: GraphValue[] = []
  readonly nodes: GraphNode[] = []

  /** Adds a value that no node computes: a graph input or a weight. */
  declare(decl: TensorDecl): GraphTensor {
    return this.#value({ dtype: dtypeRef(decl.type), shape: parseShape(decl.dims), layout: decl.layout?.name ?? 'row' })
  }

  /**
   * Applies an op. Its dimensions are bound to the extents of its inputs, and those no input has to `extents`; likewise its type
   * parameters, and those no input has to `results`.
   * @throws usage `graph.*` naming op, tensor and extents
   */
  apply<I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
    op: Op<I, O, A>,
    inputs: Handles<I>,
    attrs: { readonly [K in keyof A]?: AttrValue } = {},
    extents: Readonly<Record<string, string>> = {},
    results: Readonly<Record<string, string>> = {},
  ): Handles<O> {
    const dims: Record<string, Shape[number]> = Object.fromEntries(
      Object.entries(extents).map(([dim, extent]) => [dim, parseExtent(extent)]),
    )
    const types: Record<string, DTypeRef> = Object.fromEntries(
      Object.entries(results).map(([param, type]) => [param, dtypeRef(type)]),
    )
    const ids: Record<string, ValueId> = {}
    for (const [name, decl] of Object.entries<TensorDecl>(op.inputs)) {
      const handle = (inputs as Readonly<Record<string, GraphTensor>>)[name]
      if (handle === undefined) throw usageError('graph.input', `${op.name}: input ${name} is missing`)
      ids[name] = handle.value
      this.#bind(op.name, name, decl, this.at(handle), dims, types)
    }
    const outputs: Record<string, GraphTensor> = {}
    for (const [name, decl] of Object.entries<TensorDecl>(op.outputs)) {
      const shape = parseShape(decl.dims).map((extent) => {
        const bound = extent.dims.length === 1 && extent.factor === 1 ? dims[extent.dims[0] ?? ''] : undefined
        if (bound === undefined)
          throw usageError('graph.output', `${op.name}: no input fixes dimension "${decl.dims}" of output ${name}`)
        return bound
      })
      const ref = dtypeRef(decl.type)
      const dtype = typeof ref === 'string' ? ref : types[ref.param]
      if (dtype === undefined)
        throw usageError('graph.output', `${op.name}: no input fixes the storage type ${decl.type} of output ${name}`)
      outputs[name] = this.#value({ dtype, shape, layout: decl.layout?.name ?? 'row' })
    }
    this.nodes.push({
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
   * Multiplies two tensors over named axes, as in `matmul('m k, n k -> m n', x, w)`: the names say which axis is which, in any order.
   * Accumulates in float32, or of two int8 tensors in int32. The result is row-major and has the type of the factors, of int8 `i32`, unless
   * something else is asked for.
   * @throws usage `graph.matmul` for subscripts that do not fit, `graph.dtype` for types that are not multiplied or stored so
   */
  matmul(subscripts: string, a: GraphTensor, b: GraphTensor, wanted: LayoutDecl | MatmulResult = {}): GraphTensor {
    const { layout, result }: MatmulResult = 'name' in wanted ? { layout: wanted } : wanted
    const match = /^([\w ]+), ([\w ]+) -> ([\w ]+)$/.exec(subscripts)
    const [sa, sb, so] = [match?.[1], match?.[2], match?.[3]].map((part) => part?.split(' ') ?? [])
    if (sa === undefined || sb === undefined || so === undefined || match === null) {
      throw usageError('graph.matmul', `"${subscripts}" is not a matmul`, { hint: "write 'm k, n k -> m n'" })
    }
    const axes: Record<string, Shape[number]> = {}
    for (const [names, handle] of [
      [sa, a],
      [sb, b],
    ] as const) {
      const { shape } = this.at(handle)
      if (names.length !== shape.length) {
        throw usageError(
          'graph.matmul',
          `"${subscripts}": ${names.join(' ')} has ${names.length} axes, the tensor "${printShape(shape)}" has ${shape.length}`,
        )
      }
      names.forEach((axis, i) => {
        const extent = shape[i]
        if (extent === undefined) return
        const known = own(axes, axis)
        if (known !== undefined && !sameExtent(known, extent)) {
          throw usageError(
            'graph.matmul',
            `"${subscripts}": axis ${axis} has extents ${printShape([known])} and ${printShape([extent])}`,
          )
        }
        axes[axis] = extent
      })
    }
    const shape = so.map((axis) => {
      const extent = own(axes, axis)
      if (extent === undefined)
        throw usageError('graph.matmul', `"${subscripts}": axis ${axis} of the result is in neither operand`)
      return extent
    })
    const dtype = resultType(subscripts, this.at(a).dtype, this.at(b).dtype, result)
    const out = this.#value({ dtype, shape, layout: layout?.name ?? 'row' })
    this.nodes.push({
      kind: 'matmul',
      name: pending,
      a: a.value,
      b: b.value,
      out: out.value,
      subscripts: { a: sa, b: sb, out: so },
    })
    return out
  }

  /** The same elements under another shape. Both must be row-major and of equal size. */
  view(input: GraphTensor, dims: string): GraphTensor {
    const from = this.at(input)
    const shape = parseShape(dims)
    if (!sameExtent(multiplyExtents(from.shape), multiplyExtents(shape))) {
      throw usageError('graph.view', `"${printShape(from.shape)}" cannot be viewed as "${dims}": the sizes differ`)
    }
    if (from.layout !== 'row') throw usageError('graph.view', `a value in layout ${from.layout} cannot be viewed as "${dims}"`)
    const out = this.#value({ dtype: from.dtype, shape, layout: 'row' })
    this.nodes.push({ kind: 'view', name: pending, input: input.value, out: out.value })
    return out
  }

  at(handle: GraphTensor): GraphValue {
    const value = this.values[handle.value]
    if (value === undefined) throw new Error(`internal: value ${handle.value} is not of this graph`)
    return value
  }

  #value(value: GraphValue): GraphTensor {
    this.values.push(value)
    return { value: this.values.length - 1 }
  }

  #bind(
    op: string,
    name: string,
    decl: TensorDecl,
    actual: GraphValue,
    dims: Record<string, Shape[number]>,
    types: Record<string, DTypeRef>,
  ): void {
    const wanted = decl.dims === '' ? [] : decl.dims.split(' ')
    if (wanted.length !== actual.shape.length) {
      throw usageError('graph.rank', `${op}: ${name} is "${decl.dims}", the value given is "${printShape(actual.shape)}"`, {
        hint: 'use view() to give it another shape',
      })
    }
    wanted.forEach((dim, i) => {
      const extent = actual.shape[i]
      if (extent === undefined) return
      const bound = own(dims, dim)
      if (bound !== undefined && !sameExtent(bound, extent)) {
        throw usageError(
          'graph.shape',
          `${op}: dimension ${dim} of ${name} is ${printShape([extent])}, but ${printShape([bound])} elsewhere`,
        )
      }
      dims[dim] = extent
    })
    const layout = decl.layout?.name ?? 'row'
    if (layout !== actual.layout)
      throw usageError('graph.layout', `${op}: ${name} must be in layout ${layout}, the value given is in ${actual.layout}`)
    const ref = dtypeRef(decl.type)
    if (typeof ref === 'string') {
      if (ref !== actual.dtype)
        throw usageError('graph.dtype', `${op}: ${name} must be ${ref}, the value given is ${JSON.stringify(actual.dtype)}`)
      return
    }
    const known = own(types, ref.param)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(actual.dtype)) {
      throw usageError(
        'graph.dtype',
        `${op}: storage type ${ref.param} of ${name} is ${JSON.stringify(actual.dtype)}, but ${JSON.stringify(known)} elsewhere`,
      )
    }
    types[ref.param] = actual.dtype
  }
}

/**
 * Declares a graph. `build` receives the builder, the inputs, the weights and the attributes, and returns the nodes it
 * wants to name and the outputs. Dimensions are the names in the shapes; `h*d` is a product.
 */
export function graph<
  const I extends Tensors,
  const W extends Tensors,
  const N extends string,
  const O extends string,
  const A extends string = never,
>(name: string, config: GraphConfig<I, W, A, N, O>): GraphDecl<N, keyof I & string, SignatureOf<I, keyof W & string, A, O>> {
  const attrNames: readonly A[] = config.attrs ?? []
  checkNames(name, [name, ...Object.keys(config.inputs), ...Object.keys(config.weights), ...attrNames])
  const builder = new GraphBuilder()
  const declareAll = <T extends Tensors>(decls: T): Handles<T> =>
    Object.fromEntries(Object.entries<TensorDecl>(decls).map(([key, decl]) => [key, builder.declare(decl)])) as Handles<T>
  const ids = (handles: Readonly<Record<string, GraphTensor>>): Record<string, ValueId> =>
    Object.fromEntries(Object.entries(handles).map(([key, handle]) => [key, handle.value]))

  const inputs = declareAll(config.inputs)
  const weights = declareAll(config.weights)
  const attrs = Object.fromEntries(attrNames.map((attr) => [attr, { attr }])) as unknown as { readonly [K in A]: AttrValue }
  const built = config.build(builder, inputs, weights, attrs)
  checkTypical(name, builder.values, config.typical)
  checkNames(name, [...Object.keys(built.nodes), ...Object.keys(built.outputs)])
  const nodes = nameNodes(name, builder.nodes, ids(built.nodes))
  return {
    name,
    nodes: Object.keys(built.nodes) as N[],
    inputs: Object.keys(config.inputs) as (keyof I & string)[],
    signature: {
      inputs: config.inputs,
      weights: Object.keys(config.weights) as (keyof W & string)[],
      attrs: attrNames,
      outputs: Object.keys(built.outputs) as O[],
    },
    graph: {
      name,
      values: builder.values,
      nodes,
      inputs: ids(inputs),
      weights: ids(weights),
      outputs: ids(built.outputs),
      attrs: attrNames,
      ...(config.scales === undefined ? {} : { scales: config.scales as Readonly<Record<string, Scale>> }),
      ...(config.typical === undefined ? {} : { typical: config.typical }),
    },
  }
}

/** @throws usage `graph.typical` for what is no dimension of the graph, and for an extent that is none */
function checkTypical(name: string, values: readonly GraphValue[], typical: Readonly<Record<string, number>> = {}): void {
  const dims = new Set(values.flatMap(({ shape }) => shape.flatMap((extent) => extent.dims)))
  for (const [dim, extent] of Object.entries(typical)) {
    if (dims.has(dim) && Number.isInteger(extent) && extent > 0) continue
    const what = dims.has(dim) ? `${dim} cannot be ${extent}` : `it has no dimension ${dim}`
    throw usageError('graph.typical', `${name}: ${what}`, { hint: `dimensions are ${[...dims].join(', ')}` })
  }
}

/** Refuses names that tell nothing from what every object has. */
function checkNames(graphName: string, names: readonly string[]): void {
  const found = names.find(isInherited)
  if (found !== undefined)
    throw usageError('graph.name', `${graphName}: "${found}" is not a name: ${inherited.reason}`, { hint: inherited.hint })
}

/** Gives each node the key its result was returned under. Views need no name. */
function nameNodes(graphName: string, nodes: readonly GraphNode[], names: Readonly<Record<string, ValueId>>): GraphNode[] {
  return nodes.map((node, position) => {
    const found = Object.entries(names).find(([, id]) => outputsOf(node).includes(id))
    if (found === undefined && node.kind !== 'view') {
      const what = node.kind === 'op' ? node.op : 'matmul'
      throw usageError('graph.name', `${graphName}: node ${position} (${what}) has no name`, {
        hint: 'return its result under a key of `nodes`',
      })
    }
    return { ...node, name: found?.[0] ?? `view${position}` }
  })
}
