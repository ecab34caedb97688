/**
 * Resolves the name passed to an export: a program or a graph under a plan, or one kernel, which becomes a graph of one node. Weights come from the
 * caller, if any.
 */
import { findEntry, kernelSubject } from '../bench/target/subject.js'
import type { Manifest } from '../emit/manifest/manifest.js'
import { HeddleError, usageError } from '../errors.js'
import type { DType } from '../ir/dtype.js'
import type { Graph } from '../ir/graph.js'
import type { Program } from '../ir/program.js'
import type { Conversion } from '../lang/conversion.js'
import type { GraphDecl } from '../lang/graph.js'
import type { ProgramDecl } from '../lang/program/program.js'
import { knownHint } from '../nearest.js'
import { programOf } from '../program/graph_program.js'
import { compileProgram, findPlan } from '../program/index.js'
import { type WiringOptions, wireProgram } from '../runtime/program_wiring.js'
import type { LowerOptions } from './lower.js'

export interface Declarations {
  readonly graphs: Readonly<Record<string, GraphDecl>>
  readonly programs: readonly ProgramDecl[]
  readonly conversions: readonly Conversion[]
}

export interface ResolveOptions {
  readonly plan: string
  readonly dtype: DType
  readonly manifest: Manifest
  readonly declarations: Declarations
  /** Changes to a program's usual configuration. */
  readonly config?: Readonly<Record<string, unknown>> | undefined
  /** Numeric attributes of a graph or a kernel. */
  readonly attrs?: Readonly<Record<string, number>> | undefined
}

type Resolved = Pick<LowerOptions, 'compiled' | 'wired'>

/** @throws usage `export.unknown`, `export.attrs`, `export.config`, `plan.*`, `export.scales` for a plan that needs scales */
export function resolve(name: string, options: ResolveOptions): Resolved {
  const { manifest, declarations, dtype, config, attrs = {} } = options
  const { graphs, programs } = declarations
  const program = programs.find((each) => each.name === name)
  if (program !== undefined) {
    if (Object.keys(attrs).length > 0) throw usageError('export.attrs', `${name} is a program, which has no attributes`)
    return compiledUnder(program.of(config), options)
  }
  if (config !== undefined) throw usageError('export.config', `${name} is not a program: only programs have a configuration`)
  const graph = Object.hasOwn(graphs, name) ? graphs[name]?.graph : undefined
  if (graph !== undefined) {
    const planned = Object.hasOwn(manifest.plans ?? {}, options.plan) ? manifest.plans?.[options.plan]?.[name] : undefined
    return compiledUnder(programOf(graph, numbersOf(graph, attrs), planned), options)
  }
  const entry = findEntry(manifest, name, dtype)
  if (entry === undefined) {
    throw usageError('export.unknown', `there is no program or graph ${name}, and no kernel ${name} in ${dtype}`, {
      hint: knownHint(name, [
        ...programs.map((each) => each.name),
        ...Object.keys(graphs),
        ...manifest.kernels.map(({ op }) => op),
      ]),
    })
  }
  const [form] = kernelSubject(entry).forms
  if (form === undefined || !('graph' in form)) throw new Error(`internal: kernel ${name} is not a graph`)
  const node = form.graph.nodes[0]
  if (node?.kind !== 'op') throw new Error(`internal: kernel ${name} is no op`)
  const known = entry.attrs.map((attr) => attr.name)
  const unknown = Object.keys(attrs).find((attr) => !known.includes(attr))
  if (unknown !== undefined)
    throw usageError('export.attrs', `${name} has no attribute ${unknown}`, { hint: `it has ${known.join(', ') || 'none'}` })
  const single: Graph = { ...form.graph, nodes: [{ ...node, attrs }], typical: entry.fixedDims }
  return compiledUnder(programOf(single, {}), { ...options, plan: 'unfused' })
}

/**
 * @param wiring calibration results, for a plan that needs them; tensor names
 * @throws usage `plan.*`, `export.scales`
 */
export function compiledUnder(
  program: Program,
  { plan, manifest, declarations }: Pick<ResolveOptions, 'plan' | 'manifest' | 'declarations'>,
  wiring: WiringOptions = {},
): Resolved {
  const compiled = compileProgram(program, findPlan(plan, manifest.plans), {
    conversions: declarations.conversions,
    asDeclared: true,
  })
  try {
    return { compiled, wired: wireProgram(compiled, wiring) }
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== 'run.scales') throw error
    throw usageError('export.scales', error.message, {
      hint: 'pass the file that `heddle calibrate` wrote for the model: --model FOLDER --scales FILE; or use a plan that computes in floats, or quantises rows at run time',
      cause: error,
    })
  }
}

function numbersOf({ name, attrs }: Graph, given: Readonly<Record<string, number>>): Readonly<Record<string, number>> {
  const unknown = Object.keys(given).find((attr) => !attrs.includes(attr))
  const missing = attrs.find((attr) => given[attr] === undefined)
  if (unknown === undefined && missing === undefined) return given
  const what = unknown === undefined ? `attribute ${missing} is not given` : `there is no attribute ${unknown}`
  throw usageError('export.attrs', `${name}: ${what}`, {
    hint: `attributes are ${attrs.join(', ') || 'none'}: --attrs name=number`,
  })
}
