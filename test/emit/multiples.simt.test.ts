/** Facts `multipleOf` widen accesses: kernels with them, beside twins whose facts state less, on the simt device against their bodies. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels } from './host.js'

/** Ops of heads of d columns, with the fact of d; the name says what it is. */
const ops = (suffix: string, fact: string) => `
export const heads${suffix} = op('heads_${suffix}', {
  dims: ['m', 's', 'h', 'd', 'n'], types, inputs: { x: tensor('T', 'm h s d') }, outputs: { y: tensor('T', 'm s n') }, facts: { n: 'h*d'${fact} },
  body: ({ x }, { d }) => (b, s, c) => ({ y: 2 * x(b, idiv(c, d), s, c % d) }) })
export const parts${suffix} = op('parts_${suffix}', {
  dims: ['m', 'h', 'd', 'n'], types, inputs: { x: tensor('T', 'm n'), gamma: tensor('f32', 'm h') }, outputs: { y: tensor('T', 'm n') }, facts: { n: 'h*d'${fact} },
  body: ({ x, gamma }, { n, d }) => (i) => {
    const scale = rsqrt(sum(n, (c) => square(x(i, c))) / n + 1)
    return { y: (c) => x(i, c) * scale * gamma(i, idiv(c, d)) }
  } })`
/** Rows whose own length is a multiple. */
const scaled = (suffix: string, fact: string) => `
export const scaled${suffix} = op('scaled_${suffix}', {
  dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') }${fact},
  body: ({ x }, { n }) => (i) => { const total = sum(n, (c) => x(i, c)); return { y: (c) => x(i, c) + total } } })
export const twice${suffix} = op('twice_${suffix}', {
  dims: ['m', 'n'], types, inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') }${fact}, body: ({ x }) => (i, c) => ({ y: 2 * x(i, c) }) })`
const text = `import { idiv, op, rsqrt, square, sum, tensor } from 'heddle'
const types = { T: ['f16'] } as const
${ops('eights', ', d: { multipleOf: 8 }')}
${ops('threes', ', d: { multipleOf: 3 }')}
${ops('any', '')}
${scaled('eights', ', facts: { n: { multipleOf: 8 } }')}
${scaled('any', '')}
`

let kernels: readonly Kernel[]
let sources: ReadonlyMap<string, string>
let host: Host
beforeAll(async () => {
  kernels = read(text).kernels
  sources = generate(kernels, {})
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

const named = (name: string): Kernel => {
  const kernel = kernels.find((each) => each.name === name)
  if (kernel === undefined) throw new Error(`no kernel ${name}`)
  return kernel
}
const source = (name: string): string => sources.get(`cuda/${name}__f16.cu`) ?? ''

describe('columns of heads', () => {
  it('are loaded in packs where 8 divides a head, and one by one in the twins', () => {
    expect(source('heads_eights')).toContain('heddle::load_chunk<VEC>(x,')
    for (const twin of ['heads_threes', 'heads_any']) {
      expect(source(twin)).not.toContain('load_chunk<VEC>(x,')
    }
  })
  it('of rows that are multiples have no test and no tail', () => {
    for (const name of ['scaled', 'twice']) {
      expect(source(`${name}_eights`)).toContain('constexpr int valid = VEC;')
      expect(source(`${name}_eights`)).not.toContain('% VEC == 0')
      // The walk of totals declares the rest of a row, and does not use it.
      const others = source(`${name}_eights`).replace(/namespace part1 \{[\s\S]*namespace part1/, '')
      expect(others).not.toContain('int valid = n')
      expect(source(`${name}_any`)).toMatch(/const int valid = (n - c0|heddle::left_apart<STEP>\(n - c0\));/)
    }
    expect(source('scaled_any')).toContain('n % VEC == 0')
  })
  it('share the scale of their head without a test', () => {
    expect(source('parts_eights')).not.toContain('d % VEC == 0')
    expect(source('parts_eights')).toContain('gamma_of_chunk')
    expect(source('parts_threes')).toMatch(/n % VEC == 0[^;]*d % VEC == 0|d % VEC == 0[^;]*n % VEC == 0/)
  })
  it.each([
    'scaled_eights',
    'twice_eights',
    'heads_eights',
    'heads_threes',
    'heads_any',
    'parts_eights',
    'parts_threes',
    'parts_any',
  ])('%s', async (name) => {
    const complaints: string[] = []
    for (const [h, d] of [
      [1, 24],
      [3, 24],
      [5, 48],
      [40, 24],
    ] as const) {
      const subject = { kernel: named(name), class: 'reduction' as const, extents: () => ({ s: 3, h, d }) }
      complaints.push(await check(host, subject, host.entry(`${name}__f16`), 4, h * d))
    }
    expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
  })
  it('are refused by the launcher where a head is no such multiple', async () => {
    const dims = { m: 2, s: 3, h: 3, d: 12, n: 36 }
    const run = (name: string) => launch(host, named(name), host.entry(`${name}__f16`), dims, () => () => 1)
    await expect(run('heads_eights')).rejects.toThrow('elements of d beyond a multiple of 8, got 4')
    await expect(run('heads_threes')).resolves.toBeDefined()
  })
})
