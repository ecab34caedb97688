/** What a generated test must know about an op: the form of the rows in rules.ts. */
import type { Extents } from './ragged.js'
import type { Random } from './random.js'
import type { OpClass } from './tolerance.js'

export interface OpRule {
  /** `exact` ops equal their body on small integers; on other values they are `elsewhere`, `elementwise` by default. */
  readonly class: Exclude<OpClass, 'model'>
  readonly elsewhere?: Exclude<OpClass, 'model'>
  /** Length of the longest reduction. */
  readonly length?: (dims: Extents) => number
  /** Magnitude of the terms that cancel, 1 by default; 0 where every result is a product of positive terms. */
  readonly scale?: number
  /** Shortest row that is drawn from a normal distribution. Below it rows may hold equal values, where statistics are ill-conditioned. */
  readonly normalFrom?: number
  /** Extents that must follow from the others. */
  readonly extents?: Readonly<Record<string, (dims: Extents) => number>>
  /** Inputs that are indices or lengths. */
  readonly inputs?: Readonly<Record<string, (next: Random, dims: Extents, index: number) => number>>
  /** Attributes that must follow from the extents; the others keep their defaults. */
  readonly attrs?: Readonly<Record<string, (dims: Extents) => number>>
  /** The same where every sequence has this many rows, for measuring: generated tests draw ragged ones. */
  readonly sequences?: (rows: number) => Pick<OpRule, 'extents' | 'inputs' | 'attrs'>
  /** Longest row the kernel takes. */
  readonly longest?: number
  /** The dimension that takes every row length, where the widest buffer does not tell. */
  readonly row?: string
  /** Instances of an op that has many share the cases: each takes one in this many, another instance others. */
  readonly shared?: number
}
