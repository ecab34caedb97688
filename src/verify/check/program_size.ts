/** One size of a program: its extents by facts, and its drawn inputs, states and weights. Runs for each size of a program's check. */
import type { DType } from '../../ir/dtype.js'
import { constrained } from '../../ir/facts/constrained.js'
import type { Facts } from '../../ir/facts/facts.js'
import type { Graph, ValueId } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { evaluateExtent } from '../../ir/shape.js'
import type { CompiledProgram } from '../../program/index.js'
import type { WeightTensor } from '../../runtime/weight.js'
import { longestRagged, raggedLength, raggedRows } from '../ragged.js'
import { drawGiven, type Numbers } from './graph_values.js'
import type { GraphStage } from './graphs.js'

/** A program under a plan, and its nodes inlined into one graph, without any plan. */
export interface ProgramSubject {
  readonly name: string
  readonly plan: string
  readonly program: Program
  readonly compiled: CompiledProgram
  readonly inlined: Graph
  readonly facts: Facts
  /** Storage types that the plan's kernels are generated for; all if undefined. */
  readonly dtypes: readonly string[] | undefined
  /** Names of the nodes of `inlined` in each group of the plan, for each use of its graph. */
  readonly groups: readonly (readonly string[])[]
}

/** Extents assigned to the dimensions in turn, constrained by facts; sequences have room for the longest. */
export function sizesOf({ program, facts }: ProgramSubject, sizes: readonly number[]): Numbers {
  const names = Object.keys(program.dims).sort()
  const dims: Record<string, number> = Object.fromEntries(names.map((name, i) => [name, sizes[i % sizes.length] ?? 1]))
  for (const { batch, seq } of program.ragged) {
    const [name, ...others] = seq.dims
    if (name === undefined || others.length > 0 || batch.dims.includes(name)) continue
    dims[name] = Math.max(1, ...Array.from({ length: evaluateExtent(batch, dims) }, (_, i) => raggedLength(i)))
  }
  return constrained(dims, facts, longestRagged)
}

/** Lengths of sequences by the inputs that hold them, and enough rows for their tokens. */
function raggedOf({ inputs, ragged }: Program, dims: Numbers) {
  const lengths: Record<string, number[]> = {}
  const tokens: Record<string, number> = {}
  for (const axis of ragged) {
    const [sequences, places] = [evaluateExtent(axis.batch, dims), evaluateExtent(axis.seq, dims)]
    const name = Object.keys(inputs).find((input) => inputs[input] === axis.lengths)
    tokens[axis.tokens] = name === undefined ? sequences * places : Math.min(sequences * places, raggedRows(sequences))
    if (name !== undefined) lengths[name] = Array.from({ length: sequences }, (_, i) => Math.min(places, raggedLength(i)))
  }
  return { lengths, tokens }
}

/** Storage types of a program's parameters in a run. */
function typesOf({ values, weights }: Program, dtype: DType): Readonly<Record<string, DType>> {
  const params = [...values, ...Object.values(weights)].flatMap(({ dtype: of }) => (typeof of === 'string' ? [] : [of.param]))
  return Object.fromEntries(['T', ...params].map((param) => [param, dtype]))
}

/** Zeros for the states that a program clears. */
function clearedStates({ program, inlined }: ProgramSubject, dims: Numbers): Readonly<Record<string, Float64Array>> {
  const cleared = Object.entries(program.states).flatMap(([state, { value, cleared }]) => {
    const shape = inlined.values[value]?.shape ?? []
    return cleared
      ? [[state, new Float64Array(shape.reduce((product, extent) => product * evaluateExtent(extent, dims), 1))] as const]
      : []
  })
  return Object.fromEntries(cleared)
}

/** A program's weights with their drawn bytes. */
export function weightsOf(
  { program, inlined }: ProgramSubject,
  { dtype, dims, bytes }: Pick<Sized, 'dtype' | 'dims' | 'bytes'>,
): Readonly<Record<string, WeightTensor>> {
  const weights = Object.entries(program.weights).map(([weight, { shape, layout }]): [string, WeightTensor] => {
    const id = inlined.weights[weight] ?? -1
    const stored = inlined.values[id]?.dtype
    const of = typeof stored === 'string' ? stored : dtype
    return [
      weight,
      { dtype: of, shape: shape.map((extent) => evaluateExtent(extent, dims)), layout, data: bytes[weight] ?? new Uint8Array() },
    ]
  })
  return Object.fromEntries(weights)
}

/** One size of a program, with its drawn values. */
export interface Sized {
  readonly name: string
  readonly dtype: DType
  readonly dims: Numbers
  readonly types: Readonly<Record<string, DType>>
  /** Lengths of sequences by the inputs that hold them. */
  readonly lengths: Readonly<Record<string, readonly number[]>>
  /** Rows of tokens, by dimension. */
  readonly tokens: Numbers
  /** Values of the inlined graph on the host. */
  readonly values: Map<ValueId, ArrayLike<number>>
  readonly bytes: Readonly<Record<string, Uint8Array>>
}

export function sizedOf({ layouts }: GraphStage, subject: ProgramSubject, dtype: DType, dims: Numbers, name: string): Sized {
  const { program, inlined, facts } = subject
  const types = typesOf(program, dtype)
  const { lengths, tokens } = raggedOf(program, dims)
  const given = { ...inlined.inputs, ...inlined.weights }
  const known = { ...lengths, ...clearedStates(subject, dims) }
  const small = new Set(Object.keys(inlined.weights))
  const drawn = drawGiven(given, { graph: inlined, facts, dims, types, layouts, seed: name, known, small })
  return { name, dtype, dims, types, lengths, tokens, ...drawn }
}
