/** Sources of operands that a chunk has in common: a word and a scale are read once for all elements of a chunk, in every kind of kernel. */
import { describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import { read as readSource } from '../frontend/refuse.js'

const inputs = {
  words: { type: 'i32', dim: 'w', extent: '8*w' },
  scales: { type: 'T', dim: 'g', extent: '128*g' },
  bytes: { type: 'u8', dim: 'h', extent: '2*h' },
} as const

/** The kernels of an op's f16 source, without comments. The op has the inputs that its body names. */
function sourceOf(body: string): string {
  const read = Object.entries(inputs).filter(([name]) => body.includes(`${name}(`))
  const extent = body.includes('words(') ? "n: '8*w', w: '16*g'" : read.map(({ 1: { extent } }) => `n: '${extent}'`).join()
  const { kernels, diagnostics } =
    readSource(`import { exp, idiv, op, row, rsqrt, scan, shiftRightUnsigned, sum, tensor, toFloat, topK } from 'heddle'
export const t = op('t', {
  dims: ['m', 'n', ${read.map(({ 1: { dim } }) => `'${dim}'`).join()}],
  types: { T: ['f16'] },
  inputs: { x: tensor('T', 'm n'), ${read.map(([name, { type, dim }]) => `${name}: tensor('${type}', 'm ${dim}')`).join()} },
  outputs: { y: tensor('T', 'm n') },
  facts: { ${extent} },
  ${body}
})
export const used = { exp, idiv, row, rsqrt, scan, shiftRightUnsigned, sum, toFloat, topK }
`)
  expect(diagnostics).toEqual([])
  const text = [...generate(kernels)].find(([path]) => path.endsWith('.cu'))?.[1] ?? ''
  return text.slice(text.indexOf('__global__'), text.indexOf('extern "C"'))
}

const reads = (source: string, tensor: string): string[] =>
  source.split('\n').filter((line) => line.includes(`heddle::read(${tensor},`))
/** Lines inside of loops over the elements of a chunk. */
const inElements = (source: string): string =>
  [...source.matchAll(/for \(int i = 0; i < VEC; \+\+i\) \{\n([\s\S]*?)\n {2,6}\}/g)].map(([, lines]) => lines).join('\n')

const weight = 'toFloat((shiftRightUnsigned(words(m, idiv(c, 8)), (c % 8) * 4) & 15) - 8) * scales(m, idiv(c, 128))'

describe('a chunk', () => {
  it.each([
    ['an elementwise kernel', `body: ({ x, words, scales }) => (m, c) => ({ y: x(m, c) + ${weight} }),`],
    [
      'a kernel of rows',
      `body: ({ x, words, scales }, { n }) => (m) => {
        const v = row(n, (c) => x(m, c) * ${weight})
        const inverse = rsqrt(sum(n, (c) => v(c) ** 2) / n)
        return { y: row(n, (c) => v(c) * inverse) }
      },`,
    ],
  ])('of %s reads a word and a scale once', (_, body) => {
    const source = sourceOf(body)
    for (const tensor of ['words', 'scales']) {
      expect(reads(source, tensor).length).toBeGreaterThan(0)
      for (const line of reads(source, tensor)) expect(line).toMatch(/const (int|float) \w+_of_chunk\w* = /)
    }
    expect(inElements(source)).not.toMatch(/ [/%] |heddle::read/)
    expect(inElements(source)).toContain('>> i * 4')
    // No remaining operation can fault, so only combined elements need a check.
    expect(source).not.toContain('const int c =')
  })

  it('reads each byte by its place', () => {
    const source = sourceOf(
      'body: ({ x, bytes }) => (m, c) => ({ y: x(m, c) * toFloat(shiftRightUnsigned(bytes(m, idiv(c, 2)), (c % 2) * 4) & 15) }),',
    )
    expect(source).toMatch(/c0 \/ 2\) \+ \(i \/ 2\)/)
    expect(source).toContain('i % 2')
  })

  it('without elements reads nothing where lanes meet', () => {
    const all = sourceOf(
      `body: ({ x, scales }, { n }) => (m) => {
        const s = scan(n, (c) => x(m, c) * scales(m, idiv(c, 128)))
        return { y: row(n, (c) => s(c)) }
      },`,
    )
    const [source = ''] = all.split('}  // namespace in_rows')
    expect(reads(source, 'scales').length).toBeGreaterThan(0)
    for (const line of reads(source, 'scales')) expect(line).toMatch(/valid > 0 \? heddle::read/)
  })

  it('prefetches nothing that only some elements need', () => {
    const source = sourceOf('body: ({ x, scales }) => (m, c) => ({ y: x(m, c) > 0 ? x(m, c) * scales(m, idiv(c, 128)) : 0 }),')
    expect(source).not.toContain('_of_chunk')
    expect(source).toContain('c0 / 128')
  })
})

describe('a source', () => {
  it('declares no length that only the host reads', () => {
    const source = sourceOf(
      `body: ({ x, scales }, { n, g }) => (m) => {
        const all = g * 128
        const best = topK(2, all, (c) => x(m, idiv(c, 1)) * scales(m, idiv(c, 128)))
        return { y: row(n, (c) => x(m, c) - best.values(0)) }
      },`,
    )
    expect(source).not.toContain('const int all')
  })
})
