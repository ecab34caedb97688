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
    const updated = Object.keys(target.inputs).filter((name) => target.next[name] !== undefined)
    const decls = chained(passes, () => Object.fromEntries(updated.map((name) => [name, declOf(target.inputs[name])])))
    const states = await openStates({ device, layouts }, decls)
    opened.push(states)
    await fill(states, target, updated, passes)
    const program = await buildProgram({
      session,
      applications,
      inputs: wired.inputs.filter((name) => decls[name] === undefined),
      outputs: wired.outputs,
      states: carried(states, target, updated, passes),
      dims,
      types: typesOf(target.application.graph, dtype),
      changing,
    })
    opened.push(program)
    const given = Object.entries(target.inputs).filter(([name]) => target.next[name] === undefined)
    await program.run(chained(passes, () => Object.fromEntries(given.map(([name, { data }]) => [name, data]))))
    await program.capture()
    return { program, release }
  } catch (error) {
    release()
    throw error
  }
}

const everyName = (name: string, passes: number): string[] => Array.from({ length: passes }, (_, pass) => inPass(pass, name))

function declOf(tensor: WeightTensor | undefined) {
  if (tensor === undefined) throw new Error('internal: an updated input that was not made')
  const { data: _, ...decl } = tensor
  return decl
}

async function fill(states: States, target: TargetProgram, updated: readonly string[], passes: number): Promise<void> {
  for (const name of updated) {
    const data = target.inputs[name]?.data
    for (const wire of everyName(name, passes)) {
      const slice = states.tensors[wire]?.slice
      if (slice !== undefined && data !== undefined) await slice.buffer.write(slice.offset, data)
    }
  }
}

const carried = (states: States, { next }: TargetProgram, updated: readonly string[], passes: number): ProgramStates =>
  Object.fromEntries(
    Array.from({ length: passes }, (_, pass) =>
      updated.flatMap((name) => {
        const [tensor, after] = [states.tensors[inPass(pass, name)], next[name]]
        return tensor === undefined || after === undefined ? [] : [[inPass(pass, name), { tensor, next: inPass(pass, after) }]]
      }),
    ).flat(),
  )
