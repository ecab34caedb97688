/** Nodes of a known op, for passes over graphs: built and recognised by the op itself, with its own names of inputs and outputs. */
import type { AttrValue, GraphNode, NodeOf, ValueId } from '../ir/graph.js'
import type { DTypeRef } from '../ir/kernel.js'
import type { Op, Tensors } from './types.js'

type Values<T extends Tensors> = { readonly [K in keyof T & string]: ValueId }
type Attrs<A> = { readonly [K in keyof A & string]?: AttrValue }

interface Bound<I extends Tensors, O extends Tensors, A> {
  /** Storage types of the op's type parameters. */
  readonly types: Readonly<Record<string, DTypeRef>>
  readonly inputs: Values<I>
  readonly outputs: Values<O>
  /** Omitted attributes have the op's defaults. */
  readonly attrs: Attrs<A>
}

/** A node that applies an op. */
export type NodeOfOp<I extends Tensors, O extends Tensors, A> = NodeOf<'op'> & Bound<I, O, A>

/** Names of an op's inputs, as properties: `inputNames(op).x` is `'x'`. */
export const inputNames = <I extends Tensors>({ inputs }: { readonly inputs: I }): { readonly [K in keyof I & string]: K } =>
  Object.fromEntries(Object.keys(inputs).map((name) => [name, name])) as { readonly [K in keyof I & string]: K }

/** Makes a node that applies an op. */
export const opNode = <I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
  op: Op<I, O, A>,
  name: string,
  bound: Bound<I, O, A>,
): NodeOf<'op'> => ({
  kind: 'op',
  name,
  op: op.name,
  types: bound.types,
  inputs: bound.inputs,
  outputs: bound.outputs,
  attrs: attrsOf(bound.attrs),
})

const attrsOf = (attrs: Readonly<Record<string, AttrValue | undefined>>): Readonly<Record<string, AttrValue>> =>
  Object.fromEntries(Object.entries(attrs).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

/** True if a node applies an op. Ops of a project have unique names, those of the standard library qualified ones. */
export const isNodeOf = <I extends Tensors, O extends Tensors, A extends Readonly<Record<string, number>>>(
  op: Op<I, O, A>,
  node: GraphNode,
): node is NodeOfOp<I, O, A> => node.kind === 'op' && node.op === op.name
