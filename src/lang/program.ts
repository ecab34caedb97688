/**
 * Declaring a program: a whole model as graphs applied to values, with layers that repeat, weights, states that outlive a run, and the
 * sizes it usually has. It says what is computed; how values are held (without padding, as int8, in a layout) is the plan's.
 */
import { inTurn, usageError, type Written } from '../errors.js'
import { isInherited } from '../ir/get_own.js'
import type { Program } from '../ir/program.js'
import { expectKnown } from '../known_names.js'
import { expectArguments, expectParts, told } from './arguments.js'
import type { GraphDecl } from './graph.js'
import type { NamedLayouts } from './layout.js'
import { ProgramBuilder } from './program_builder.js'
import type { Declared, Programming, ProgramTensor } from './program_types.js'
import type { StateDecl, States, Tensors } from './types.js'
import { writtenAt } from './written.js'

/** Results by their names. */
type Results = Readonly<Record<string, ProgramTensor | undefined>>
/** Names of what any configuration returns. */
type NamesOf<R> = R extends unknown ? keyof R & string : never

export interface ProgramConfig<I extends Tensors, C, R extends Results, S extends States> {
  /** Every dimension, with the size it usually has: what plans are priced for, and what checks and benches run with. */
  readonly dims: Readonly<Record<string, number>>
  /** What is known when the program is compiled, with what it usually is: it chooses graphs and how many layers there are. */
  readonly config?: C
  readonly inputs: I
  /** Values that outlive runs, where their names do not depend on the configuration; `p.state` declares others. */
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
  /** Carries the names of results in the type. */
  readonly outputs?: readonly O[]
  /** Carries those of states. */
  readonly states?: readonly S[]
  /** Where its author wrote it. */
  readonly written: Written
  /** The program of a configuration; what is left out is as declared. @throws usage `program.*` for what cannot be put together */
  of(config?: Partial<C>): Program
  /** The graphs that it applies in a configuration. @throws like `of` */
  graphs(config?: Partial<C>): readonly GraphDecl[]
  /** The layouts of its values and of those graphs, by name. @throws like `of` */
  layouts?(config?: Partial<C>): NamedLayouts
}

const parts = ['dims', 'config', 'inputs', 'states', 'build']

/**
 * Declares a program. `build` runs with symbolic values, once for each configuration asked for.
 * @throws usage `program.config` for a part that is missing or is something else, `program.name`, `program.dims`; what `build` does wrong is thrown when it has run, all of it
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
      throw usageError('program.name', `${name}: "${wrong}" cannot be a name`, { hint: 'choose another' })
    }),
    ...Object.entries(dims).map(([dim, size]) => () => {
      if (!Number.isInteger(size) || size < 1)
        throw usageError('program.dims', `${name}: dimension ${dim} cannot be ${told(size)}`, { hint: 'a whole number from 1' })
    }),
  ])
  const written = writtenAt(program)
  const built = (changes: Partial<C> | undefined) => {
    expectKnown('program.config', { at: `program ${name}`, what: 'setting' }, Object.keys(config ?? {}), changes ?? {})
    const builder = new ProgramBuilder(name, dims, written)
    const handles = builder.inputs(inputs)
    const kept = builder.states((states ?? {}) satisfies Readonly<Record<string, StateDecl>>)
    const outputs = builder.run(() =>
      build(
        builder as unknown as Programming,
        handles as unknown as { readonly [K in keyof I]: Declared<I[K]> },
        { ...config, ...changes } as C,
        kept as unknown as { readonly [K in keyof S]: Declared<S[K]> },
      ),
    )
    expectArguments('program.config', `program ${name}`, written, { 'what build returns': [outputs, 'record'] })
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
