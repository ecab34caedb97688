/**
 * Declaration of a model layer as a graph of ops and matmuls. The build function runs once, with symbolic tensors. Its
 * result names the nodes (by the keys of `nodes`), so that plans can refer to them with checked names.
 */
import { concerning, inTurn, together, usageError, type Written } from '../errors.js'
import { type AttrValue, type Graph, type GraphNode, outputsOf, type Scale, type ValueId } from '../ir/graph.js'
import { expectArguments, expectParts } from './arguments.js'
import { declaring, isCollected } from './collected.js'
import { GraphBuilder, type Handles } from './graph_builder.js'
import { checkDims, checkNames, expectRecords, noPart } from './graph_checks.js'
import { type GraphTensor, Unknowns } from './graph_unknown.js'
import type { NamedLayouts } from './layout.js'
import type { DimsOf, Op, TensorDecl, Tensors } from './types.js'
import { writtenAt } from './written.js'

export { GraphBuilder, type MatmulResult } from './graph_builder.js'
export type { GraphTensor } from './graph_unknown.js'

export interface GraphConfig<
  I extends Tensors,
  W extends Tensors,
  A extends string,
  N extends string,
  O extends string,
  D extends string = never,
> {
  readonly inputs: I
  readonly weights: W
  readonly attrs?: readonly A[]
  /** Attributes that are scales of values: calibration supplies them, by the site of the value. */
  readonly scales?: { readonly [K in A]?: Scale }
  /** Dimensions of nodes that no input or weight has: those whose extents are passed to `apply`. */
  readonly dims?: readonly D[]
  /**
   * Typical extents of dimensions: plans are priced for them, and kernels may be compiled for them in addition to any size. A loaded graph takes them
   * for the factors of an extent such as `b*s` that equals their product.
   */
  readonly typical?: { readonly [K in DimsOf<NoInfer<I>> | DimsOf<NoInfer<W>> | NoInfer<D>]?: number }
  readonly build: (
    builder: GraphBuilder,
    inputs: Handles<I>,
    weights: Handles<W>,
    attrs: { readonly [K in A]: AttrValue },
  ) => { readonly nodes: { readonly [K in N]: GraphTensor }; readonly outputs: { readonly [K in O]: GraphTensor } }
}

/** Signature of a graph, for programs that apply it. */
export interface GraphSignature {
  readonly inputs: Tensors
  readonly weights: readonly string[]
  readonly attrs: readonly string[]
  readonly outputs: readonly string[]
}

/** Signature of a graph with these inputs, and with weights, attributes and outputs of these names. */
export interface SignatureOf<I extends Tensors, W extends string, A extends string, O extends string> extends GraphSignature {
  readonly inputs: I
  readonly weights: readonly W[]
  readonly attrs: readonly A[]
  readonly outputs: readonly O[]
}

export interface GraphDecl<N extends string = string, I extends string = string, S extends GraphSignature = GraphSignature> {
  readonly name: string
  readonly graph: Graph
  /** Names of nodes and inputs, carried in the type. */
  readonly nodes: readonly N[]
  readonly inputs: readonly I[]
  readonly signature: S
  /** Ops that it uses, by name. */
  readonly ops?: Readonly<Record<string, Op>> | undefined
  /** Layouts of its values, by name. */
  readonly layouts?: NamedLayouts | undefined
  /** Source locations of the declaration and of each node. */
  readonly written?: { readonly call: Written; readonly nodes: Readonly<Record<string, Written>> } | undefined
}

/**
 * Declares a graph. `build` receives the builder, the inputs, the weights and the attributes, and returns the named
 * nodes and the outputs. Dimensions are the names in the shapes; `h*d` is a product.
 */
export function graph<
  const I extends Tensors,
  const W extends Tensors,
  const N extends string,
  const O extends string,
  const A extends string = never,
  const D extends string = never,
>(name: string, config: GraphConfig<I, W, A, N, O, D>): GraphDecl<N, keyof I & string, SignatureOf<I, keyof W & string, A, O>> {
  return declaring(
    () => declared(name, config),
    () => ({
      name,
      nodes: [],
      inputs: [],
      signature: { inputs: config?.inputs ?? ({} as I), weights: [], attrs: [], outputs: [] },
      graph: { name, values: [], nodes: [], inputs: {}, weights: {}, outputs: {}, attrs: [] },
    }),
  )
}

const parts = ['inputs', 'weights', 'attrs', 'scales', 'dims', 'typical', 'build']

type Untyped = { readonly [K in 'inputs' | 'weights' | 'attrs' | 'scales' | 'dims' | 'typical' | 'build']?: unknown }

/** Checks types of the configuration at run time. @throws usage `graph.config` */
function expectConfig(name: string, config: Untyped): void {
  expectArguments('graph.config', 'graph', graph, { name: [name, 'text'] })
  expectRecords(name, { config })
  expectParts('graph.config', `graph ${name}`, graph, parts, config)
  expectRecords(name, { inputs: config.inputs, weights: config.weights })
  if (typeof config.build !== 'function') throw noPart(name, 'build', 'build: (g, inputs, weights) => ({ nodes, outputs })')
  expectArguments('graph.config', `graph ${name}`, graph, {
    inputs: [config.inputs, 'tensors'],
    weights: [config.weights, 'tensors'],
    attrs: [config.attrs, 'texts?'],
    dims: [config.dims, 'texts?'],
    scales: [config.scales, 'record?'],
    typical: [config.typical, 'record?'],
  })
}

const declareAll = <T extends Tensors>(builder: GraphBuilder, unknowns: Unknowns, decls: T): Handles<T> =>
  Object.fromEntries(
    Object.entries<TensorDecl>(decls).map(([key, decl]) => [
      key,
      unknowns.attempt(() => concerning({ path: [key] }, () => builder.declare(decl)), unknowns.make),
    ]),
  ) as Handles<T>

/** @throws usage `graph.tensor` for anything but a tensor of the graph */
const idsOf = (builder: GraphBuilder, handles: Readonly<Record<string, GraphTensor>>): Record<string, ValueId> =>
  Object.fromEntries(
    Object.entries(handles).map(([key, handle]) => {
      concerning({ path: [key] }, () => builder.at(handle))
      return [key, handle.value]
    }),
  )

/** Tensors without those of refused nodes. */
const knownOf = (unknowns: Unknowns, handles: Readonly<Record<string, GraphTensor>>): Record<string, GraphTensor> =>
  Object.fromEntries(Object.entries(handles).filter(([, handle]) => !unknowns.has(handle)))

function declared<
  const I extends Tensors,
  const W extends Tensors,
  const N extends string,
  const O extends string,
  const A extends string,
  const D extends string,
>(name: string, config: GraphConfig<I, W, A, N, O, D>): GraphDecl<N, keyof I & string, SignatureOf<I, keyof W & string, A, O>> {
  expectConfig(name, config)
  const attrNames: readonly A[] = config.attrs ?? []
  checkNames(name, [name, ...Object.keys(config.inputs), ...Object.keys(config.weights), ...attrNames])
  const unknowns = new Unknowns(isCollected())
  const builder = new GraphBuilder(unknowns)
  const inputs = declareAll(builder, unknowns, config.inputs)
  const weights = declareAll(builder, unknowns, config.weights)
  const attrs = Object.fromEntries(attrNames.map((attr) => [attr, { attr }])) as unknown as { readonly [K in A]: AttrValue }
  const typical = config.typical as Readonly<Record<string, number>> | undefined
  const built = unknowns.ending(() => {
    const returned = config.build(builder, inputs, weights, attrs)
    expectRecords(name, { 'result of build': returned })
    expectRecords(name, { nodes: returned.nodes, outputs: returned.outputs })
    return returned
  })
  const made = unknowns.refused.length === 0
  // Dimensions of unknown values are unknown too.
  if (made) checkDims(name, builder.values, config.dims, typical)
  unknowns.name(built.nodes)
  unknowns.ending(() => checkNames(name, [...Object.keys(built.nodes), ...Object.keys(built.outputs)]))
  const nodes = unknowns.ending(() => nameNodes(name, builder, idsOf(builder, knownOf(unknowns, built.nodes))))
  if (!made) throw together(unknowns.refused)
  return {
    name,
    nodes: Object.keys(built.nodes) as N[],
    ops: Object.fromEntries(builder.ops),
    layouts: builder.layouts.all,
    inputs: Object.keys(config.inputs) as (keyof I & string)[],
    signature: {
      inputs: config.inputs,
      weights: Object.keys(config.weights) as (keyof W & string)[],
      attrs: attrNames,
      outputs: Object.keys(built.outputs) as O[],
    },
    written: {
      call: writtenAt(graph),
      nodes: Object.fromEntries(nodes.map((node, at) => [node.name, builder.written[at] ?? {}])),
    },
    graph: {
      name,
      values: builder.values,
      nodes,
      inputs: idsOf(builder, inputs),
      weights: idsOf(builder, weights),
      outputs: idsOf(builder, built.outputs),
      attrs: attrNames,
      ...(config.scales === undefined ? {} : { scales: config.scales as Readonly<Record<string, Scale>> }),
      ...(typical === undefined ? {} : { typical }),
    },
  }
}

/** Names each node by the key under which its result was returned. Views need no name. @throws usage `graph.name`, for all nodes without a name */
function nameNodes(graphName: string, builder: GraphBuilder, names: Readonly<Record<string, ValueId>>): GraphNode[] {
  const { nodes, written, positions } = builder
  const found = nodes.map((node) => Object.entries(names).find(([, id]) => outputsOf(node).includes(id))?.[0])
  inTurn(
    nodes.flatMap((node, at) => {
      if (found[at] !== undefined || node.kind === 'view') return []
      const what = node.kind === 'op' ? node.op : 'matmul'
      return () => {
        throw usageError('graph.name', `${graphName}: node ${positions[at]} (${what}) has no name`, {
          hint: 'return its result under a key of `nodes`',
          about: { written: written[at] },
        })
      }
    }),
  )
  return nodes.map((node, at) => ({ ...node, name: found[at] ?? `view${at}` }))
}
