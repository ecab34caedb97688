/**
 * A chain of passes of a graph on a device, ready to be timed. Inputs that kernels update in place, and that the graph returns, are states, as they
 * are in a model: a pass updates its own, and copies nothing.
 */
import { buildProgram, type Program } from '../../runtime/program.js'
import type { ProgramStates } from '../../runtime/program_states.js'
import { openSession, type WeightTensor } from '../../runtime/session.js'
import { openStates, type States } from '../../runtime/states.js'
import { chain, chained, inPass } from '../rotation.js'
import { type TargetProgram, typesOf, weightNames } from './graph_steps.js'
import type { ProgramBench } from './program_steps.js'

export interface ChainOptions {
  readonly target: TargetProgram
  readonly passes: number
  readonly dims: Readonly<Record<string, number>>
  /** True for a weight that all passes share, by its name in the graph; else each has its own. */
  readonly isShared?: (name: string) => boolean
  /** True for a weight or input that counts as written by the launch in front of the pass. */
  readonly isChanging?: (name: string) => boolean
}

export interface ReadyChain {
  readonly program: Program
  release(): void
}

/** Builds a chain and runs it once. @throws usage `bind.*`; environment for a lack of memory or a kernel that cannot be built */
export async function readyChain(
  { device, library, manifest, layouts, dtype }: ProgramBench,
  { target, passes, dims, isShared = () => false, isChanging = () => false }: ChainOptions,
): Promise<ReadyChain> {
  const wired = chain(
    { applications: [target.application], outputs: Object.values(target.application.outputs) },
    Object.keys(target.inputs),
    passes,
  )
  const applications = wired.applications.map((application) => ({
    ...application,
    weights: Object.fromEntries(
      Object.entries(application.weights).map(([weight, name]) => [weight, isShared(weight) ? weight : name]),
    ),
  }))
  const weights: Record<string, WeightTensor> = {}
  const changing = new Set(Object.keys(target.inputs).flatMap((name) => (isChanging(name) ? everyName(name, passes) : [])))
  for (const application of applications) {
    for (const [weight, name] of Object.entries(weightNames(application))) {
      const tensor = target.tensors[weight]
      if (tensor !== undefined) weights[name] = tensor
      if (isChanging(weight)) changing.add(name)
    }
  }
  const session = await openSession({ device, library, manifest, layouts, weights })
  const opened: { release(): void }[] = [session]
  const release = (): void => opened.toReversed().forEach((each) => void each.release())
  try {
    const of = (isUpdated: boolean): Readonly<Record<string, WeightTensor>> =>
      chained(passes, () =>
        Object.fromEntries(Object.entries(target.inputs).filter(([name]) => Object.hasOwn(target.next, name) === isUpdated)),
      )
    const [updated, given] = [of(true), of(false)]
    const states = await openStates(
      { device, layouts },
      mapped(updated, ({ data: _, ...decl }) => decl),
    )
    opened.push(states)
    await fill(states, updated)
    const program = await buildProgram({
      session,
      applications,
      inputs: Object.keys(given),
      outputs: wired.outputs,
      states: carried(states, target.next, passes),
      dims,
      types: typesOf(target.application.graph, dtype),
      changing,
    })
    opened.push(program)
    await program.run(mapped(given, ({ data }) => data))
    await program.capture()
    return { program, release }
  } catch (error) {
    release()
    throw error
  }
}

const mapped = <T, R>(record: Readonly<Record<string, T>>, map: (value: T) => R): Record<string, R> =>
  Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))

const everyName = (name: string, passes: number): string[] => Array.from({ length: passes }, (_, pass) => inPass(pass, name))

async function fill(states: States, data: Readonly<Record<string, WeightTensor>>): Promise<void> {
  for (const [wire, { slice }] of Object.entries(states.tensors)) {
    const tensor = data[wire]
    if (tensor !== undefined) await slice.buffer.write(slice.offset, tensor.data)
  }
}

/** The states of a chain: each holds what its pass leaves. */
const carried = (states: States, next: TargetProgram['next'], passes: number): ProgramStates =>
  chained(passes, (pass) =>
    Object.fromEntries(
      Object.entries(next).flatMap(([name, after]) => {
        const tensor = states.tensors[inPass(pass, name)]
        return tensor === undefined ? [] : [[name, { tensor, next: inPass(pass, after) }]]
      }),
    ),
  )
