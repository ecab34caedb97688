/** Division of the work: windows, intervals, chunks in one piece and tiles compute what the body computes, and faults in them are found. */
import { describe, expect, it } from 'vitest'
import { call, i32 } from '../../src/ir/build.js'
import type { Kernel } from '../../src/ir/kernel.js'
import type { Team } from '../../src/loop/evaluate_lane.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { eachPass } from '../../src/loop/kernel_loops.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { printLoops } from '../../src/loop/print.js'
import { mapKernel } from '../../src/schedule/map.js'
import { read } from '../frontend/refuse.js'
import { differences, type Passes } from './run_loops.js'

const { kernels } = read(`import { op, row, sum, tensor } from 'heddle'
export const blur = op('blur', {
  dims: ['b', 'h', 'w', 'p', 'q', 'u', 'v'],
  inputs: { x: tensor('f32', 'b p q'), k: tensor('f32', 'u v') },
  outputs: { y: tensor('f32', 'b h w') },
  facts: { p: 'h+u', q: 'w+v' },
  body: ({ x, k }, { u, v }) => (b, h, w) => ({ y: sum(u, (i) => sum(v, (j) => x(b, h + i, w + j) * k(i, j))) }),
})
const inputs = { cache: tensor('f32', 'm n k'), x: tensor('f32', 'm k'), at: tensor('i32', 'm'), count: tensor('i32', 'm') }
export const span = op('span', {
  dims: ['m', 'n', 'k'], inputs, outputs: { y: tensor('f32', 'm n k') }, updates: { y: 'cache' },
  body: ({ cache, x, at, count }) => (m, s, c) => {
    const inside = s >= at(m) && s < at(m) + count(m)
    return { y: inside ? x(m, c) + s : cache(m, s, c) }
  },
})
export const spanOfRows = op('span_of_rows', {
  dims: ['m', 'n', 'k'], inputs, outputs: { y: tensor('f32', 'm n k') }, updates: { y: 'cache' },
  body: ({ cache, x, at, count }, { k }) => (m, s) => {
    const total = sum(k, (c) => x(m, c) * s)
    const inside = s >= at(m) && s < at(m) + count(m)
    return { y: row(k, (c) => (inside ? x(m, c) + total : cache(m, s, c))) }
  },
})
export const rotated = op('rotated', {
  dims: ['m', 'd', 'e'],
  inputs: { x: tensor('f32', 'm d') }, outputs: { y: tensor('f32', 'm d') }, facts: { d: 'e*2' },
  body: ({ x }, { e }) => (m, c) => ({ y: c < e ? -x(m, c + e) : x(m, c - e) }),
})
export const transposed = op('transposed', {
  dims: ['b', 'm', 'n'],
  inputs: { x: tensor('f32', 'b m n'), z: tensor('f32', 'b n m') }, outputs: { y: tensor('f32', 'b n m') },
  body: ({ x, z }) => (b, i, j) => ({ y: x(b, j, i) + z(b, i, j) + i }),
})
export const channelsLast = op('channels_last', {
  dims: ['b', 'c', 'm'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'b c m') }, outputs: { y: tensor('T', 'b m c') },
  body: ({ x }) => (b, m, c) => ({ y: x(b, c, m) * 2 }),
})
export const channelsJoined = op('channels_joined', {
  dims: ['b', 'c', 'm'], types: { T: ['f16'] },
  inputs: { x: tensor('T', 'b c m'), z: tensor('T', 'b m c') }, outputs: { y: tensor('T', 'b m c') },
  body: ({ x, z }) => (b, m, c) => ({ y: x(b, c, m) + z(b, m, c) }),
})
`)
const named = (name: string): Kernel => {
  const found = kernels.find((kernel) => kernel.name === name)
  if (found === undefined) throw new Error(`fixture: no ${name}`)
  return found
}
const instanceOf = (kernel: Kernel) => ({
  kernel,
  types: Object.hasOwn(kernel.types, 'T') ? { T: 'f16' as const } : {},
  dims: {},
})

const lanes = { lanes: 4, vec: 4 }
const square: Team['tile'] = { rows: 4, columns: 8, isRun: false }
const inRuns: Team['tile'] = { rows: 8, columns: 4, isRun: true }
type Sizes = Readonly<Record<string, number>>
const subjects: Readonly<Record<string, { readonly sizes: readonly Sizes[]; readonly team: Omit<Team, 'chunks'> }>> = {
  blur: { sizes: [{ b: 2, h: 3, w: 7, u: 2, v: 3, p: 5, q: 10 }], team: lanes },
  span: { sizes: [7, 8].map((k) => ({ m: 3, n: 6, k })), team: lanes },
  span_of_rows: { sizes: [7, 8].map((k) => ({ m: 3, n: 6, k })), team: lanes },
  rotated: { sizes: [4, 6, 3].map((e) => ({ m: 3, d: 2 * e, e })), team: lanes },
  transposed: {
    sizes: [
      { b: 2, m: 5, n: 9 },
      { b: 1, m: 8, n: 8 },
    ],
    team: { lanes: 3, vec: 4, tile: square },
  },
  channels_last: {
    sizes: [
      { b: 2, c: 3, m: 11 },
      { b: 1, c: 4, m: 8 },
    ],
    team: { lanes: 3, vec: 2, tile: inRuns },
  },
  channels_joined: { sizes: [{ b: 2, c: 3, m: 11 }], team: { lanes: 3, vec: 2, tile: inRuns } },
}

const run = (name: string, passes: Partial<Passes> = {}, which = 0) => {
  const { sizes = [], team = lanes } = subjects[name] ?? {}
  return differences(instanceOf(named(name)), sizes[which] ?? {}, team, passes)
}

describe('kernels compute what their bodies compute', () => {
  it.each(Object.keys(subjects))('%s', (name) => {
    for (const [which, sizes] of (subjects[name]?.sizes ?? []).entries())
      expect(run(name, {}, which), JSON.stringify(sizes)).toEqual([])
  })

  it('in the ways that they are named after', () => {
    const texts = Object.keys(subjects).map((name) => {
      let text = ''
      eachPass(mapKernel(instanceOf(named(name))), (_, __, loops) => {
        text = printLoops(loops)
      })
      return text
    })
    expect(texts[0]).toMatch(/for b\d < b, h\d < h, w\w+ < w in chunks of VEC: threads/)
    expect(texts[1]).toMatch(/for m\d < m, slots of s < n, c\w* < k in chunks of VEC: threads/)
    expect(texts[1]).toMatch(/let s = place of the slot from at\[m\d\], to at\[m\d\] \+ count\[m\d\]/)
    expect(texts[2]).toMatch(/for m\d < m, slots of s < n: teams/)
    expect(texts[3]).toMatch(/if no piece of c\w* ends in the chunk/)
    expect(texts[4]).toContain('barrier of the block: x_tile can be read')
    expect(texts[5]).toContain('2 elements a word, columns 1 word apart')
  })
})

/** Changes the result of lowering, node by node. */
const lowered = (f: (loop: Loop) => readonly Loop[]): Partial<Passes> => ({
  lower: (...given) => mapLoops(loopPasses.lower(...given), f),
})
const without = (kind: Loop['kind']) => lowered((loop) => (loop.kind === kind ? [] : [loop]))
const digits = (change: (all: Extract<Loop, { kind: 'work' }>['digits']) => Extract<Loop, { kind: 'work' }>['digits']) =>
  lowered((loop) => [loop.kind === 'work' ? { ...loop, digits: change(loop.digits) } : loop])
const layout = (change: object) =>
  lowered((loop) => [loop.kind === 'tile' ? { ...loop, layout: { ...loop.layout, ...change } } : loop])

describe('the verifier finds', () => {
  it.each<[string, string, Partial<Passes>, string | RegExp]>([
    ['an axis that nobody divides', 'blur', digits((all) => all.slice(1)), /the index b1 is read outside of its loop/],
    ['an axis that is divided twice', 'blur', digits((all) => [...all, ...all.slice(0, 1)]), /b1 is divided twice/],
    ['an interval that is not narrowed', 'span', without('narrow'), 'the index s is read outside of its loop'],
    [
      'an interval without slots',
      'span',
      digits((all) => all.map((digit) => (digit.of === 'slots' ? { of: 'axis', axis: digit.interval.axis } : digit))),
      's is narrowed and has no slots',
    ],
    [
      'a piece without a test',
      'rotated',
      lowered((loop) => [loop.kind === 'piece' ? { ...loop, bounds: [] } : loop]),
      'a chunk is taken for one piece without a test',
    ],
    [
      'a piece of a chunk that several threads have',
      'rotated',
      lowered((loop) => [loop.kind === 'work' ? { ...loop, owner: 'team' } : loop]),
      /a thread has no chunk of c/,
    ],
    ['a missing barrier', 'transposed', without('barrier'), 'x_tile is read before its block has met'],
    [
      'a barrier in front of the loads',
      'transposed',
      lowered((loop) => (loop.kind === 'fillTile' ? [] : [loop])),
      'published before',
    ],
    ['a tile that is not declared', 'transposed', without('tile'), 'x_tile is filled before it is declared'],
    [
      'a tile that threads of others fill',
      'transposed',
      lowered((loop) => [loop.kind === 'work' ? { ...loop, owner: 'thread' } : loop]),
      'x_tile is filled by threads that do not share it',
    ],
    [
      'a tile read outside of the loop over it',
      'transposed',
      lowered((loop) => (loop.kind === 'for' && loop.owner === 'block' ? loop.body : [loop])),
      'is read',
    ],
    ['columns one word too close', 'transposed', layout({ skew: -1 }), 'two elements lie at word'],
    ['columns that begin in one bank', 'transposed', layout({ skew: 0 }), 'adjacent columns begin in one bank'],
  ])('%s', (_, name, passes, reason) => expect(() => run(name, passes)).toThrow(reason))
})

describe('running the loops finds', () => {
  it('an interval that begins or ends a place off', () => {
    for (const kind of ['from', 'to'] as const) {
      const off = lowered((loop) => {
        if (loop.kind !== 'narrow') return [loop]
        const bounds = loop.interval.bounds.map((bound) =>
          bound.kind === kind ? { ...bound, place: [...bound.place, { sign: '+' as const, value: i32(1) }] } : bound,
        )
        return [{ ...loop, interval: { ...loop.interval, bounds } }]
      })
      expect(run('span', off)[0]).toMatchObject({ place: expect.stringContaining('y[') })
      // Rows test the condition too, so that a place too many is not stored.
      const ofRows = run('span_of_rows', off)
      if (kind === 'from') expect(ofRows).not.toEqual([])
      else expect(ofRows).toEqual([])
    }
  })

  it('a piece whose end is one element off', () => {
    const off = lowered((loop) => [
      loop.kind === 'piece' ? { ...loop, bounds: loop.bounds.map((bound) => call('add', bound, i32(1))) } : loop,
    ])
    expect(() => {
      if (run('rotated', off, 2).length > 0) throw new Error('differs')
    }).toThrow()
  })

  it('a window that is one element short', () => {
    const short = lowered((loop) => {
      if (loop.kind !== 'compute' && loop.kind !== 'fill') return [loop]
      const { value } = loop
      if (!('kind' in value) || value.kind !== 'fold') return [loop]
      return [{ ...loop, value: { ...value, length: call('sub', value.length, i32(1)) } } as Loop]
    })
    expect(run('blur', short)).not.toEqual([])
  })

  it('a tail of a tile that is left out, and one that is not checked', () => {
    const shorter = (side: 'rows' | 'columns') =>
      lowered((loop) => [
        loop.kind === 'for' && loop.owner === 'block'
          ? { ...loop, [side]: { ...loop[side], length: call('sub', loop[side].length, i32(1)) } }
          : loop,
      ])
    for (const side of ['rows', 'columns'] as const) expect(run('transposed', shorter(side))).not.toEqual([])
  })

  it('a tile that is filled along the wrong side', () => {
    const wrong = lowered((loop) => [loop.kind === 'fillTile' ? { ...loop, rows: loop.columns, columns: loop.rows } : loop])
    expect(() => {
      if (run('transposed', wrong).length > 0) throw new Error('differs')
    }).toThrow()
  })

  it('a run of rows that are not', () => {
    const isRun = lowered((loop) => [loop.kind === 'for' && loop.owner === 'block' ? { ...loop, isRun: true } : loop])
    const sizes = { b: 2, m: 5, n: 9 }
    const team = { ...lanes, tile: { ...square, isRun: true } }
    expect(differences(instanceOf(named('transposed')), sizes, team)).toEqual([])
    expect(differences(instanceOf(named('transposed')), sizes, team, isRun)).not.toEqual([])
  })
})
