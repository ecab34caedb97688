/**
 * The compiler of programs: a program and a plan in, a compiled program out. Needs neither the front end nor fusion, since plans were applied to
 * graphs when source was generated.
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
 * Compiles a program under a plan: `compileProgram(bert.of({ layers: 12 }), findPlan('best-encoder', manifest.plans))`.
 * @throws usage `plan.model` for a plan that does not cover the program's layers, `plan.form` and `plan.ragged` for graphs with storage forms
 * that no step converts between, `program.graph`
 */
export function compileProgram(program: Program, plan: ModelPlan, options: CompileOptions = {}): CompiledProgram {
  expectCovered(program, plan)
  return insertConversions(program, plan, options)
}

/** Refuses a plan that does not cover the layers of a program; without layers, one that covers none of its graphs. */
function expectCovered({ name, nodes }: Program, plan: ModelPlan): void {
  const applications = nodes.flatMap((node) => (node.kind === 'application' ? [node] : []))
  const layers = applications.filter(({ within }) => within.some(({ own }) => own))
  const other = layers.find(({ graph }) => !plan.covers(graph.name))
  const none = layers.length === 0 && applications.length > 0 && !applications.some(({ graph }) => plan.covers(graph.name))
  if (other === undefined && !none) return
  const what = other === undefined ? `any graph of ${name}` : `${other.graph.name}, the layers of ${name}`
  throw usageError('plan.model', `plan ${plan.name} does not cover ${what}`, {
    hint: `choose a plan made for it, such as ${defaultPlan}`,
  })
}
