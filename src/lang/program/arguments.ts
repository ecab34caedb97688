/** Checks of the arguments of a graph's application, by name: everything that is missing, unknown or not a number is refused at once. */
import { inTurn, usageError } from '../../errors.js'
import { getOwn } from '../../ir/get_own.js'
import type { ProgramValue } from '../../ir/program.js'
import { expectArguments, expectParts, told } from '../arguments.js'
import type { GraphDecl } from '../graph.js'
import { eachOf, missing, refuseOthers } from './checks.js'
import type { ApplyOptions, ProgramTensor, ProgramWeights } from './types.js'
import { isWeights } from './weights.js'

export interface Arguments {
  readonly inputs: Readonly<Record<string, ProgramTensor>>
  readonly weights: ProgramWeights | Readonly<Record<string, string>>
  readonly attrs: Readonly<Record<string, number>>
}

/** Checks the types of `apply` at run time. @throws usage `program.config` */
export function expectApplication(
  program: string,
  callee: (...given: never[]) => unknown,
  graph: GraphDecl,
  { inputs, weights, attrs }: Arguments,
  options: ApplyOptions,
): void {
  const at = `${program}: apply`
  expectArguments('program.config', at, callee, {
    graph: [graph, 'graph'],
    inputs: [inputs, 'record'],
    weights: [weights, 'weights'],
    attrs: [attrs, 'record'],
    options: [options, 'record'],
  })
  expectParts('program.config', at, callee, ['label', 'dims'], options)
  expectArguments('program.config', at, callee, { label: [options.label, 'text?'], dims: [options.dims, 'textsByName?'] })
}

/**
 * @param resolve returns the value of a handle; undefined if it is unknown
 * @returns inputs and attributes; no inputs if one is unknown, since shapes and types follow from all of them
 * @throws usage `program.missing`, `program.unknown`, `program.attr`, `program.value`
 */
export function argumentsOf(
  at: string,
  { graph, inputs: names }: GraphDecl,
  { inputs, weights, attrs }: Arguments,
  resolve: (handle: ProgramTensor, where: string) => ProgramValue | undefined,
): { readonly given: Readonly<Record<string, ProgramValue>> | undefined; readonly numbers: Readonly<Record<string, number>> } {
  let values: Readonly<Record<string, ProgramValue | undefined>> = {}
  let numbers: Readonly<Record<string, number>> = {}
  inTurn([
    () => {
      values = eachOf(names, (name) => resolve(getOwn(inputs, name) ?? missing(at, 'input', name), `${at}: input ${name}`))
    },
    () => refuseOthers(at, 'input', Object.keys(inputs), names),
    () => {
      if (!isWeights(weights)) eachOf(Object.keys(graph.weights), (name) => getOwn(weights, name) ?? missing(at, 'weight', name))
    },
    () => {
      if (!isWeights(weights)) refuseOthers(at, 'weight', Object.keys(weights), Object.keys(graph.weights))
    },
    () => {
      numbers = eachOf(graph.attrs, (name) => {
        const value = getOwn(attrs, name) ?? missing(at, 'attribute', name)
        if (!Number.isFinite(value))
          throw usageError('program.attr', `${at}: attribute ${name} is ${told(value)}`, { hint: 'expected a finite number' })
        return value
      })
    },
    () => refuseOthers(at, 'attribute', Object.keys(attrs), graph.attrs),
  ])
  const known = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]))
  return { given: known.length < names.length ? undefined : Object.fromEntries(known), numbers }
}
