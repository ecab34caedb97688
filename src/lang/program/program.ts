/**
 * Declaration of programs: a whole model as graphs applied to values, with repeated layers, weights, states that persist between runs, and
 * typical sizes. A program defines the computation; the plan defines the storage of values (without padding, as int8, in a layout).
 */
import { inTurn, usageError, type Written } from '../../errors.js'
import { isInherited } from '../../ir/get_own.js'
import type { Program } from '../../ir/program.js'
import { expectKnown } from '../../known_names.js'
import { expectArguments, expectParts, told } from '../arguments.js'
import type { GraphDecl } from '../graph.js'
import type { NamedLayouts } from '../layout.js'
import type { StateDecl, States, Tensors } from '../types.js'
import { writtenAt } from '../written.js'
import { ProgramBuilder } from './builder.js'
import type { Declared, Programming, ProgramTensor } from './types.js'

/** Results by name. */
type Results = Readonly<Record<string, ProgramTensor | undefined>>
/** Names of the results of any configuration. */
type NamesOf<R> = R extends unknown ? keyof R & string : never

export interface ProgramConfig<I extends Tensors, C, R extends Results, S extends States> {
  /** Every dimension, with its typical size, for which plans are priced, and with which checks and benches run. */
  readonly dims: Readonly<Record<string, number>>
  /** Compile-time settings, with their defaults: they choose graphs and the number of layers. */
  readonly config?: C
  readonly inputs: I
  /** Values that persist between runs and whose names do not depend on the configuration; `p.state` declares others. */
  readonly states?: S
  readonly build: (
    p: Programming,
    inputs: { readonly [K in keyof I]: Declared<I[K]> },
    config: C,
    states: { readonly [K in keyof S]: Declared<S[K]> },
  ) => R
}

export interface ProgramDecl<I extends Tensors = Tensors, C = unknown, O extends string = string, S extends string = string> {
  readonly name: string
  readonly dims: Readonly<Record<string, number>>
  readonly inputs: I
  /** Names of results, carried in the type. */
  readonly outputs?: readonly O[]
  /** Names of states, carried in the type. */
  readonly states?: readonly S[]
  /** Source location. */
  readonly written: Written
  /** The program of a configuration; omitted settings have their defaults. @throws usage `program.*` for parts that do not fit together */
  of(config?: Partial<C>): Program
  /** Graphs that it applies in a configuration. @throws like `of` */
  graphs(config?: Partial<C>): readonly GraphDecl[]
  /** Layouts of its values and of those graphs, by name. @throws like `of` */
  layouts?(config?: Partial<C>): NamedLayouts
}

const parts = ['dims', 'config', 'inputs', 'states', 'build']

/**
 * Declares a program. `build` runs with symbolic values, once for each requested configuration.
 * @throws usage `program.config` for a part that is missing or of the wrong kind, `program.name`, `program.dims`; all errors of `build`
 * are thrown together after it has run
 */
export function program<
  const I extends Tensors,
  C extends object = Record<never, never>,
  R extends Results = Results,
  const S extends States = States,
>(name: string, declared: ProgramConfig<I, C, R, S>): ProgramDecl<I, C, NamesOf<R>, keyof S & string> {
  expectArguments('program.config', 'program', program, { name: [name, 'text'] })
  expectArguments('program.config', `program ${name}`, program, { config: [declared, 'record'] })
  expectParts('program.config', `program ${name}`, program, parts, declared)
  const { dims, config, inputs, states, build } = declared
  expectArguments('program.config', `program ${name}`, program, {
    dims: [dims, 'record'],
    config: [config, 'record?'],
    inputs: [inputs, 'tensors'],
    states: [states, 'tensors?'],
    build: [build, 'function'],
  })
  inTurn([
    ...[name, ...Object.keys(inputs), ...Object.keys(dims)].filter(isInherited).map((wrong) => () => {
      throw usageError('program.name', `${name}: "${wrong}" cannot be a name`, { hint: 'choose another name' })
    }),
    ...Object.entries(dims).map(([dim, size]) => () => {
      if (!Number.isInteger(size) || size < 1)
        throw usageError('program.dims', `${name}: dimension ${dim} cannot be ${told(size)}`, {
          hint: 'expected a positive integer',
        })
    }),
  ])
  const written = writtenAt(program)
  const built = (changes: Partial<C> | undefined) => {
    expectKnown('program.config', { at: `program ${name}`, what: 'setting' }, Object.keys(config ?? {}), changes ?? {})
    const builder = new ProgramBuilder(name, dims, written)
    const handles = builder.inputs(inputs)
    const stateHandles = builder.states((states ?? {}) satisfies Readonly<Record<string, StateDecl>>)
    const outputs = builder.run(() =>
      build(
        builder as unknown as Programming,
        handles as unknown as { readonly [K in keyof I]: Declared<I[K]> },
        { ...config, ...changes } as C,
        stateHandles as unknown as { readonly [K in keyof S]: Declared<S[K]> },
      ),
    )
    expectArguments('program.config', `program ${name}`, written, { 'the result of build': [outputs, 'record'] })
    const results = Object.entries(outputs).flatMap(([output, value]) => (value === undefined ? [] : [[output, value] as const]))
    return { built: builder.finish(Object.fromEntries(results)), graphs: builder.graphs, layouts: builder.layouts.all }
  }
  return {
    name,
    dims,
    inputs,
    written,
    of: (changes) => built(changes).built,
    graphs: (changes) => built(changes).graphs,
    layouts: (changes) => built(changes).layouts,
  }
}
