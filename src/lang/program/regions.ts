/** Repeated regions of a program under construction: carried values, labels of applications, and prefixes of weights. */
import { usageError, type Written } from '../../errors.js'
import type { ProgramValue, Repetition } from '../../ir/program.js'
import { expectArguments, told } from '../arguments.js'
import type { Unknowns } from '../graph_unknown.js'
import { isTensor, sameCarried } from './checks.js'
import type { ProgramTensor } from './types.js'

/** Values that a repetition passes to the next one. */
type Carried = ProgramTensor | Readonly<Record<string, ProgramTensor>>

export class Regions {
  readonly #program: string
  readonly #unknowns: Unknowns
  /** Values of the program so far. */
  readonly #values: readonly ProgramValue[]
  readonly #labels = new Set<string>()
  #within: readonly Repetition[] = []

  constructor(program: string, unknowns: Unknowns, values: readonly ProgramValue[]) {
    this.#program = program
    this.#unknowns = unknowns
    this.#values = values
  }

  /** Enclosing regions, outermost first. */
  get within(): readonly Repetition[] {
    return this.#within
  }

  /** Runs a region that is declared at `written`; returns its last values. Errors of the first repetition are not repeated for the others. */
  carry(
    region: Pick<Repetition, 'name' | 'own'>,
    count: number,
    carried: Carried,
    build: (carried: Carried, index: number) => Carried,
    written: Written,
  ): Carried {
    const at = `${this.#program}: ${region.name}`
    const before = this.#unknowns.refused.length
    return this.#unknowns.attempt(
      () =>
        this.#again(region, count, carried, (now, index) => {
          if (this.#unknowns.refused.length > before) return this.#unknownLike(now)
          const after = build(now, index)
          expectArguments('program.config', at, written, { 'the result of the function': [after, 'record'] })
          if (this.#unknowns.refused.length > before) return this.#unknownLike(after)
          return sameCarried(at, now, after, this.#values, this.#unknowns.has)
        }),
      () => this.#unknownLike(carried),
    )
  }

  /** Unknown values of the same names. */
  #unknownLike(carried: Carried): Carried {
    if (isTensor(carried)) return this.#unknowns.make()
    return Object.fromEntries(Object.keys(carried).map((name) => [name, this.#unknowns.make()]))
  }

  /** Runs `build` for each repetition, on the result of the previous one. @throws usage `program.repeat` for an invalid number of repetitions */
  #again<T>(region: Pick<Repetition, 'name' | 'own'>, count: number, first: T, build: (now: T, index: number) => T): T {
    if (!Number.isInteger(count) || count < 0) {
      throw usageError(
        'program.repeat',
        `${this.#program}: ${region.name}: expected a number of repetitions, got ${told(count)}`,
        {
          hint: 'expected a whole number of at least 0',
        },
      )
    }
    const outside = this.#within
    let now = first
    try {
      for (let index = 0; index < count; index++) {
        this.#within = [...outside, { ...region, index }]
        now = build(now, index)
      }
    } finally {
      this.#within = outside
    }
    return now
  }

  /** Prefix of weight names here: the enclosing layers. */
  weights(prefix = ''): string {
    const layers = this.#within.flatMap(({ name, index, own }) => (own ? [`${name}${index}`] : []))
    return [...layers, prefix].filter((part) => part !== '').join('.')
  }

  /**
   * Label of an application. By default it is the name of its layer, if that is free, or else the graph's.
   * @throws usage `program.label` for a label that another application has
   */
  label(label: string | undefined, graph: string): string {
    const path = this.#within.map(({ name, index }) => `${name}${index}`)
    const below = (last: string): string => [...path, last].join('/')
    const layer = label === undefined && this.#within.at(-1)?.own === true ? [path.join('/')] : []
    const choices = [...layer, below(label ?? graph)]
    const found = choices.find((choice) => !this.#labels.has(choice))
    if (found === undefined) {
      throw usageError('program.label', `${this.#program}: two applications are called ${choices.at(-1)}`, {
        hint: "give them names of their own: p.apply(graph, inputs, weights, attrs, { label: '...' })",
      })
    }
    this.#labels.add(found)
    return found
  }
}
