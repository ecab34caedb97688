/**
 * A generator as data: the lowered programs of a model folder, and the host's work between them. Positions of the attributes that a generation sets
 * are found by lowering a program twice with different values: the steps that differ hold the attribute.
 */
import type { FloatType } from '../checkpoint/convert.js'
import { usageError } from '../errors.js'
import { type Begin, beginningOf } from '../models/decoding/beginnings.js'
import { llamaGenerator } from '../models/llama/generator.js'
import {
  type Attribute,
  type DecodingMethod,
  type GeneratorParts,
  type InputKind,
  type PartOf,
  type Quantity,
  type StepPart,
  saidValues,
} from '../models/parts/generator_parts.js'
import { seq2seqGenerator } from '../models/seq2seq/generator.js'
import type { GraphApplication } from '../runtime/application.js'
import { prepareWeights } from '../runtime/prepare_weights.js'
import type { Weight } from '../runtime/weight.js'
import { type LowerOptions, lower } from './lower.js'
import type { Lowered } from './lowered.js'
import type { ModelOptions } from './models.js'
import { compiledUnder } from './resolve.js'

/** Position of an attribute that a generation sets. */
export interface SaidAt {
  readonly attribute: Attribute
  readonly step: number
  readonly attr: number
}

export interface LoweredBeginning {
  readonly state: number
  readonly how: Begin
  readonly integer: boolean
  readonly value: number
}

/** Numbers of the states that results are read from; -1 where there is none. */
export const keptStates = [
  'step',
  'finished',
  'history',
  'parents',
  'cumulative',
  'poolScores',
  'poolSteps',
  'poolRows',
  'poolWords',
  'losses',
] as const

interface LoweredPart {
  /** C name of the tables. */
  readonly name: string
  readonly lowered: Lowered
  readonly dims: readonly Quantity[]
}

export interface LoweredReader extends LoweredPart {
  readonly inputs: readonly InputKind[]
}

export interface LoweredStepper extends LoweredPart {
  readonly way: DecodingMethod
  readonly said: readonly SaidAt[]
  readonly beginnings: readonly LoweredBeginning[]
  readonly kept: readonly number[]
}

export interface LoweredGenerator {
  readonly parts: GeneratorParts
  readonly plan: string
  readonly dtype: FloatType
  readonly reader: LoweredReader
  readonly steppers: readonly LoweredStepper[]
  /** Weights, prepared for the plan, without duplicates. */
  readonly weights: Readonly<Record<string, Weight>>
}

type Lowering = Pick<LowerOptions, 'manifest' | 'layouts'>

export const generatorNames = ['llama', 'seq2seq'] as const

export const isGenerator = (name: string): name is (typeof generatorNames)[number] => generatorNames.some((each) => each === name)

/** @throws usage `export.config`, `export.scales`, and what reading the folder and lowering throw */
export async function exportGenerator(
  name: (typeof generatorNames)[number],
  folder: string,
  options: ModelOptions,
  lowering: Lowering,
  signal?: AbortSignal,
): Promise<LoweredGenerator> {
  if (options.scales !== undefined)
    throw usageError('export.scales', `expected a quantised encoder for --scales, got ${name}`, {
      hint: 'its plans quantise rows at run time: omit --scales',
    })
  const { plan, dtype, config = {} } = options
  const opened = name === 'llama' ? llamaGenerator : seq2seqGenerator
  const parts = await opened(folder, dtype, config, signal)
  const applications: GraphApplication[] = []
  const lowerPart = (part: PartOf) => {
    const { compiled: whole, wired } = compiledUnder(part.program, options, { tensors: part.tensors })
    // Results of programs are in states.
    const compiled = { ...whole, outputs: {} }
    applications.push(...wired.applications)
    const at = (values: typeof wired.applications) =>
      lower({
        ...{ ...lowering, compiled, dtype, dims: part.dims, tensors: part.tensors },
        wired: { ...wired, applications: values, outputs: [] },
      })
    return {
      first: at(wired.applications),
      again: (change: (value: number) => number) => at(wired.applications.map((each) => changed(each, change))),
    }
  }
  const dimsOf = ({ dims }: Lowered, { quantities }: PartOf) => dims.map((dim) => meaning(quantities, dim))
  const read = lowerPart(parts.reader).first
  const reader: LoweredReader = {
    ...{ name: `${name}_reader`, lowered: read, dims: dimsOf(read, parts.reader) },
    inputs: read.inputs.map((input) => meaning(parts.reader.inputs, input.name)),
  }
  const steppers = parts.steps.map((part): LoweredStepper => {
    const { first, again } = lowerPart(part)
    const numbers = new Map(first.states.map((state, i) => [state.name, i]))
    return {
      ...{ name: `${name}_${part.method}`, way: part.method, lowered: first, dims: dimsOf(first, part) },
      said: saidIn(first, part, again),
      beginnings: beginningsOf(first, part.method),
      kept: keptStates.map((state) => numbers.get(state) ?? -1),
    }
  })
  return {
    ...{ parts, plan, dtype, reader, steppers },
    weights: prepareWeights(
      [...applications, ...ofLongTexts(applications, parts)],
      parts.weights,
      lowering.layouts,
      parts.exact,
      { stored: parts.stored },
    ),
  }
}

/** The applications as texts beyond some positions have them. */
const ofLongTexts = (applications: readonly GraphApplication[], { long }: GeneratorParts): readonly GraphApplication[] =>
  long === undefined
    ? []
    : applications.map((each) => ({
        ...each,
        weights: Object.fromEntries(Object.entries(each.weights).map(([name, tensor]) => [name, long.tensors[tensor] ?? tensor])),
      }))

function meaning<T>(of: Readonly<Record<string, T>>, name: string): T {
  const found = Object.hasOwn(of, name) ? of[name] : undefined
  if (found === undefined) throw new Error(`internal: ${name} of a generator's program is unknown`)
  return found
}

const changed = (application: GraphApplication, change: (value: number) => number): GraphApplication => ({
  ...application,
  attrs: Object.fromEntries(Object.entries(application.attrs).map(([name, value]) => [name, change(value)])),
})

/** Attributes of steps that a generation sets. */
function saidIn(first: Lowered, { method, said }: StepPart, again: (change: (value: number) => number) => Lowered): SaidAt[] {
  const found = Object.keys(said).flatMap((key): SaidAt[] => {
    const attribute = key as Attribute
    const value = saidValues[attribute]
    const other = again((each) => (each === value ? value + 1 : each))
    const places = first.steps.flatMap(({ attrs }, step) =>
      attrs.flatMap((attr, i) => {
        const theirs = other.steps[step]?.attrs[i]
        if (JSON.stringify(attr) === JSON.stringify(theirs)) return []
        if (attr !== value || theirs !== value + 1) throw new Error(`internal: ${method} has ${attribute} in another form`)
        return [{ attribute, step, attr: i }]
      }),
    )
    if (places.length === 0) throw new Error(`internal: no step of ${method} has ${attribute}`)
    return places
  })
  return found
}

function beginningsOf({ states }: Lowered, way: DecodingMethod): LoweredBeginning[] {
  return states.flatMap(({ name, cleared, dtype }, state) => {
    if (cleared) return []
    const beginning = beginningOf(name, way)
    if (beginning === undefined) return []
    if (dtype !== 'i32' && dtype !== 'f32') throw new Error(`internal: state ${name} holds ${dtype}`)
    return [{ state, how: beginning.how, integer: dtype === 'i32', value: beginning.value ?? 0 }]
  })
}
