/**
 * A program under a plan, ready to be timed: weights, inputs and states are in device memory, so that a replay copies nothing. Every replay
 * advances the states, as runs do. Weights have one copy: a whole model reads more than a cache holds, or is used with a warm cache anyway.
 */
import type { DType } from '../../ir/dtype.js'
import { evaluateExtent } from '../../ir/shape.js'
import { encode } from '../../runtime/buffer.js'
import { prepareWeights } from '../../runtime/prepare_weights.js'
import { buildProgram, type Program } from '../../runtime/program.js'
import { programSizes, stateDecls, wireProgram } from '../../runtime/program_wiring.js'
import { openSession, type SessionConfig, type WeightTensor } from '../../runtime/session.js'
import { openStates } from '../../runtime/states.js'
import { targetProgram, typesOf } from './graph_steps.js'
import type { ProgramForm } from './subject.js'

/** Device, kernels and storage type of the timed program. */
export interface ProgramBench extends Omit<SessionConfig, 'weights' | 'allowTf32'> {
  readonly dtype: DType
}

export interface ReadyProgram {
  readonly program: Program
  /** Bytes of inputs, weights and outputs, each counted once. */
  readonly bytes: number
  readonly zeros: readonly string[]
  release(): void
}

/** @throws usage `program.dims`, `bind.*`; environment for a lack of memory or a kernel that cannot be built */
export async function readyProgram(
  { device, library, manifest, layouts, dtype }: ProgramBench,
  { compiled, inlined }: ProgramForm,
  dims: Readonly<Record<string, number>>,
): Promise<ReadyProgram> {
  const types = typesOf(inlined, dtype)
  const { tensors, inputs: changed, bytes, zeros } = targetProgram(inlined, { dims, dtype }, manifest, layouts)
  // Sequences are full, as in graphs.
  const full = compiled.ragged.map(({ lengths, batch, seq }): [string, WeightTensor] => {
    const data = encode('i32', new Int32Array(evaluateExtent(batch, dims)).fill(evaluateExtent(seq, dims)))
    return [lengths, { dtype: 'i32', shape: [evaluateExtent(batch, dims)], data }]
  })
  const lengths = Object.fromEntries(full)
  const given = (name: string): WeightTensor => {
    if (lengths[name] !== undefined) return lengths[name]
    const tensor = changed[name] ?? tensors[`input ${name}`]
    if (tensor === undefined) throw new Error(`internal: ${name} was not made`)
    return tensor
  }
  const sizes = programSizes(compiled, dims)
  const { applications, inputs } = wireProgram(compiled)
  const session = await openSession({
    device,
    library,
    manifest,
    layouts,
    weights: prepareWeights(applications, tensors, layouts),
  })
  const states = await openStates({ device, layouts }, stateDecls(compiled, sizes, types)).catch((error: unknown) => {
    session.release()
    throw error
  })
  const release = (): void => {
    states.release()
    session.release()
  }
  try {
    for (const [name, { slice }] of Object.entries(states.tensors)) await slice.buffer.write(slice.offset, given(name).data)
    const wiredStates = Object.entries(compiled.states).flatMap(([name, { next }]) => {
      const tensor = states.tensors[name]
      return tensor === undefined ? [] : [[name, { tensor, ...(next === undefined ? {} : { next }) }] as const]
    })
    const outputs = [...new Set(Object.values(compiled.outputs))]
    const wired = { applications, inputs, outputs, states: Object.fromEntries(wiredStates), dims: sizes, types }
    const program = await buildProgram({ session, ...wired })
    await program.run(Object.fromEntries(inputs.map((name) => [name, given(name).data])))
    await program.capture()
    return { program, bytes, zeros: zeros.filter((name) => lengths[name.replace(/^input /, '')] === undefined), release }
  } catch (error) {
    release()
    throw error
  }
}
