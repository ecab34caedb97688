/**
 * Compiles programs ahead of any run, each in its default configuration under every plan made for it. Incompatible storage forms are then reported
 * when specs are compiled, and the kernels that programs need between graphs are known.
 */

import type { PlannedGraphs } from '../emit/manifest/graphs.js'
import { concerning, HeddleError } from '../errors.js'
import type { Graph } from '../ir/graph.js'
import type { Program } from '../ir/program.js'
import type { Conversion } from '../lang/conversion.js'
import type { ProgramDecl } from '../lang/program/program.js'
import type { CompiledProgram } from './compiled.js'
import { compileProgram } from './index.js'
import { findPlan, planNames } from './plans.js'

/** A program under a plan, with its inputs and results in the declared form. */
export interface AheadProgram {
  readonly decl: ProgramDecl
  readonly program: Program
  readonly compiled: CompiledProgram
}

export interface Ahead {
  readonly programs: readonly AheadProgram[]
  /** Errors of programs that a plan covers but does not compile for, if it compiles for another program. */
  readonly refused: readonly HeddleError[]
  /** Every graph that one of the programs runs, including conversions between graphs. */
  readonly graphs: readonly Graph[]
}

/** True for the error of a plan that does not cover a program's layers: it is made for another program. */
const isOther = (error: unknown): boolean => error instanceof HeddleError && error.code === 'plan.model'

/**
 * @throws usage `program.*` for a program that cannot be built, `plan.form`, `plan.ragged` for a plan that compiles for none of the programs that it
 * covers
 */
export function compileAhead(decls: readonly ProgramDecl[], planned: PlannedGraphs, conversions: readonly Conversion[]): Ahead {
  const built = decls.map((decl) => ({ decl, program: decl.of() }))
  const programs: AheadProgram[] = []
  const refused: HeddleError[] = []
  const graphs = new Set<Graph>()
  for (const name of planNames(planned)) {
    const plan = findPlan(name, planned)
    const failed: HeddleError[] = []
    let fit = 0
    for (const { decl, program } of built) {
      const compile = (asDeclared: boolean): CompiledProgram =>
        concerning({ written: decl.written }, () => compileProgram(program, plan, { conversions, asDeclared }))
      try {
        const compiled = compile(true)
        const forms = [compiled, compile(false)]
        fit += 1
        programs.push({ decl, program, compiled })
        for (const each of forms) for (const graph of Object.values(each.graphs)) graphs.add(graph)
      } catch (error) {
        if (isOther(error)) continue
        if (!(error instanceof HeddleError)) throw error
        failed.push(error)
      }
    }
    const [first] = failed
    if (first !== undefined && fit === 0) throw first
    refused.push(...failed)
  }
  return { programs, refused, graphs: [...graphs] }
}
