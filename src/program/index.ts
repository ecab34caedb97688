/**
 * The compiler of programs: a program and a plan in, a compiled program out. Needs neither the front end nor fusion: plans were applied
 * to graphs when text was generated.
 */
import { usageError } from '../errors.js'
import type { Program } from '../ir/program.js'
import type { CompiledProgram } from './compiled.js'
import { type CompileOptions, insertConversions } from './insert_conversions.js'
import { defaultPlan, type ModelPlan } from './plans.js'

export { type CompiledProgram, type CompiledValue, compiledProgramSchema, type ScaleAttr } from './compiled.js'
export type { CompileOptions } from './insert_conversions.js'
export { defaultPlan, findPlan, type ModelPlan, planNames } from './plans.js'

/**
 * A program under a plan: `compileProgram(bert.of({ layers: 12 }), findPlan('best-encoder', manifest.plans))`.
 * @throws usage `plan.model` for a plan that says nothing about the program's layers, `plan.form` and `plan.ragged` for graphs that hold
 * a value in ways no step leads between, `program.graph`
 */
export function compileProgram(program: Program, plan: ModelPlan, options: CompileOptions = {}): CompiledProgram {
  expectCovered(program, plan)
  return insertConversions(program, plan, options)
}

/** A plan must be made for what repeats; where nothing does, for something. */
function expectCovered({ name, nodes }: Program, plan: ModelPlan): void {
  const applications = nodes.flatMap((node) => (node.kind === 'application' ? [node] : []))
  const layers = applications.filter(({ within }) => within.some(({ own }) => own))
  const other = layers.find(({ graph }) => !plan.covers(graph.name))
  const none = layers.length === 0 && applications.length > 0 && !applications.some(({ graph }) => plan.covers(graph.name))
  if (other === undefined && !none) return
  const what = other === undefined ? `any graph of ${name}` : `${other.graph.name}, the layers of ${name}`
  throw usageError('plan.model', `plan ${plan.name} has nothing to say about ${what}`, {
    hint: `choose a plan made for it, such as ${defaultPlan}`,
  })
}
