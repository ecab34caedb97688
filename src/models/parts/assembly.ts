/** Model programs, compiled under a plan and bound to the model's tensors and the memory of their states. */
import { conversions } from '../../../specs/conversions.js'
import type { Program } from '../../ir/program.js'
import { type CompiledProgram, compileProgram, type ModelPlan } from '../../program/index.js'
import type { ProgramStates } from '../../runtime/program_states.js'
import { type WiredProgram, wireProgram } from '../../runtime/program_wiring.js'
import type { States } from '../../runtime/states.js'
import type { TensorNames } from './weight_names.js'

/** A program compiled under a plan, and its graphs over the model's tensors. */
export interface Assembly {
  readonly compiled: CompiledProgram
  readonly wired: WiredProgram
}

/** Compiles a program and binds its weights. @throws usage `plan.model` for a plan without the model's layers */
export function assemble(program: Program, plan: ModelPlan, tensors: TensorNames): Assembly {
  const compiled = compileProgram(program, plan, { conversions })
  return { compiled, wired: wireProgram(compiled, { tensors }) }
}

/** Memory of a program's states, and the value each holds after a run. */
export const statesOf = ({ compiled }: Assembly, states: States): ProgramStates =>
  Object.fromEntries(
    Object.entries(compiled.states).map(([name, { next }]) => {
      const tensor = states.tensors[name]
      if (tensor === undefined) throw new Error(`internal: no state ${name}`)
      return [name, { tensor, ...(next === undefined ? {} : { next }) }]
    }),
  )
