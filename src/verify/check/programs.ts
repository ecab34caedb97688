/**
 * Whole programs on a device, in their default configuration and under each of their plans, compared with their nodes run one by one on the
 * host: results, and the contents of states after a run. Float32 runs twice, so that the second run starts from the states of the first.
 */
import type { DType } from '../../ir/dtype.js'
import type { HostTensor } from '../../ir/evaluate.js'
import { type Graph, isQuantised, type ValueId } from '../../ir/graph.js'
import type { Program } from '../../ir/program.js'
import { evaluateExtent, multiplyExtents, printExtent } from '../../ir/shape.js'
import { nextName } from '../../program/inline.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram } from '../../runtime/program.js'
import { programSizes, stateDecls, wireProgram } from '../../runtime/program_wiring.js'
import { openSession } from '../../runtime/session.js'
import { openStates } from '../../runtime/states.js'
import type { CheckResult } from '../conformance.js'
import { coarsestOf, compareOutput, extents, held, type Numbers, withinReach } from './graph_values.js'
import { type GraphStage, storedAsInt8, whyUnmultiplied } from './graphs.js'
import { type ProgramSubject, type Sized, sizedOf, sizesOf, weightsOf } from './program_size.js'
import { lazily, storedError } from './stored.js'

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

type HostRun = (store: (id: ValueId, made: ArrayLike<number>) => ArrayLike<number>) => Map<ValueId, ArrayLike<number>>

/** Returns a function that runs the nodes of a program on the host, on the current values of a size. */
async function hostRun({ ops }: GraphStage, { inlined, groups }: ProgramSubject, { values, dims }: Sized): Promise<HostRun> {
  const [{ runNodes }, { maskedRules }] = await Promise.all([
    import('../../fuse/check/compose.js'),
    import('../../fuse/check/masked.js'),
  ])
  return (store) => {
    const masked = maskedRules(inlined, groups, ops)
    const revise = (id: ValueId, made: HostTensor) => store(id, masked(id, made))
    return runNodes(inlined, inlined.nodes, { values, dims, attrs: {}, kernels: ops, revise })
  }
}

/** A program on a device. `run` returns its outputs and the contents of its states, by the names of the inlined graph's outputs. */
interface Deployed {
  /** Names of the states. */
  readonly states: readonly string[]
  readonly run: () => Promise<Readonly<Record<string, Uint8Array>>>
}

/** Runs an action with a program on the device, which is released after it. */
async function onDevice<T>(
  { device, library, manifest, layouts }: GraphStage,
  subject: ProgramSubject,
  sized: Sized,
  action: (deployed: Deployed) => Promise<T>,
): Promise<T> {
  const { program, compiled } = subject
  const { dims, types, tokens, bytes } = sized
  const sizes = programSizes(compiled, {
    ...Object.fromEntries(Object.keys(program.dims).map((dim) => [dim, dims[dim] ?? 1])),
    ...tokens,
  })
  const { applications, inputs } = wireProgram(compiled)
  const prepared = prepareWeights(applications, weightsOf(subject, sized), layouts)
  const session = await openSession({ device, library, manifest, layouts, weights: prepared })
  const states = await openStates({ device, layouts }, stateDecls(compiled, sizes, types))
  try {
    for (const [state, { slice }] of Object.entries(states.tensors))
      await slice.buffer.write(slice.offset, bytes[state] ?? new Uint8Array())
    const stored = Object.entries(compiled.states).flatMap(([state, { next }]) => {
      const tensor = states.tensors[state]
      return tensor === undefined ? [] : [[state, { tensor, ...(next === undefined ? {} : { next }) }] as const]
    })
    const wires = [...new Set(Object.values(compiled.outputs))]
    const wired = { applications, inputs, outputs: wires, states: Object.fromEntries(stored), dims: sizes, types }
    const built = await buildProgram({ session, ...wired })
    const fed = Object.fromEntries(inputs.map((input) => [input, bytes[input] ?? new Uint8Array()]))
    const run = async (): Promise<Readonly<Record<string, Uint8Array>>> => {
      const found: Record<string, Uint8Array> = {}
      const returned = await built.run(fed)
      for (const [output, wire] of Object.entries(compiled.outputs)) found[output] = returned[wire] ?? new Uint8Array()
      for (const [state, { tensor }] of stored)
        found[nextName(state)] = await tensor.slice.buffer.read(tensor.slice.offset, tensor.slice.bytes)
      return found
    }
    try {
      return await action({ states: stored.map(([state]) => state), run })
    } finally {
      built.release()
    }
  } finally {
    states.release()
    session.release()
  }
}

/** Runs one size of a program on the device and on the host, and compares the results. */
async function runSize(
  stage: GraphStage,
  subject: ProgramSubject,
  dtype: DType,
  dims: Numbers,
  name: string,
): Promise<CheckResult[]> {
  const { program, compiled, inlined, groups } = subject
  const sized = sizedOf(stage, subject, dtype, dims, name)
  const { types, lengths, values } = sized
  const runHost = await hostRun(stage, subject, sized)
  const steps = compiled.steps.reduce(
    (sum, step) => sum + (compiled.graphs[step.graph]?.nodes.filter(({ kind }) => kind !== 'view').length ?? 0),
    0,
  )
  return onDevice(stage, subject, sized, async (deployed) => {
    const results: CheckResult[] = []
    for (let run = 1; run <= (dtype === 'f32' && deployed.states.length > 0 ? 2 : 1); run++) {
      const expected = runHost((_, made) => made)
      const errorOf = lazily(() =>
        storedError({ graph: inlined, groups, types, seed: `${name} run ${run}`, run: runHost }, expected),
      )
      const found = await deployed.run()
      const result = held(`${name} run ${run}`, Object.entries(inlined.outputs), (output, id) => {
        const valid = validIn(program, inlined.values[id]?.shape ?? [], dims, lengths)
        const holding = {
          graph: inlined,
          dims,
          types,
          layouts: stage.layouts,
          dtype,
          coarsest: coarsestOf(inlined, dtype, types),
          steps: steps * run,
          storedError: (of: ValueId) => errorOf()(of),
          ...(valid === undefined ? {} : { valid }),
        }
        return compareOutput(output, id, expected.get(id) ?? [], found[output] ?? new Uint8Array(), holding)
      })
      if (result !== undefined) results.push(result)
      for (const state of deployed.states) {
        const [from, to] = [inlined.outputs[nextName(state)], inlined.inputs[state]]
        if (from !== undefined && to !== undefined) values.set(to, expected.get(from) ?? [])
      }
    }
    return results
  })
}
