/**
 * Declaration of benchmark suites: one subject under several plans, at several shapes and in several storage types. `heddle bench suite` runs the
 * modules that export them; nothing is measured here.
 */
import { z } from 'zod'
import { usageError } from '../errors.js'
import { writtenAt } from './written.js'

/** Something with a name: a graph, a program, a plan. */
interface Named {
  readonly name: string
}

/** Storage types of a suite. */
export type SuiteType = 'f32' | 'f16' | 'bf16'

export interface SuiteConfig {
  /** Name of the suite in tables and histories; by default that of its subject. */
  readonly name?: string
  /** A graph, a program, or the name of one or of a kernel. By default the graph of its plans. */
  readonly subject?: Named | string
  /** Plans, or their names; by default all that cover the subject with the same results. `unfused` leaves a graph as declared. */
  readonly plans?: readonly ((Named & { readonly graph: string }) | string)[]
  /** Extents by dimension; others have the subject's typical ones. */
  readonly shapes: readonly Readonly<Record<string, number>>[]
  /** By default float32 alone. */
  readonly dtypes?: readonly SuiteType[]
  /** Commands that time the same work in another framework, by name. The guide describes what they read and print. */
  readonly peers?: Readonly<Record<string, readonly [string, ...string[]]>>
  /** Plan or peer that times are divided by; by default the first plan. */
  readonly versus?: Named | string
  /** Timed replays of each plan, shape and type. */
  readonly repeats?: number
}

/** A declared suite: names instead of declarations, and every default. */
export interface SuiteDecl {
  readonly kind: 'suite'
  readonly name: string
  readonly subject: string
  /** Undefined for all plans that cover the subject. */
  readonly plans: readonly string[] | undefined
  readonly shapes: readonly Readonly<Record<string, number>>[]
  readonly dtypes: readonly SuiteType[]
  readonly peers: Readonly<Record<string, readonly [string, ...string[]]>>
  /** Undefined for the first plan. */
  readonly versus: string | undefined
  readonly repeats: number
}

const usualRepeats = 30

const count = z.int().positive()
const named = z.union([z.string().min(1), z.object({ name: z.string().min(1) }).transform(({ name }) => name)], {
  error: 'expected a declaration or a name',
})
const plan = z.union(
  [
    z.string().transform((name) => ({ name, graph: undefined })),
    z.object({ name: z.string(), graph: z.string() }).transform(({ name, graph }) => ({ name, graph })),
  ],
  { error: 'expected a plan or its name' },
)

/** @returns a list whose entries differ by their key */
const distinct = <T extends z.ZodType>(entry: T, keyOf: (value: z.output<T>) => string) =>
  z
    .array(entry)
    .min(1)
    .refine((list) => new Set(list.map(keyOf)).size === list.length, { error: 'one of them is given twice' })

const sorted = (shape: Readonly<Record<string, number>>): string => JSON.stringify(Object.entries(shape).sort())

const schema = z.strictObject({
  name: z.string().min(1).optional(),
  subject: named.optional(),
  plans: distinct(plan, ({ name }) => name).optional(),
  shapes: distinct(z.record(z.string(), count), sorted),
  dtypes: distinct(z.enum(['f32', 'f16', 'bf16']), String).default(['f32']),
  peers: z.record(z.string(), z.tuple([z.string().min(1)], z.string())).default({}),
  versus: named.optional(),
  repeats: count.default(usualRepeats),
})

/**
 * Declares a benchmark suite: `defineSuite({ plans: ['unfused', fused], shapes: [{ m: 64 }, { m: 4096 }], dtypes: ['f32', 'f16'] })`.
 * @throws usage `suite.config` for a part that is missing, unknown or of the wrong kind
 */
export function defineSuite(config: SuiteConfig): SuiteDecl {
  const refuse = (message: string, hint: string) =>
    usageError('suite.config', `suite: ${message}`, { hint, about: { written: writtenAt(defineSuite) } })
  const parsed = schema.safeParse(config)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw refuse(
      `${issue?.path.join('.') || 'the configuration'}: ${issue?.message ?? 'expected an object'}`,
      'parts are name, subject, plans, shapes, dtypes, peers, versus, repeats; shapes are required',
    )
  }
  const { name, plans, versus, ...rest } = parsed.data
  const graphs = [...new Set((plans ?? []).flatMap(({ graph }) => graph ?? []))]
  const subject = rest.subject ?? graphs[0]
  if (subject === undefined) throw refuse('subject is missing', 'name a graph, a program or a kernel')
  const other = graphs.find((graph) => graph !== subject)
  if (other !== undefined) throw refuse(`a plan is for ${other}, and the subject is ${subject}`, 'give each graph its own suite')
  const names = plans?.map((each) => each.name)
  const clash = Object.keys(rest.peers).find((peer) => names?.includes(peer))
  if (clash !== undefined) throw refuse(`${clash} is a plan and a peer`, 'rename the peer')
  const known = names === undefined ? undefined : [...names, ...Object.keys(rest.peers)]
  if (versus !== undefined && known !== undefined && !known.includes(versus))
    throw refuse(`versus is ${versus}, which is not timed`, `timed are ${known.join(', ')}`)
  return { kind: 'suite', ...rest, name: name ?? subject, subject, plans: names, versus }
}
