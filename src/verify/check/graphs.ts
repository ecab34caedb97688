/**
 * Whole graphs on a device, under each of their plans, compared with their nodes run one by one on the host: matmuls by their definition,
 * ops by their bodies. The host runs the graph after those passes of the plan that decide how values are stored, so that both have the
 * same inputs; these passes have their own proofs.
 */

import type { Manifest } from '../../emit/manifest/manifest.js'
import { type DType, isFloat8 } from '../../ir/dtype.js'
import type { HostTensor } from '../../ir/evaluate.js'
import { constrained } from '../../ir/facts/constrained.js'
import { evaluateCount, type Facts } from '../../ir/facts/facts.js'
import { type Graph, inputsOf, isQuantised, outputsOf, type ValueId } from '../../ir/graph.js'
import type { DTypeRef, Kernel } from '../../ir/kernel.js'
import { evaluateExtent } from '../../ir/shape.js'
import type { Layouts } from '../../runtime/layouts.js'
import type { KernelSource } from '../../runtime/library.js'
import type { NativeDevice } from '../../runtime/native.js'
import { buildProgram } from '../../runtime/program.js'
import { isMultiplied } from '../../runtime/program_steps.js'
import { openSession } from '../../runtime/session.js'
import type { CheckResult } from '../conformance.js'
import { longestRagged, raggedLength, raggedRows } from '../ragged.js'
import { coarsestOf, compareOutput, drawGiven, extents, held, isUnsure, withinReach } from './graph_values.js'
import { lazily, storedError } from './stored.js'

/** A graph as planned, and as it is before nodes become kernels. */
export interface GraphSubject {
  readonly name: string
  /** `unfused` if the graph runs as declared. */
  readonly plan: string
  readonly planned: Graph
  readonly prepared: Graph
  readonly facts: Facts
  /** Names of the nodes of each group, which became one kernel. */
  readonly groups: readonly (readonly string[])[]
}

export interface GraphStage {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
  readonly layouts: Layouts
  readonly ops: ReadonlyMap<string, Kernel>
}

type Numbers = Readonly<Record<string, number>>

/** Most elements of a value that is computed on the host. */
const largest = 60_000

/**
 * Reason why a graph cannot be checked as a whole; undefined if it can. A flipped rounding to a coarse type changes everything after it. A matmul
 * that no kernel of the plan computes is left to the library, which does not support all types.
 */
export function whyApart({ planned }: Pick<GraphSubject, 'planned'>): string | undefined {
  if (isQuantised(planned)) return storedAsInt8
  const read = new Set(planned.nodes.flatMap(inputsOf))
  for (const node of planned.nodes) {
    const [coarse] = outputsOf(node).flatMap((id) => (read.has(id) ? coarseType(planned.values[id]?.dtype) : []))
    if (coarse !== undefined) return `node ${node.name} stores ${coarse}, which another reads`
  }
  const coarse = Object.values(planned.outputs).flatMap((id) => coarseType(planned.values[id]?.dtype))
  if (coarse.some((dtype) => dtype !== 'u8')) return `it returns ${coarse.join(' and ')}`
  return whyUnmultiplied([planned])
}

export const storedAsInt8 = 'its plan stores values as int8'

/** Reason why no storage type remains in which the library computes all matmuls left to it; undefined if one does. */
export function whyUnmultiplied(graphs: readonly Graph[]): string | undefined {
  const reasons = floatTypes.map((type) => graphs.flatMap((graph) => unmultiplied(graph, type) ?? [])[0])
  return reasons.includes(undefined) ? undefined : reasons[0]
}

/** Reason why the library cannot compute a matmul of a graph in a storage type; undefined if it computes all that are left to it. */
export function unmultiplied({ nodes, values }: Graph, type: DType): string | undefined {
  const typeOf = (id: ValueId): DType => {
    const dtype = values[id]?.dtype
    return typeof dtype === 'string' ? dtype : type
  }
  for (const node of nodes) {
    if (node.kind !== 'matmul') continue
    const [a, b, out] = [typeOf(node.a), typeOf(node.b), typeOf(node.out)] as const
    if (!isMultiplied([a, b, out]))
      return `no library multiplies ${a} and ${b} into ${out}, and no kernel of the plan computes node ${node.name}`
  }
  return undefined
}

/** The type in a list if it is coarse, with adjacent numbers far apart; else empty. */
const coarseType = (dtype: DTypeRef | undefined): readonly string[] =>
  typeof dtype === 'string' && (dtype === 'i8' || dtype === 'u8' || isFloat8(dtype)) ? [dtype] : []

const floatTypes = ['f32', 'f16', 'bf16'] as const

/** The storage types that a graph can run in: the wanted ones that all its ops support. */
export function graphTypes(
  { planned, prepared }: Pick<GraphSubject, 'planned' | 'prepared'>,
  ops: ReadonlyMap<string, Kernel>,
  wanted: readonly DType[] | undefined,
): readonly DType[] {
  if (planned.values.every(({ dtype }) => typeof dtype === 'string')) return ['f32']
  const choices = prepared.nodes.flatMap((node) => {
    if (node.kind !== 'op') return []
    const types = ops.get(node.op)?.types ?? {}
    return Object.entries(node.types).flatMap(([param, type]) => (typeof type === 'string' ? [] : [types[param] ?? []]))
  })
  return floatTypes.filter((type) => choices.every((list) => list.includes(type)) && (wanted?.includes(type) ?? true))
}

/** The storage types in which a graph is checked as a whole, and the reasons for the others. */
export function wholeTypes(graph: GraphSubject, ops: ReadonlyMap<string, Kernel>, wanted: readonly DType[] | undefined) {
  const types = graphTypes(graph, ops, wanted).map((type) => ({ type, reason: whyTypeApart(graph, type) }))
  return {
    whole: types.flatMap(({ type, reason }) => (reason === undefined ? [type] : [])),
    left: types.flatMap(({ type, reason }) => (reason === undefined ? [] : [{ type, reason }])),
  }
}

function whyTypeApart({ planned }: GraphSubject, type: DType): string | undefined {
  const given = Object.values(planned.outputs).map((id) => {
    const dtype = planned.values[id]?.dtype
    return typeof dtype === 'string' ? dtype : type
  })
  if (given.every((dtype) => isUnsure(dtype, type))) return `it returns only integers, which rounding to ${type} may change`
  return unmultiplied(planned, type)
}

/** Checks every size of a graph in a storage type. */
export async function checkGraph(stage: GraphStage, subject: GraphSubject, dtype: DType): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  const sizes = extents.map((each) => dimsOf(subject, each))
  for (const dims of withinReach(subject.prepared, sizes, largest)) {
    const shown = Object.entries(dims).map(([name, extent]) => `${name}=${extent}`)
    const name = `${subject.name} ${subject.plan} ${dtype} ${shown.join(' ')}`
    const result = await runOne(stage, subject, dtype, dims, name)
    if (result !== undefined) results.push(result)
  }
  return results
}

function dimsOf({ planned, facts }: GraphSubject, sizes: readonly number[]): Numbers {
  const { packing } = planned
  // The batch of a packed graph may be in no shape.
  const shapes = [
    ...planned.values.map(({ shape }) => shape),
    packing === undefined ? [] : [packing.batch, packing.tokens, packing.seq],
  ]
  const names = [...new Set(shapes.flatMap((shape) => shape.flatMap(({ dims }) => dims)))].sort()
  const dims: Record<string, number> = Object.fromEntries(names.map((name, i) => [name, sizes[i % sizes.length] ?? 1]))
  for (const { packed } of Object.values(facts.inputs)) {
    if (packed === undefined) continue
    const batch = evaluateCount(packed.batch, dims) ?? 1
    if (typeof packed.rows === 'string') dims[packed.rows] = raggedRows(batch)
  }
  if (packing !== undefined) {
    const batch = evaluateExtent(packing.batch, dims)
    for (const name of packing.tokens.dims) dims[name] = raggedRows(batch)
    for (const name of packing.seq.dims) dims[name] = Math.max(1, ...Array.from({ length: batch }, (_, i) => raggedLength(i)))
  }
  return constrained(dims, facts, longestRagged)
}

/** Values of a graph's attributes: multiples of a quarter for floats, and the op's default for an integer. */
function attrsOf({ attrs, nodes }: Graph, ops: GraphStage['ops']): Numbers {
  const taken = nodes.flatMap((node) => {
    if (node.kind !== 'op') return []
    const own = ops.get(node.op)?.attrs ?? []
    return Object.entries(node.attrs).flatMap(([name, value]) => {
      const attr = own.find((each) => each.name === name)
      return typeof value === 'object' && 'attr' in value && attr?.type === 'i32' ? [[value.attr, attr.default] as const] : []
    })
  })
  const integers = new Map(taken)
  return Object.fromEntries(attrs.map((attr, i) => [attr, integers.get(attr) ?? 0.25 * (1 + (i % 4))]))
}

async function runOne(
  stage: GraphStage,
  { planned, prepared, facts, groups }: GraphSubject,
  dtype: DType,
  dims: Numbers,
  name: string,
): Promise<CheckResult | undefined> {
  const [{ runNodes }, { maskedRules }] = await Promise.all([
    import('../../fuse/check/compose.js'),
    import('../../fuse/check/masked.js'),
  ])
  const types = { T: dtype }
  const attrs = attrsOf(prepared, stage.ops)
  const given = { ...prepared.inputs, ...prepared.weights }
  const { values, bytes } = drawGiven(given, { graph: prepared, facts, dims, types, layouts: stage.layouts, seed: name })
  const run = (store: (id: ValueId, made: ArrayLike<number>) => ArrayLike<number>) => {
    // Its state belongs to one run.
    const masked = maskedRules(prepared, groups, stage.ops)
    const revise = (id: ValueId, made: HostTensor) => store(id, masked(id, made))
    return runNodes(prepared, prepared.nodes, { values, dims, attrs, kernels: stage.ops, revise })
  }
  const expected = run((_, made) => made)
  const found = await runOnDevice(stage, planned, dims, types, attrs, bytes)
  const steps = planned.nodes.filter(({ kind }) => kind !== 'view').length
  const errorOf = lazily(() => storedError({ graph: prepared, groups, types, seed: name, run }, expected))
  const holding = {
    graph: prepared,
    dims,
    types,
    layouts: stage.layouts,
    dtype,
    coarsest: coarsestOf(prepared, dtype, types),
    steps,
    storedError: (id: ValueId) => errorOf()(id),
  }
  return held(name, Object.entries(prepared.outputs), (output, id) =>
    compareOutput(output, id, expected.get(id) ?? [], found[output] ?? new Uint8Array(), holding),
  )
}

async function runOnDevice(
  { device, library, manifest, layouts }: GraphStage,
  planned: Graph,
  dims: Numbers,
  types: Readonly<Record<string, DType>>,
  attrs: Numbers,
  inputs: Readonly<Record<string, Uint8Array>>,
): Promise<Readonly<Record<string, Uint8Array>>> {
  const session = await openSession({ device, library, manifest, layouts, weights: {} })
  const same = (names: readonly string[]) => Object.fromEntries(names.map((each) => [each, each]))
  // Weights are passed with each run like inputs: sizes differ from run to run.
  // Plans for few rows are checked by themselves.
  const graph: Graph = { ...planned, byRows: undefined, inputs: { ...planned.inputs, ...planned.weights }, weights: {} }
  const [names, outputs] = [Object.keys(graph.inputs), Object.keys(graph.outputs)]
  const wired = Object.fromEntries(outputs.map((output) => [output, `out ${output}`]))
  try {
    const program = await buildProgram({
      session,
      applications: [{ label: planned.name, graph, inputs: same(names), weights: {}, outputs: wired, attrs }],
      inputs: names,
      outputs: Object.values(wired),
      dims,
      types,
    })
    try {
      const results = await program.run(inputs)
      return Object.fromEntries(Object.entries(wired).map(([output, wire]) => [output, results[wire] ?? new Uint8Array()]))
    } finally {
      program.release()
    }
  } finally {
    session.release()
  }
}
