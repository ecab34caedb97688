/** Small decoders without a model: graphs over states, their programs, and the results of plain JavaScript on the same states. */
import { layouts } from '../../specs/index.js'
import { splitHeads } from '../../specs/layouts/split_heads.js'
import { appendStep } from '../../specs/ops/append_step.js'
import { gatherBeams } from '../../specs/ops/beams.js'
import { embeddingLookup } from '../../specs/ops/embedding_lookup.js'
import { record } from '../../specs/ops/record.js'
import { nextStep } from '../../specs/ops/steps.js'
import type { Manifest } from '../../src/emit/manifest/manifest.js'
import { graph } from '../../src/lang/graph.js'
import { tensor } from '../../src/lang/tensor.js'
import type { KernelSource } from '../../src/runtime/library.js'
import type { NativeDevice } from '../../src/runtime/native.js'
import {
  buildProgram,
  type GraphApplication,
  type Program,
  type ProgramConfig,
  type ProgramStates,
} from '../../src/runtime/program.js'
import { openSession, type Session } from '../../src/runtime/session.js'
import { openStates } from '../../src/runtime/states.js'
import { referenceDevice, referenceLibrary, referenceManifest } from './reference_device.js'

/** Writes the tokens into the history, makes each one more, and counts the step. */
export const count = graph('count', {
  inputs: { step: tensor('i32', '1'), tokens: tensor('i32', 'r'), history: tensor('i32', 's r') },
  weights: {},
  build: (g, { step, tokens, history }) => {
    const recorded = g.apply(record, { history, x: tokens, step }).y
    const more = g.apply(nextStep, { step: tokens }).y
    const counted = g.apply(nextStep, { step }).y
    return { nodes: { recorded, more, counted }, outputs: { recorded, more, counted } }
  },
}).graph

/** Appends `x` to a cache. */
export const append = graph('append', {
  inputs: { cache: tensor('T', 'r s h d', splitHeads), x: tensor('T', 'r h d'), step: tensor('i32', '1') },
  weights: {},
  build: (g, { cache, x, step }) => {
    const appended = g.apply(appendStep, { cache, x, step }).y
    return { nodes: { appended }, outputs: { appended } }
  },
}).graph

/** Rows of a table by ids. */
export const lookUp = graph('look_up', {
  inputs: { ids: tensor('i32', 'm') },
  weights: { table: tensor('T', 'v n') },
  build: (g, { ids }, { table }) => {
    const y = g.apply(embeddingLookup, { ids, table }).y
    return { nodes: { y }, outputs: { y } }
  },
}).graph

/** Gathers the cache of every row, at each position from the row that `beams` names. */
export const gather = graph('gather', {
  inputs: { cache: tensor('T', 'r s h d', splitHeads), beams: tensor('i32', 'r s') },
  weights: {},
  build: (g, { cache, beams }) => {
    const gathered = g.apply(gatherBeams, { cache, beams }).y
    return { nodes: { gathered }, outputs: { gathered } }
  },
}).graph

export const applied = (
  label: string,
  of: GraphApplication['graph'],
  inputs: GraphApplication['inputs'],
  outputs: GraphApplication['outputs'],
): GraphApplication => ({ label, graph: of, inputs, outputs, weights: {}, attrs: {} })

export interface Place {
  readonly device: NativeDevice
  readonly library: KernelSource
  readonly manifest: Manifest
}

export const sessionOf = (place: Place): Promise<Session> => openSession({ ...place, layouts, weights: {} })

/** `unrolled` steps of `count` as one program over states: three rows, `s` places of history. */
export async function countingProgram(session: Session, unrolled: number, s: number) {
  const states = await openStates(session, {
    step: { dtype: 'i32', shape: [1] },
    tokens: { dtype: 'i32', shape: [3] },
    history: { dtype: 'i32', shape: [s, 3] },
  })
  await states.writeAll({ step: new Int32Array(1), tokens: new Int32Array(3), history: new Int32Array(3 * s) })
  const { step, tokens, history } = states.tensors
  const wire = (name: string, i: number): string => (i === 0 ? name : `${name}.${i}`)
  const config: ProgramConfig = {
    session,
    applications: Array.from({ length: unrolled }, (_, i) =>
      applied(
        `step${i}`,
        count,
        { step: wire('step', i), tokens: wire('tokens', i), history: wire('history', i) },
        { counted: wire('step', i + 1), more: wire('tokens', i + 1), recorded: wire('history', i + 1) },
      ),
    ),
    inputs: [],
    outputs: [],
    states: {
      step: { tensor: step, next: wire('step', unrolled) },
      tokens: { tensor: tokens, next: wire('tokens', unrolled) },
      history: { tensor: history, next: wire('history', unrolled) },
    },
    dims: { s, r: 3 },
    types: {},
  }
  const program: Program = await buildProgram(config)
  return { program, states, config }
}

/** Result of `steps` steps of `count` on the same states. */
export function counted(steps: number, s: number, tokens: readonly number[], first = 0) {
  const history = Array.from({ length: s * tokens.length }, () => 0)
  for (let i = 0; i < steps; i++) {
    const place = first + i
    if (place < s) for (const [r, token] of tokens.entries()) history[place * tokens.length + r] = token + i
  }
  return { step: first + steps, tokens: tokens.map((token) => token + steps), history }
}

export const manifest = referenceManifest()
/** A session on a separate reference device, and the device's log. */
export const open = () => {
  const { device, log } = referenceDevice(manifest)
  return { log, session: sessionOf({ device, library: referenceLibrary(manifest), manifest }) }
}
export const integers = (...values: number[]) => Int32Array.from(values)
export const floats = (...values: number[]) => Float32Array.from(values)

/** A program over i32 states of three elements. */
export async function overStates(
  session: Session,
  applications: ProgramConfig['applications'],
  next: Readonly<Record<string, string | undefined>>,
  rest: Partial<ProgramConfig> = {},
) {
  const decls = Object.fromEntries(Object.keys(next).map((name) => [name, { dtype: 'i32', shape: [3] } as const]))
  const states = await openStates(session, decls)
  await states.writeAll(Object.fromEntries(Object.keys(decls).map((name) => [name, new Int32Array(3)])))
  const given: ProgramStates = Object.fromEntries(
    Object.entries(next).map(([name, wire]) => {
      const tensorOf = states.tensors[name]
      if (tensorOf === undefined) throw new Error(`no state ${name}`)
      return [name, wire === undefined ? { tensor: tensorOf } : { tensor: tensorOf, next: wire }]
    }),
  )
  const program = await buildProgram({
    session,
    applications,
    inputs: [],
    outputs: [],
    states: given,
    dims: { r: 3 },
    types: {},
    ...rest,
  })
  return { program, states }
}

/** y is one more than x. */
export const more = graph('more', {
  inputs: { x: tensor('i32', 'r') },
  weights: {},
  build: (g, { x }) => {
    const y = g.apply(nextStep, { step: x }).y
    return { nodes: { y }, outputs: { y } }
  },
}).graph

/** The same for one element. */
export const counter = graph('counter', {
  inputs: { x: tensor('i32', '1') },
  weights: {},
  build: (g, { x }) => {
    const y = g.apply(nextStep, { step: x }).y
    return { nodes: { y }, outputs: { y } }
  },
}).graph
