/** Interleaved accesses in groups, and short axes written out: on the simt device against their bodies, by their loops, by sectors, and with planted faults. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { costDevice } from '../../src/cost/device.js'
import { partCosts } from '../../src/cost/kernel.js'
import { evaluateKernel } from '../../src/ir/evaluate.js'
import type { Instance } from '../../src/ir/instance.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { evaluateMapped } from '../../src/loop/evaluate_mapped.js'
import { type Loop, mapLoops } from '../../src/loop/ir.js'
import { loopPasses } from '../../src/loop/pipeline.js'
import { mapKernel, schedulePasses } from '../../src/schedule/map.js'
import { isInGroups, type MappedKernel } from '../../src/schedule/mapped.js'
import type { NormalKernel, RowDef } from '../../src/schedule/normalise/normal.js'
import { notesOf } from '../../src/schedule/notes/notes.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels } from './host.js'
import { countSectors } from './sectors.js'

const text = `import { op, tensor } from 'heddle'
const types = { T: ['f16'] } as const
const T = (axes: string) => tensor('T', axes)
export const turns = op('turns', { dims: ['m', 'h', 'n', 'p'], types, facts: { p: 2 }, inputs: { x: tensor('T', 'm h n p'), c: tensor('f32', 'm n') }, outputs: { y: tensor('T', 'm h n p') },
  body: ({ x, c }) => (m, h, e, p) => ({ y: x(m, h, e, p) * c(m, e) + x(m, h, e, 1 - p) * (2 * p - 1) }) })
export const shuffled = op('shuffled', { dims: ['m', 'i', 'n', 'j'], types, inputs: { x: tensor('T', 'i j m n') }, outputs: { y: tensor('T', 'm i n j') },
  body: ({ x }) => (h, i, w, j) => ({ y: x(i, j, h, w) }) })
export const repeated = op('repeated', { dims: ['m', 'i', 'n', 'j'], types: { T: ['f16', 'i8'] }, facts: { i: 2, j: 4 }, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm i n j') },
  body: ({ x }) => (h, i, w, j) => ({ y: x(h, w) }) })
export const product = op('product', { dims: ['m', 'n', 'p'], types: { T: ['f32'] }, facts: { p: 2 }, inputs: { a: tensor('T', 'm n p'), b: tensor('T', 'm n p') }, outputs: { y: tensor('T', 'm n p') },
  body: ({ a, b }) => (m, n, p) => ({ y: p === 0 ? a(m, n, 0) * b(m, n, 0) - a(m, n, 1) * b(m, n, 1) : a(m, n, 0) * b(m, n, 1) + a(m, n, 1) * b(m, n, 0) }) })
export const gated = op('gated', { dims: ['m', 'n', 'q'], types, facts: { q: '2*n' }, inputs: { x: tensor('T', 'm q') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }) => (m, c) => ({ y: x(m, 2 * c + 1) * x(m, 2 * c) - x(m, 2 * c + 1) }) })
export const planes = op('planes', { dims: ['b', 'c', 'm', 'n'], types: { T: ['u8'] }, facts: { c: 3 }, inputs: { x: tensor('T', 'b m n c') }, outputs: { y: tensor('f16', 'b c m n') },
  body: ({ x }) => (b, c, h, w) => ({ y: x(b, h, w, c) / 4 - c }) })
export const apart = op('apart', { dims: ['m', 'n', 'p'], types, facts: { p: 2 }, inputs: { x: tensor('T', 'm n p') }, outputs: { y: tensor('T', 'm n'), z: tensor('f32', 'm n') },
  body: ({ x }) => (m, n) => ({ y: x(m, n, 1), z: x(m, n, 0) }) })
export const uneven = op('uneven', { dims: ['m', 'n', 'q'], types, inputs: { x: tensor('T', 'm q') }, outputs: { y: tensor('T', 'm n') },
  body: ({ x }, { q }) => (m, c) => ({ y: x(m, 2 * c) + (2 * c + 1 < q ? x(m, 2 * c + 1) : 0) }) })
export const pixels = op('pixels', { dims: ['b', 'm', 'n', 'c'], types, facts: { c: 3 }, inputs: { x: tensor('T', 'b c m n') }, outputs: { y: tensor('T', 'b m n c') },
  body: ({ x }) => (b, h, w, c) => ({ y: x(b, c, h, w) }) })
`

const sizes = [
  [1, 1],
  [3, 8],
  [5, 33],
  [2, 260],
] as const

let host: Host
let kernels: readonly Kernel[]
const sectors = countSectors()
beforeAll(async () => {
  kernels = read(text).kernels
  host = await openKernels(kernels)
})
afterAll(async () => {
  await host?.close()
  sectors.close()
})

function instanceOf(key: string): Instance {
  const [name, T = 'f16'] = key.split('__')
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return { kernel, types: { T: T as 'f16' }, dims: {} }
}

/** The launch for stated extents, or the only one. */
const grouped = (key: string): MappedKernel => {
  const mapped = mapKernel(instanceOf(key))
  return mapped.split?.fixed?.[0]?.mapped ?? mapped
}

describe('interleaved accesses', () => {
  it.each([
    ['turns__f16', { p: 2 }, 4],
    ['shuffled__f16', { j: 2 }, 4],
    ['repeated__f16', { j: 4 }, 2],
    ['repeated__i8', { j: 4 }, 4],
    ['product__f32', { p: 2 }, 2],
    ['gated__f16', undefined, 8],
    ['planes__u8', { c: 3 }, 8],
    ['apart__f16', { p: 2 }, 8],
  ] as const)('%s moves groups, for %o', async (key, stated, vec) => {
    const { split } = mapKernel(instanceOf(key))
    expect(split?.fixed?.map(({ dims }) => dims)).toEqual(stated && [stated])
    expect([isInGroups(grouped(key)), grouped(key).vec]).toEqual([true, vec])
    expect(await differences(key)).toEqual([])
  })

  it.each(['uneven__f16', 'pixels__f16'])(
    '%s has none, since a member may not exist or three are no part of an access',
    async (key) => {
      expect(isInGroups(grouped(key))).toBe(false)
      expect(await differences(key)).toEqual([])
    },
  )

  it('are no strided reads, and other extents than stated ones compute the same', async () => {
    expect(notesOf(mapKernel(instanceOf('apart__f16')))).toEqual([])
    expect(notesOf(mapKernel(instanceOf('pixels__f16'))).length).toBe(0)
    expect(await differences('shuffled__f16', { j: 3 })).toEqual([])
    expect(await differences('product__f32', { p: 3 })).toEqual([])
  })
})

/** Differences from the body, at every size. */
async function differences(key: string, others: Readonly<Record<string, number>> = {}): Promise<readonly string[]> {
  const { kernel } = instanceOf(key)
  const stated = Object.fromEntries(
    Object.entries(kernel.facts?.dims ?? {}).flatMap(([dim, { equal }]) => (typeof equal === 'number' ? [[dim, equal]] : [])),
  )
  const found: string[] = []
  for (const [m, n] of sizes) {
    const q = key.startsWith('uneven') ? 2 * n - 1 : 2 * n
    const extents = (): Record<string, number> => ({ b: 2, h: 3, i: 3, j: 2, q, ...stated, ...others })
    found.push(await check(host, { kernel, class: 'elementwise', extents }, host.entry(key), m, n))
  }
  return found.filter((difference) => difference !== '')
}

it('moves each sector once', async () => {
  sectors.taken()
  for (const [key, dims, bytes] of [
    ['turns__f16', { m: 4, h: 8, n: 64, p: 2 }, [4096 * 2 + 256 * 4 * 8, 4096 * 2]],
    ['shuffled__f16', { m: 16, i: 2, n: 64, j: 2 }, [4096 * 2, 4096 * 2]],
    ['repeated__f16', { m: 16, i: 1, n: 64, j: 4 }, [1024 * 2, 4096 * 2]],
    ['gated__f16', { m: 16, n: 128, q: 256 }, [4096 * 2, 2048 * 2]],
  ] as const) {
    await launch(host, instanceOf(key).kernel, host.entry(key), dims, () => (i) => i % 5)
    const [{ accessed } = { accessed: [0, 0] }] = sectors.taken()
    const [read, written] = bytes.map((each) => each / 32)
    expect([key, accessed[1]]).toEqual([key, written])
    // Two packs of a chunk of 32 bytes are in one sector.
    expect(accessed[0], key).toBeLessThanOrEqual((key === 'gated__f16' ? 2 : 1) * (read ?? 0))
  }
})

it('prices groups by their bytes', () => {
  const sizes = { dims: { m: 4096, n: 4096, q: 8192, p: 2, i: 1, j: 2 }, attrs: {} }
  for (const [key, mebibytes] of [
    ['gated__f16', 96],
    ['apart__f16', 160],
    // Also where rows are no whole chunks, so that a launch over all elements as one row stands beside it.
    ['shuffled__f16', 128],
  ] as const) {
    const [cost] = partCosts(mapKernel(instanceOf(key)), sizes, costDevice('h200'))
    expect(((cost?.bytesRead ?? 0) + (cost?.bytesWritten ?? 0)) / 2 ** 20, key).toBeCloseTo(mebibytes, 0)
  }
})

describe('loops with groups', () => {
  const dims = { m: 3, h: 2, n: 13, p: 2 }
  const values = (count: number) => Float64Array.from({ length: count }, (_, i) => ((i * 37) % 113) / 16)
  const tensors = { x: { data: values(3 * 2 * 13 * 2), shape: [3, 2, 13, 2] }, c: { data: values(3 * 13), shape: [3, 13] } }
  const outputs = (passes: typeof loopPasses): readonly (readonly number[])[] =>
    evaluateMapped(grouped('turns__f16'), { tensors, dims }, passes).map(({ outputs: made }) => Array.from(made.y?.data ?? []))
  const faulty = (change: (loop: Loop) => Loop): typeof loopPasses => ({
    ...loopPasses,
    version: (loops, frame) =>
      loopPasses.version(
        mapLoops(loops, (loop) => [change(loop)]),
        frame,
      ),
  })

  it('compute what the body does', () => {
    const wanted = Array.from(evaluateKernel(instanceOf('turns__f16').kernel, tensors, dims).y?.data ?? [])
    for (const found of outputs(loopPasses))
      for (const [i, value] of found.entries()) expect(value).toBeCloseTo(wanted[i] ?? Number.NaN, 9)
  })

  it('with members in each other’s places compute something else', () => {
    const loaded = faulty((loop) => {
      if (loop.kind !== 'copy' || loop.members === undefined) return loop
      const [first, second] = loop.members
      if (first === undefined || second === undefined) return loop
      return { ...loop, members: [{ ...first, indices: second.indices }, second] }
    })
    const stored = faulty((loop) =>
      loop.kind === 'fill' && loop.place !== undefined
        ? { ...loop, place: { ...loop.place, member: 1 - loop.place.member } }
        : loop,
    )
    expect(outputs(loaded)).not.toEqual(outputs(loopPasses))
    expect(outputs(stored)).not.toEqual(outputs(loopPasses))
  })

  it('whose alignment is tested for single elements are refused', () => {
    const untested: typeof loopPasses = {
      ...loopPasses,
      version: (loops, frame) =>
        mapLoops(loopPasses.version(loops, frame), (loop) =>
          loop.kind === 'version' ? [{ ...loop, aligned: loop.aligned.map(({ factor: _, ...access }) => access) }] : [loop],
        ),
    }
    expect(() => outputs(untested)).toThrow(/a chunk of x is accessed without a check/)
  })
})

it('refuses a member at another place of its group', () => {
  const misplaced = (row: RowDef): RowDef =>
    row.kind === 'loaded' && row.interleaved !== undefined
      ? { ...row, interleaved: { ...row.interleaved, member: 1 - row.interleaved.member } }
      : row
  const inGroups = (instance: Instance): NormalKernel | undefined => {
    const made = schedulePasses.inGroups(instance)
    return made && { ...made, rows: new Map([...made.rows].map(([name, row]) => [name, misplaced(row)])) }
  }
  expect(() => mapKernel(instanceOf('gated__f16'), undefined, undefined, { ...schedulePasses, inGroups })).toThrow(
    /is no member \d of groups of 2/,
  )
})
