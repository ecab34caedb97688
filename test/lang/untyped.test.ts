/**
 * Declarations from untyped JavaScript: every argument to the exports of `heddle`, and to the calls of build functions, is accepted or refused by a
 * typed error with a hint, and none causes a TypeError from inside.
 */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { autoPlan, graph, layout, monoid, op, plan, program, state, tensor } from '../../src/index.js'
import { refusal } from '../refusal.js'

const copy = op('copy', {
  dims: ['m', 'n'],
  inputs: { x: tensor('f32', 'm n') },
  outputs: { y: tensor('f32', 'm n') },
  attrs: { scale: 1 },
  body:
    ({ x }, { scale }) =>
    (m, c) => ({ y: x(m, c) * scale }),
})
const inputs = { x: tensor('f32', 'm n') }
const copied = graph('copied', {
  inputs,
  weights: { w: tensor('f32', 'n') },
  attrs: ['by'],
  build: (g, { x }) => {
    const { y } = g.apply(copy, { x })
    return { nodes: { y }, outputs: { y } }
  },
})
const dims = { m: 2, n: 3 }
const made = program('made', { dims, inputs, build: (p, { x }) => ({ y: p.apply(copied, { x }, p.weights('w'), { by: 1 }).y }) })

/** Wrong arguments: no value, values of every kind, and records that are nearly right. */
const odd = fc.oneof(
  fc.constantFrom<unknown>(undefined, null, Symbol('odd'), 10n, Object.create(null), () => undefined, new Map(), Number.NaN),
  fc.constantFrom<unknown>({}, [], { name: 'odd' }, { value: 0 }, { value: 'length' }, { of: 5 }, { of: () => 1, prefix: 2 }),
  fc.constantFrom<unknown>({ x: null }, { x: 5 }, { x: { value: Symbol('odd') } }, { constructor: 1 }, { type: 'f32', dims: 3 }),
  fc.constantFrom<unknown>(copy, copied, made, inputs, tensor('f32', 'm n'), copied.graph, { x: tensor('odd', '*') }),
  fc.anything({ withBigInt: true, withNullPrototype: true, maxDepth: 2 }),
)
const arguments_ = fc.array(odd, { maxLength: 5 })

type Loose = (...given: unknown[]) => unknown
const loose = (callee: unknown): Loose => callee as Loose

/** A record with some parts replaced or left out. */
const spoilt = (whole: object, parts: Readonly<Record<string, unknown>>): object => ({ ...whole, ...parts })
const partsOf = (whole: object) =>
  fc.record(Object.fromEntries(Object.keys(whole).map((key) => [key, odd])), { requiredKeys: [] })

/** Runs a call that may be refused. @throws for any error that is not typed or has no hint */
function expectTypedError(act: () => unknown): void {
  try {
    act()
  } catch (error) {
    if (!(error instanceof HeddleError)) throw error
    for (const each of error.all.length > 0 ? error.all : [error]) if (each.message === '') throw error
  }
}

/** Members of a builder, by which build functions are tried. */
const graphCalls = ['apply', 'matmul', 'view'] as const
const programCalls = ['apply', 'repeat', 'steps', 'view', 'weights', 'state', 'next', 'ragged'] as const
const member = (of: object, name: string, given: readonly unknown[]): unknown =>
  loose(Reflect.get(of, name)).apply(of, [...given])

const opConfig = { dims: ['m', 'n'], inputs, outputs: inputs, types: {}, attrs: {}, updates: {}, body: () => () => ({ x: 0 }) }
const graphConfig = {
  inputs,
  weights: {},
  attrs: [],
  dims: [],
  typical: {},
  build: (_: unknown, { x }: { x: unknown }) => ({ nodes: {}, outputs: { x } }),
}
const planConfig = {
  groups: { one: ['y'] },
  packed: {},
  stacked: {},
  quantised: {},
  edges: {},
  schedules: {},
  library: [],
  tuned: [],
}
const programConfig = { dims, inputs, states: {}, config: {}, build: (_: unknown, { x }: { x: unknown }) => ({ y: x }) }

const subjects: readonly (readonly [string, fc.Arbitrary<() => unknown>])[] = [
  ...Object.entries({ op, graph, plan, autoPlan, program, layout, monoid, tensor, state }).map(
    ([name, callee]) => [name, arguments_.map((given) => () => loose(callee)(...given))] as const,
  ),
  ['op of parts', partsOf(opConfig).map((parts) => () => loose(op)('tried', spoilt(opConfig, parts)))],
  ['graph of parts', partsOf(graphConfig).map((parts) => () => loose(graph)('tried', spoilt(graphConfig, parts)))],
  ['plan of parts', partsOf(planConfig).map((parts) => () => loose(plan)('tried', copied, spoilt(planConfig, parts)))],
  [
    'autoPlan of parts',
    partsOf({ device: 0, dims: 0, packed: 0, stacked: 0 }).map((parts) => () => loose(autoPlan)('tried', copied, parts)),
  ],
  [
    'program of parts',
    partsOf(programConfig).map((parts) => () => {
      const declared = loose(program)('tried', spoilt(programConfig, parts)) as typeof made
      return declared.of()
    }),
  ],
  ['a configuration', odd.map((config) => () => loose(made.of)(config))],
  ['layout of parts', partsOf({ offset: 0, size: 0 }).map((parts) => () => loose(layout)('tried', ['r', 'c'], parts))],
  ['monoid of parts', partsOf({ identity: 0, combine: 0 }).map((parts) => () => loose(monoid)(parts))],
  ['state with options', partsOf({ cleared: 0, layout: 0 }).map((options) => () => loose(state)('f32', 'm', options))],
  ...graphCalls.map((call) => {
    const first = call === 'apply' ? copy : call === 'matmul' ? 'm k, n k -> m n' : undefined
    return [
      `${call} in a graph`,
      fc.tuple(fc.boolean(), fc.boolean(), arguments_).map(([isStarted, isHandled, given]) => () => {
        const build = (g: object, { x }: { x: unknown }) => {
          const begun = [
            ...(isStarted && first !== undefined ? [first] : []),
            ...(isHandled ? [call === 'apply' ? { x } : x] : []),
          ]
          const y = member(g, call, [...begun, ...given])
          return { nodes: { y }, outputs: { y } }
        }
        return loose(graph)('tried', { inputs, weights: {}, build })
      }),
    ] as const
  }),
  ...programCalls.map(
    (call) =>
      [
        `${call} in a program`,
        fc.tuple(fc.integer({ min: 0, max: 3 }), arguments_).map(([right, given]) => () => {
          const build = (p: object, { x }: { x: unknown }) => {
            const whole: Readonly<Record<(typeof programCalls)[number], readonly unknown[]>> = {
              apply: [copied, { x }, { w: 'w' }, { by: 1 }],
              repeat: ['layer', 1, x],
              steps: ['step', 1, { x }],
              view: [x],
              weights: [],
              state: ['kept', inputs.x],
              next: [x],
              ragged: [],
            }
            const y = member(p, call, [...whole[call].slice(0, right), ...given])
            if (call === 'weights') member(y as object, 'of', given)
            if (call === 'ragged') return { y: loose(y)(given[0]) }
            return { x, y }
          }
          return (loose(program)('tried', { dims, inputs, build }) as typeof made).of()
        }),
      ] as const,
  ),
  [
    'the carried value',
    fc.tuple(odd, odd, fc.boolean()).map(([before, after, isCarried]) => () => {
      const build = (p: object, { x }: { x: unknown }) => ({
        y: member(p, 'repeat', ['layer', 2, isCarried ? x : before, () => after]),
      })
      return (loose(program)('tried', { dims, inputs, build }) as typeof made).of()
    }),
  ],
]

it.each(subjects)('%s', (_, calls) => {
  fc.assert(fc.property(calls, expectTypedError), { numRuns: 300 })
})

it('valid arguments are accepted, and a TypeError would be noticed', () => {
  expect(made.of().nodes).toHaveLength(1)
  expect(() =>
    expectTypedError(() => {
      throw new TypeError('of the twin')
    }),
  ).toThrow('of the twin')
})

it.each<[string, () => unknown, string, string]>([
  ['nothing', () => loose(program)('p'), 'program.config', 'program p: config is undefined'],
  ['no dims', () => loose(program)('p', { inputs, build: () => ({}) }), 'program.config', 'program p: dims is undefined'],
  ['a number for a function', () => loose(program)('p', { dims, inputs, build: 3 }), 'program.config', 'program p: build is 3'],
  [
    'nothing returned',
    () => (loose(program)('p', { dims, inputs, build: () => undefined }) as typeof made).of(),
    'program.config',
    'program p: the result of build is undefined',
  ],
  [
    'no graph',
    () => program('p', { dims, inputs, build: (p) => loose(p.apply).call(p, undefined, {}) as never }).of(),
    'program.config',
    'p: apply: graph is undefined',
  ],
  ['no body', () => loose(op)('o', { ...opConfig, body: undefined }), 'op.config', 'op o: body is undefined'],
  ['no groups', () => loose(plan)('o', copied, {}), 'plan.declared', 'plan o: groups is undefined'],
  ['no dimensions', () => loose(tensor)('f32'), 'tensor.config', 'tensor: dims is undefined'],
  ['axes as a text', () => loose(layout)('l', 'r c', {}), 'layout.config', 'layout: axes is "r c"'],
  ['no identity', () => loose(monoid)({ combine: () => ({}) }), 'monoid.config', 'monoid: identity is undefined'],
])('%s is refused by its name', (_, act, code, message) => {
  const error = refusal(act)
  expect(error).toMatchObject({ class: 'usage', code, message })
  expect(error.hint).toBeDefined()
  expect(error.about?.written?.stack).toContain('untyped.test.ts')
})

/** A declaration with an extra field, and its refusal. */
const parts: readonly (readonly [name: string, act: () => unknown, code: string, said: string, hint: string])[] = [
  ['op', () => loose(op)('tried', { ...opConfig, attr: {} }), 'op.config', 'op tried has no part attr', 'did you mean attrs?'],
  ['graph', () => loose(graph)('tried', { ...graphConfig, typicals: {} }), 'graph.config', 'typicals', 'did you mean typical?'],
  ['plan', () => loose(plan)('tried', copied, { groups: {}, group: {} }), 'plan.declared', 'group', 'did you mean groups?'],
  [
    'plan packed',
    () => loose(plan)('tried', copied, { groups: {}, packed: { batch: 'b', seq: 's', token: 't' } }),
    'plan.declared',
    'plan tried: packed has no part token',
    'did you mean tokens?',
  ],
  [
    'plan byRows',
    () => loose(plan)('tried', copied, { groups: {}, byRows: { 0: 'few' } }),
    'plan.declared',
    'plan tried: byRows has "0", which is no number of rows',
    "expected numbers of rows with plans, such as { 1: 'one-row', 16: 'few-rows' }",
  ],
  [
    'plan quantised',
    () => loose(plan)('tried', copied, { groups: {}, quantised: { value: [] } }),
    'plan.declared',
    'quantised has no part value',
    'did you mean values?',
  ],
  [
    'plan edge',
    () => loose(plan)('tried', copied, { groups: {}, edges: { y: { type: 'f16' } } }),
    'plan.declared',
    'edge y has no part type',
    'did you mean dtype?',
  ],
  [
    'plan schedule',
    () => loose(plan)('tried', copied, { groups: {}, schedules: { y: { kind: 'elementwise', thread: 2 } } }),
    'plan.declared',
    'schedule of y has no part thread',
    'did you mean threads?',
  ],
  [
    'autoPlan',
    () => loose(autoPlan)('tried', copied, { device: 'h200', type: 'f16' }),
    'plan.declared',
    'type',
    'did you mean dtype?',
  ],
  ['program', () => loose(program)('tried', { ...programConfig, state: {} }), 'program.config', 'state', 'did you mean states?'],
  [
    'configuration',
    () => loose(made.of)({ layers: 2 }),
    'program.config',
    'program made has no setting layers',
    'there are no settings',
  ],
  [
    'layout',
    () => loose(layout)('tried', ['r'], { offset: () => 0, sizes: () => 1 }),
    'layout.config',
    'sizes',
    'did you mean size?',
  ],
  [
    'monoid',
    () => loose(monoid)({ identity: {}, combined: 0, combine: () => ({}) }),
    'monoid.config',
    'combined',
    'did you mean combine?',
  ],
  ['state', () => loose(state)('f32', 'm', { clear: true }), 'tensor.config', 'clear', 'did you mean cleared?'],
]

it.each(parts)('refuses a part that %s does not have, by its name', (_, act, code, said, hint) => {
  const error = refusal(act)
  expect(error).toMatchObject({ code, message: expect.stringContaining(said), hint: expect.stringContaining(hint) })
})
