/**
 * Whole programs on a device, in their default configuration and under each of their plans, compared with their nodes run one by one on the
 * host: results, and the contents of states after a run. Float32 runs twice, so that the second run starts from the states of the first.
 */
import type { DType } from '../../ir/dtype.js'
import type { HostTensor } from '../../ir/evaluate.js'
import { constrained } from '../../ir/facts/constrained.js'
import type { Facts } from '../../ir/facts/facts.js'
import { type Graph, isQuantised, type ValueId } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { evaluateExtent, multiplyExtents, printExtent } from '../../ir/shape.js'
import type { CompiledProgram } from '../../program/index.js'
import { nextName } from '../../program/inline.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram } from '../../runtime/program.js'
import { programSizes, stateDecls, wireProgram } from '../../runtime/program_wiring.js'
import { openSession } from '../../runtime/session.js'
import { openStates } from '../../runtime/states.js'
import type { WeightTensor } from '../../runtime/weight.js'
import type { CheckResult } from '../conformance.js'
import { longestRagged, raggedLength, raggedRows } from '../ragged.js'
import { coarsestOf, compareOutput, drawGiven, extents, held, type Numbers, withinReach } from './graph_values.js'
import { type GraphStage, storedAsInt8, whyUnmultiplied } from './graphs.js'
import { lazily, storedError } from './stored.js'

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

/** Most elements of a value that is computed on the host. */
const largest = 30_000

/**
 * Reason why a program cannot be checked as a whole; undefined if it can. In a quantised program, a flipped rounding changes everything after it;
 * and the matmul library does not support all types.
 */
export function whyProgramApart({ compiled }: Pick<ProgramSubject, 'compiled'>): string | undefined {
  const graphs = Object.values(compiled.graphs)
  if (graphs.some((graph) => isQuantised(graph) || Object.keys(graph.scales ?? {}).length > 0)) return storedAsInt8
  return whyUnmultiplied(graphs)
}

/** Checks every size of a program in a storage type. */
export async function checkProgram(stage: GraphStage, subject: ProgramSubject, dtype: DType): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  const sizes = [...extents.map((each) => sizesOf(subject, each)), subject.program.dims]
  for (const dims of withinReach(subject.inlined, sizes, largest)) {
    const shown = Object.entries(dims).map(([name, extent]) => `${name}=${extent}`)
    const name = `${subject.name} ${subject.plan} ${dtype} ${shown.join(' ')}`
    results.push(...(await runSize(stage, subject, dtype, dims, name)))
  }
  return results
}

/** Extents assigned to the dimensions in turn, constrained by facts; sequences have room for the longest. */
function sizesOf({ program, facts }: ProgramSubject, sizes: readonly number[]): Numbers {
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

/** Predicate for the elements of a value that belong to tokens; undefined if all do. */
function validIn(
  { inputs, ragged }: Program,
  shape: Graph['values'][number]['shape'],
  dims: Numbers,
  lengths: Readonly<Record<string, readonly number[]>>,
) {
  for (const { batch, seq, lengths: id } of ragged) {
    const known = lengths[Object.keys(inputs).find((input) => inputs[input] === id) ?? '']
    const rows = printExtent(multiplyExtents([batch, seq]))
    const axes = shape[0] !== undefined && printExtent(shape[0]) === rows ? 1 : 2
    if (known === undefined || printExtent(multiplyExtents(shape.slice(0, axes))) !== rows) continue
    const width = shape.slice(axes).reduce((product, extent) => product * evaluateExtent(extent, dims), 1)
    const places = evaluateExtent(seq, dims)
    return (index: number): boolean => {
      const row = Math.floor(index / width)
      return row % places < (known[Math.floor(row / places)] ?? 0)
    }
  }
  return undefined
}

async function runSize(
  stage: GraphStage,
  { program, compiled, inlined, facts, groups }: ProgramSubject,
  dtype: DType,
  dims: Numbers,
  name: string,
): Promise<CheckResult[]> {
  const [{ runNodes }, { maskedRules }] = await Promise.all([
    import('../../fuse/check/compose.js'),
    import('../../fuse/check/masked.js'),
  ])
  const { layouts, ops, device, library, manifest } = stage
  const params = [...program.values, ...Object.values(program.weights)].flatMap(({ dtype: of }) =>
    typeof of === 'string' ? [] : [of.param],
  )
  const types = Object.fromEntries(['T', ...params].map((param) => [param, dtype]))
  const { lengths, tokens } = raggedOf(program, dims)
  const cleared = Object.entries(program.states).flatMap(([state, { value, cleared }]) => {
    const shape = inlined.values[value]?.shape ?? []
    return cleared
      ? [[state, new Float64Array(shape.reduce((product, extent) => product * evaluateExtent(extent, dims), 1))] as const]
      : []
  })
  const given = { ...inlined.inputs, ...inlined.weights }
  const known = { ...lengths, ...Object.fromEntries(cleared) }
  const small = new Set(Object.keys(inlined.weights))
  const { values, bytes } = drawGiven(given, { graph: inlined, facts, dims, types, layouts, seed: name, known, small })
  const sizes = programSizes(compiled, {
    ...Object.fromEntries(Object.keys(program.dims).map((dim) => [dim, dims[dim] ?? 1])),
    ...tokens,
  })
  const { applications, inputs } = wireProgram(compiled)
  const weights = Object.entries(program.weights).map(([weight, { shape, layout }]): [string, WeightTensor] => {
    const id = inlined.weights[weight] ?? -1
    const stored = inlined.values[id]?.dtype
    const of = typeof stored === 'string' ? stored : dtype
    return [
      weight,
      { dtype: of, shape: shape.map((extent) => evaluateExtent(extent, dims)), layout, data: bytes[weight] ?? new Uint8Array() },
    ]
  })
  const prepared = prepareWeights(applications, Object.fromEntries(weights), layouts)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared })
  const states = await openStates({ device, layouts }, stateDecls(compiled, sizes, types))
  try {
    for (const [state, { slice }] of Object.entries(states.tensors))
      await slice.buffer.write(slice.offset, bytes[state] ?? new Uint8Array())
    const kept = Object.entries(compiled.states).flatMap(([state, { next }]) => {
      const tensor = states.tensors[state]
      return tensor === undefined ? [] : [[state, { tensor, ...(next === undefined ? {} : { next }) }] as const]
    })
    const wires = [...new Set(Object.values(compiled.outputs))]
    const wired = { applications, inputs, outputs: wires, states: Object.fromEntries(kept), dims: sizes, types }
    const built = await buildProgram({ session, ...wired })
    try {
      const fed = Object.fromEntries(inputs.map((input) => [input, bytes[input] ?? new Uint8Array()]))
      const steps = compiled.steps.reduce(
        (sum, step) => sum + (compiled.graphs[step.graph]?.nodes.filter(({ kind }) => kind !== 'view').length ?? 0),
        0,
      )
      const results: CheckResult[] = []
      for (let run = 1; run <= (dtype === 'f32' && kept.length > 0 ? 2 : 1); run++) {
        const runHost = (store: (id: ValueId, made: ArrayLike<number>) => ArrayLike<number>) => {
          const masked = maskedRules(inlined, groups, ops)
          const revise = (id: ValueId, made: HostTensor) => store(id, masked(id, made))
          return runNodes(inlined, inlined.nodes, { values, dims, attrs: {}, kernels: ops, revise })
        }
        const expected = runHost((_, made) => made)
        const errorOf = lazily(() =>
          storedError({ graph: inlined, groups, types, seed: `${name} run ${run}`, run: runHost }, expected),
        )
        const found: Record<string, Uint8Array> = {}
        const returned = await built.run(fed)
        for (const [output, wire] of Object.entries(compiled.outputs)) found[output] = returned[wire] ?? new Uint8Array()
        for (const [state, { tensor }] of kept)
          found[nextName(state)] = await tensor.slice.buffer.read(tensor.slice.offset, tensor.slice.bytes)
        const outputs = Object.entries(inlined.outputs)
        const result = held(`${name} run ${run}`, outputs, (output, id) => {
          const valid = validIn(program, inlined.values[id]?.shape ?? [], dims, lengths)
          const holding = {
            graph: inlined,
            dims,
            types,
            layouts,
            dtype,
            coarsest: coarsestOf(inlined, dtype, types),
            steps: steps * run,
            storedError: (of: ValueId) => errorOf()(of),
            ...(valid === undefined ? {} : { valid }),
          }
          return compareOutput(output, id, expected.get(id) ?? [], found[output] ?? new Uint8Array(), holding)
        })
        if (result !== undefined) results.push(result)
        for (const [state] of kept) {
          const [from, to] = [inlined.outputs[nextName(state)], inlined.inputs[state]]
          if (from !== undefined && to !== undefined) values.set(to, expected.get(from) ?? [])
        }
      }
      return results
    } finally {
      built.release()
    }
  } finally {
    states.release()
    session.release()
  }
}
