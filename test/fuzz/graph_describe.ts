/** Descriptions of random graphs and their plans: plain data, printed as specs and evaluated in float64 as ops are. */
import type { Domain, DType, OpDesc } from './describe.js'

/** A storage type, or the type parameter that the whole graph has. */
export type GraphType = DType | 'T'

export interface ValueDesc {
  readonly name: string
  readonly dtype: GraphType
  /** Extents: dimensions, and products of two such as `h*d`. */
  readonly dims: readonly string[]
}

/** A value that is given from outside. */
export interface GivenDesc extends ValueDesc {
  readonly domain: Domain
  readonly isWeight: boolean
}

export type NodeDesc = ValueDesc &
  (
    | { readonly kind: 'op'; readonly op: OpDesc; readonly inputs: Readonly<Record<string, string>> }
    | { readonly kind: 'matmul'; readonly subscripts: string; readonly a: string; readonly b: string; readonly result?: DType }
    | { readonly kind: 'view'; readonly input: string }
  )

export interface GraphDesc {
  readonly name: string
  readonly family: string
  /** The type of `T`. */
  readonly main: 'f32' | 'f16' | 'bf16'
  readonly given: readonly GivenDesc[]
  readonly nodes: readonly NodeDesc[]
  readonly outputs: readonly string[]
  /** The nodes of attention, from its first matmul, or the append to its caches, to its last. */
  readonly core?: readonly string[]
  /** Nodes that do the same to different weights. */
  readonly stacks?: readonly (readonly string[])[]
  /** True where rows are those of sequences of different lengths, `b*s`: their input is called `lengths`, if there is one. */
  readonly isRagged?: boolean
}

/** The types a plan may store a value in, and values as int8: by scales that are measured, by rows, or weights alone by their matmuls. */
export interface StoredDesc {
  readonly edges: Readonly<Record<string, 'f32' | 'f16' | 'bf16'>>
  readonly values: readonly string[]
  readonly dynamic: readonly string[]
  readonly weightOnly: readonly string[]
}

export interface PlanDesc {
  readonly name: string
  readonly groups: readonly (readonly string[])[]
  /** Groups, by their place, that the matmul library computes. */
  readonly library: readonly number[]
  /** Stacks by name. */
  readonly stacked?: Readonly<Record<string, readonly string[]>>
  readonly isPacked?: boolean
  readonly stored?: StoredDesc
}

/** The values that a node reads. */
export function readBy(node: NodeDesc): readonly string[] {
  switch (node.kind) {
    case 'op':
      return Object.values(node.inputs)
    case 'matmul':
      return [node.a, node.b]
    case 'view':
      return [node.input]
  }
}

/** Every dimension of a graph. */
export const dimsOf = ({ given, nodes }: GraphDesc): readonly string[] => [
  ...new Set([...given, ...nodes].flatMap(({ dims }) => dims.flatMap((extent) => extent.split('*')))),
]

/** The length of an extent. */
export const extentOf = (extent: string, sizes: Readonly<Record<string, number>>): number =>
  extent.split('*').reduce((size, dim) => size * (sizes[dim] ?? 1), 1)
