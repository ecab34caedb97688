/** A fault planted after each pass of the schedule is detected there, under the name of the pass; without one, every kernel passes. */
import { describe, expect, it } from 'vitest'
import { call, dim, f32, i32, index, local } from '../../src/ir/build.js'
import type { Expr } from '../../src/ir/expr.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Interval } from '../../src/schedule/divided/update_range.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import type { MappedKernel, RowProgram, Variant } from '../../src/schedule/mapped.js'
import type { LoopStore, NormalKernel, NormalStmt, RowDef } from '../../src/schedule/normalise/normal.js'
import type { Pass, Step } from '../../src/schedule/normalise/passes.js'
import { centre } from '../ir/kernels.js'
import * as fixtures from './fixtures.js'
import { ranked } from './ranked.js'

const x = (at: Expr): Expr => fixtures.load('x', index('m0'), at)

type Passes = typeof schedulePasses

const mapped = (kernel: Kernel, passes: Partial<Passes> = {}, schedule?: Parameters<typeof mapKernel>[2]): MappedKernel =>
  mapKernel(
    { kernel, types: Object.hasOwn(kernel.types, 'T') ? { T: 'f16' } : {}, dims: kernel === ranked ? { k: 4 } : {} },
    undefined,
    schedule,
    { ...schedulePasses, ...passes },
  )

/** A monoid of two fields over as much of a row as the second pass finds, which needs the first. */
const parts = fixtures.kernel(
  'parts',
  'm n',
  [fixtures.axis('m0', 'm')],
  [fixtures.tensor('x', 'in', 'm n'), fixtures.tensor('y', 'out', 'm')],
  [
    { kind: 'reduce', name: 'all', type: 'f32', monoid: 'sum', length: dim('n'), index: 'e', value: x(index('e')) },
    {
      kind: 'reduce',
      name: 'most',
      type: 'i32',
      monoid: 'argmax',
      length: dim('n'),
      index: 'd',
      value: call('mul', x(index('d')), local('all')),
    },
    {
      kind: 'merge',
      names: ['total', 'count'],
      monoid: {
        fields: [
          { name: 'sum', type: 'f32', identity: 0 },
          { name: 'terms', type: 'i32', identity: 0 },
        ],
        left: ['a_sum', 'a_terms'],
        right: ['b_sum', 'b_terms'],
        combine: [call('add', local('a_sum'), local('b_sum')), call('add', local('a_terms', 'i32'), local('b_terms', 'i32'))],
      },
      length: local('most', 'i32'),
      index: 'c',
      values: [x(index('c')), i32(1)],
    },
    { kind: 'store', tensor: 'y', indices: [index('m0')], value: call('div', local('total'), local('count', 'i32')) },
  ],
)

it.each([...fixtures.everything, ranked, parts])('passes $name', (kernel) => expect(() => mapped(kernel)).not.toThrow())

describe('normalising', () => {
  const plant =
    (change: (normal: NormalKernel) => Partial<NormalKernel>, kernel: Kernel = fixtures.softmax) =>
    (problem: string) =>
      expect(() =>
        mapped(kernel, {
          normalise: (instance) => {
            const normal = schedulePasses.normalise(instance)
            return { ...normal, ...change(normal) }
          },
        }),
      ).toThrow(problem)
  const statements = (change: (s: NormalStmt) => readonly NormalStmt[]) => (normal: NormalKernel) => ({
    statements: normal.statements.flatMap(change),
  })
  const rows = (change: (row: RowDef) => Partial<RowDef>) => (normal: NormalKernel) => ({
    rows: new Map([...normal.rows].map(([name, row]) => [name, { ...row, ...change(row) } as RowDef])),
  })
  const store = (change: Partial<LoopStore>) => statements((s) => [s.kind === 'loopStore' ? { ...s, ...change } : s])
  const after = 'internal: after normalising: kernel softmax: '

  it('stores every output exactly once', () => {
    plant(statements((s) => (s.kind === 'loopStore' ? [] : [s])))(`${after}output y is stored 0 times`)
    plant(statements((s) => (s.kind === 'loopStore' ? [s, s] : [s])))(`${after}output y is stored 2 times`)
    plant(store({ tensor: 'x' }))(`${after}x is not an output`)
    plant(store({ indices: [index('m0')] }))('has 1 indices, the rank is 2')
  })

  it('binds names once, and before they are read', () => {
    plant(({ statements: all }) => ({ statements: [...all].reverse() }))('is not in scope')
    plant(statements((s) => (s.kind === 'reduce' ? [{ ...s, name: 'v' }] : [s])))('name v is introduced twice')
    plant(store({ value: local('k') }))('local k is not in scope')
  })

  it('has the stated types', () => {
    plant(store({ value: i32(1) }))('the store to y is i32, the tensor holds f32')
    plant(statements((s) => (s.kind === 'reduce' ? [{ ...s, type: 'i32' }] : [s])))('top is f32, but says i32')
    plant(rows(() => ({ type: 'i32' })))('says')
    plant(
      statements((s) => (s.kind === 'histogram' ? [{ ...s, value: f32(1) }] : [s])),
      fixtures.tally,
    )('a histogram counts integers')
    plant(
      statements((s) => (s.kind === 'topK' ? [{ ...s, count: 0 }] : [s])),
      ranked,
    )('0 elements are ranked')
    plant(
      statements((s) => (s.kind === 'topK' ? [{ ...s, value: i32(1) }] : [s])),
      ranked,
    )('only floats are ranked')
  })

  it('reads rows at the index of their loop, and rows that there are', () => {
    plant(store({ value: { kind: 'element', type: 'f32', row: 'e', index: i32(0) } }))('e[0] is read at another place')
    plant(() => ({ rows: new Map() }))('there is no row v')
    const shared = statements((s) => (s.kind === 'sharedRow' ? [{ ...s, length: 8 }] : [s]))
    plant(shared, ranked)('total has memory for 8 elements')
    plant(
      statements((s) => (s.kind === 'sharedRow' ? [] : [s])),
      ranked,
    )('row total is not in scope')
  })

  it('has valid loops and chunks', () => {
    plant(() => ({ loops: [] }))('is none of the kernel')
    plant(rows((row) => (row.kind === 'loaded' ? { run: 2 } : {})))('row v is loaded in runs of 2, but lies otherwise')
    plant(rows((row) => (row.kind === 'loaded' ? { dtype: 'f32' } : {})))('has elements of f32')
    plant(() => ({ elementwise: true }))('something ties the elements of a row together')
    plant(() => ({ axes: [{ index: 'm0', dim: 'q' }] }))('unknown dimension q')
  })
})

describe.each(['ordering passes', 'simplifying'])('%s', (pass) => {
  const name = pass === 'simplifying' ? 'simplifySteps' : 'planSteps'
  const plant = (change: (steps: readonly Step[]) => Step[], kernel: Kernel = fixtures.softmax) => {
    const faulty: Partial<Passes> =
      name === 'planSteps'
        ? { planSteps: (...args) => change(schedulePasses.planSteps(...args)) }
        : { simplifySteps: (...args) => change(schedulePasses.simplifySteps(...args)) }
    return (problem: string) => expect(() => mapped(kernel, faulty)).toThrow(problem)
  }
  const passes = (change: (pass: Pass, at: number) => Partial<Pass>) => (steps: readonly Step[]) =>
    steps.map((step, at) => (step.kind === 'pass' ? { ...step, pass: { ...step.pass, ...change(step.pass, at) } } : step))
  const after = `internal: after ${pass}: kernel softmax: `

  it('has every step once and in order', () => {
    plant((steps) => [...steps].reverse())(`${after}row e is not in scope`)
    plant((steps) => steps.slice(0, -1))(`${after}output y is stored 0 times`)
    plant((steps) => [...steps, ...steps.slice(-1)])(after)
    plant((steps) => steps.slice(1))(after)
  })

  it('computes or stores the inputs of a pass', () => {
    plant(passes(() => ({ rows: [] })))('is not in scope')
    plant(passes(({ rows }) => ({ rows: rows.map((row) => ({ ...row, keep: false })) })))('row v is not in scope')
    plant(passes(({ rows }) => ({ rows: rows.map((row) => ({ ...row, keep: false })).reverse() })))('is not in scope')
    plant(
      passes(({ rows }) => ({ rows: [...rows, ...rows] })),
      fixtures.softmax,
    )(after)
  })

  it('reads rows at the index of its loop', () => {
    const elsewhere: Expr = { kind: 'element', type: 'f32', row: 'e', index: i32(0) }
    plant(
      passes(({ statements }) => ({
        statements: statements.map((s) => (s.kind === 'loopStore' ? { ...s, value: elsewhere } : s)),
      })),
    )('e[0] is read at another place than the index of its loop')
  })

  it('loads only under conditions', () => {
    const guard = (value: Expr) =>
      passes(({ rows }) => ({ rows: rows.map((row) => (row.kind === 'loaded' ? { ...row, guard: value } : row)) }))
    plant(guard(i32(1)))('its guard is no boolean')
    plant(guard(call('gt', local('k', 'i32'), i32(0))))('local k is not in scope')
  })

  it('names the statement or row, and the pass, of a fault', () => {
    const values = (...made: readonly Expr[]) =>
      passes(({ statements }) => ({ statements: statements.map((s) => (s.kind === 'merge' ? { ...s, values: made } : s)) }))
    plant(
      values(f32(1), i32(1), f32(2)),
      parts,
    )('a value is of no field\n  in (total, count) merge (1.0, 1, 2.0) of the pass over c')
    plant(values(f32(1), f32(2)), parts)('terms is f32, but says i32\n  in (total, count) merge (1.0, 2.0) of the pass over c')
    plant(values(i32(1), i32(1)), parts)('sum is i32, but says f32')
    plant(passes(({ rows }) => ({ rows: rows.map((row) => ({ ...row, type: 'i32' as const })) })))(
      '\n  in row v of the pass over c',
    )
  })

  it('runs over a loop of the kernel, and does something', () => {
    plant(passes(({ loop }) => ({ loop: { ...loop } })))('runs over no loop of the kernel')
    plant(passes(() => ({ statements: [] })))(`${after}the pass over c computes nothing`)
    plant(passes(({ rows }) => ({ rows: rows.map((row) => ({ ...row, type: 'i32' as const })) })))('says i32')
  })
})

describe('choosing variants', () => {
  const plant =
    (change: (found: MappedKernel) => Partial<MappedKernel>, kernel: Kernel = fixtures.softmax) =>
    (problem: string) =>
      expect(() =>
        mapped(kernel, {
          chooseVariants: (...args) => {
            const found = schedulePasses.chooseVariants(...args)
            return { ...found, ...change(found) }
          },
        }),
      ).toThrow(problem)
  const program =
    (change: (program: RowProgram) => Partial<RowProgram>) =>
    ({ program: given }: MappedKernel) => ({
      program: given.kind === 'rows' ? { ...given, ...change(given) } : given,
    })
  const variants = (change: (variant: Variant) => Partial<Variant>) =>
    program(({ variants: all }) => ({ variants: all.map((each) => ({ ...each, ...change(each) })) }))
  const after = 'internal: after choosing variants: kernel softmax: '

  it('has a width that divides the required extents', () => {
    plant(() => ({ vec: 3 }))(`${after}elements per chunk: expected a power of two up to 8, got 3`)
    plant(() => ({ vec: 16 }))(`${after}elements per chunk: expected a power of two up to 8, got 16`)
    const runs = (found: MappedKernel): Partial<MappedKernel> => ({
      program: found.program.kind === 'elementwise' ? { ...found.program, steps: cut(found.program.steps) } : found.program,
    })
    const cut = (steps: readonly Step[]): Step[] =>
      steps.map((step) =>
        step.kind === 'pass'
          ? {
              ...step,
              pass: { ...step.pass, rows: step.pass.rows.map((row) => (row.kind === 'loaded' ? { ...row, run: 12 } : row)) },
            }
          : step,
      )
    plant(runs, fixtures.pointwise)('chunks of 8 do not divide the runs of 12')
  })

  it('has a variant for every row, each of which can compute it', () => {
    plant(program(({ variants: all }) => ({ variants: all.slice(0, -1) })))(`${after}the last variant does not take every row`)
    plant(variants(({ limit }) => ({ limit: { ...limit, whole: 8 } })))(`${after}the last variant does not take every row`)
    plant(program(() => ({ variants: [] })))(`${after}there is no variant`)
    plant(variants(() => ({ name: 'same' })))('two variants have one name')
    plant(variants(({ limit }) => ({ limit: { ...limit, length: (limit.length ?? 0) * 2 } })))(after)
    plant(variants(() => ({ team: { kind: 'block', lanes: 48 } })))('has 48 threads a block')
    plant(variants(() => ({ team: { kind: 'block', lanes: 2048 } })))('has 2048 threads a block')
    plant(
      variants(() => ({ team: { kind: 'thread', rowsPerBlock: 128 } })),
      ranked,
    )('has a team that cannot compute the rows')
  })

  it('stores rows only in registers', () => {
    plant(
      program(({ kept }) => ({ reread: kept })),
      fixtures.layerNorm,
    )(`${after.replace('softmax', 'layer_norm')}rows are kept where every pass reads them again`)
    plant(() => ({ across: { index: 'z', dim: 'n' } }))('none of its axes')
  })

  it('has one pass for elementwise programs', () => {
    const double = ({ program: given }: MappedKernel): Partial<MappedKernel> => ({
      program: given.kind === 'elementwise' ? { ...given, steps: [...given.steps, ...given.steps] } : given,
    })
    plant(double, fixtures.pointwise)('an elementwise program has 2 passes')
    const endless = ({ program: given }: MappedKernel): Partial<MappedKernel> => ({
      program: given.kind === 'elementwise' ? { ...given, pieces: { index: 'chunk', bounds: [], steps: given.steps } } : given,
    })
    plant(endless, fixtures.pointwise)('an elementwise program has pieces that end nowhere')
  })
})

it("checks a plan's schedule after it was applied", () => {
  const schedule = { kind: 'rows', team: { kind: 'block', lanes: 128 }, chunks: 'reread', vec: 4 } as const
  expect(() => mapped(fixtures.softmax, {}, schedule)).not.toThrow()
  const faulty: Partial<Passes> = { applySchedule: (found, asked) => ({ ...schedulePasses.applySchedule(found, asked), vec: 5 }) }
  expect(() => mapped(fixtures.softmax, faulty, schedule)).toThrow(
    'internal: after applying the plan: kernel softmax: elements per chunk: expected a power of two up to 8, got 5',
  )
})

it('checks a measured schedule after it was applied', () => {
  const faulty: Passes = { ...schedulePasses, applyTuning: (found) => ({ ...found, vec: 5 }) }
  const tuning = { file: 'tuning.json', entries: [] }
  expect(() => mapKernel({ kernel: fixtures.softmax, types: { T: 'f16' }, dims: {} }, tuning, undefined, faulty)).toThrow(
    'internal: after applying measurements: kernel softmax: elements per chunk: expected a power of two up to 8, got 5',
  )
})

it('checks updates that were placed', () => {
  const faulty: Partial<Passes> = { placeUpdates: (kernel) => ({ ...kernel, body: kernel.body.slice(1) }) }
  expect(() => mapped(centre, faulty)).toThrow('internal: after placing updates: kernel centre: row v is not in scope')
})

it('checks the interval that threads visit', () => {
  const plant = (change: Partial<Interval>, problem: string, kernel = fixtures.pointwise) => {
    const part = call('lt', index('m0'), i32(3))
    const known: Interval = {
      axis: fixtures.axis('m0', 'm'),
      bounds: [{ kind: 'to', part, place: [{ sign: '+', value: i32(3) }] }],
      most: [[{ sign: '+', value: dim('n') }]],
    }
    const faulty: Partial<Passes> = { intervalOf: (_, [axis = known.axis]) => ({ ...known, axis, ...change }) }
    const made = () => mapped(kernel, faulty)
    if (problem === '') expect(made).not.toThrow()
    else expect(made).toThrow(`internal: after finding the interval: kernel ${kernel.name}: ${problem}`)
  }
  plant({}, '')
  // The axis of an elementwise kernel is looked for again once its conditions are gone.
  plant({ axis: fixtures.axis('z', 'n') }, 'threads cannot go over an interval of z', fixtures.softmax)
  plant({ bounds: [{ kind: 'if', part: call('lt', dim('n'), i32(3)) }] }, 'an interval of m0 has no bound')
  const own = call('lt', index('m0'), index('m0'))
  plant({ bounds: [{ kind: 'to', part: own, place: [{ sign: '+', value: index('m0') }] }] }, 'an interval of m0 is bounded by m0')
  plant({ most: [[{ sign: '+', value: x(i32(0)) }]] }, 'only the device knows how long an interval of m0 may be')
})
