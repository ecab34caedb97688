/** Rows whose length is no multiple of the width, on the simt device against their bodies: elements of chunks lie apart, or rows are launched as one run. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, launch, openKernels } from './host.js'

const op = (name: string, tensors: string, body: string, dims = "'m', 'n'") => `
export const ${name} = op('${name}', { dims: [${dims}], types, ${tensors}, body: ${body} })`
const pair = "inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('T', 'm n') }"
const text = `import { abs, argmax, exp, max, op, row, rsqrt, square, sum, tensor } from 'heddle'
const types = { T: ['f16', 'f32'] } as const
${op(
  'norm',
  "inputs: { x: tensor('T', 'm n'), gamma: tensor('T', 'n') }, outputs: { y: tensor('T', 'm n') }",
  `({ x, gamma }, { n }) => (i) => {
    const scale = rsqrt(sum(n, (c) => square(x(i, c))) / n + 1)
    return { y: (c) => x(i, c) * scale * gamma(c) }
  }`,
)}
${op(
  'bytes',
  "inputs: { x: tensor('T', 'm n') }, outputs: { y: tensor('i8', 'm n'), steps: tensor('f32', 'm') }",
  `({ x }, { n }) => (i) => {
    const most = max(n, (c) => abs(x(i, c)))
    return { y: (c) => x(i, c) * 100 / (most + 1), steps: most }
  }`,
)}
${op('twice', pair, '({ x }) => (i, c) => ({ y: 2 * x(i, c) })')}
${op(
  'planes',
  "inputs: { x: tensor('T', 'm k n'), z: tensor('T', 'm k n') }, outputs: { y: tensor('T', 'm k n') }",
  '({ x, z }) => (i, j, c) => ({ y: x(i, j, c) + z(i, j, c) })',
  "'m', 'k', 'n'",
)}
${op(
  'biased',
  "inputs: { x: tensor('T', 'm n'), b: tensor('T', 'n') }, outputs: { y: tensor('T', 'm n') }",
  '({ x, b }) => (i, c) => ({ y: x(i, c) + b(c) })',
)}
export const of_length = op('of_length', {
  dims: ['m', 'n'], inputs: { x: tensor('i32', 'm n') }, outputs: { y: tensor('i32', 'm n') }, body: ({ x }, { n }) => (i, c) => ({ y: x(i, c) % n }) })
${op(
  'joined',
  "inputs: { x: tensor('T', 'm n'), z: tensor('T', 'm n'), b: tensor('T', 'n'), gamma: tensor('T', 'n') }, outputs: { y: tensor('T', 'm n') }",
  `({ x, z, b, gamma }, { n }) => (i) => {
    const v = row(n, (c) => x(i, c) + z(i, c) + b(c))
    const scale = rsqrt(sum(n, (c) => square(v(c))) / n + 1)
    return { y: (c) => v(c) * scale * gamma(c) }
  }`,
)}
${op('down', pair, '({ x }, { m }) => (i, c) => ({ y: x(i, c) - sum(m, (j) => x(j, c)) / m })')}
${op(
  'first',
  "inputs: { x: tensor('T', 'k m n') }, outputs: { y: tensor('f32', 'm'), at: tensor('i32', 'm') }",
  '({ x }, { n }) => (i) => ({ y: max(n, (c) => x(1, i, c)), at: argmax(n, (c) => x(1, i, c) * (c + 1)) })',
  "'k', 'm', 'n'",
)}
${op(
  'half',
  "inputs: { x: tensor('T', 'k m n') }, outputs: { y: tensor('T', 'm n') }",
  '({ x }) => (i, c) => ({ y: x(1, i, c) })',
  "'k', 'm', 'n'",
)}
`
const names = ['norm', 'bytes', 'twice', 'planes', 'biased', 'half', 'joined', 'down', 'first'] as const

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
const source = (name: string): string => sources.get(`cuda/${name}__f16.cu`) ?? sources.get(`cuda/${name}.cu`) ?? ''

const sizes = [
  [3, 1],
  [5, 17],
  [3, 127],
  [2, 257],
  [4, 1001],
  [3, 1002],
  [4, 2],
  [3, 14],
  [5, 130],
  [2, 4094],
  [1, 9002],
  [2, 4095],
  [1, 8191],
  [2, 9001],
  [3, 1024],
] as const

it.each([...names.flatMap((name) => ['f16', 'f32'].map((type) => `${name}__${type}`)), 'of_length'])('%s', async (key) => {
  const kernel = named(key.replace(/__f\d+$/, ''))
  const complaints: string[] = []
  for (const [m, n] of sizes) {
    const subject = { kernel, class: 'reduction' as const, extents: () => ({ k: 2 }) }
    complaints.push(await check(host, subject, host.entry(key), m, n))
  }
  expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
})

const lengths = [1001, 1025, 1502, 2048, 3001, 4096] as const
const teams = ['norm', 'joined'].flatMap((name) => ['f16', 'f32'].flatMap((type) => lengths.map((n) => [name, type, n] as const)))
it.each(teams)(
  'a row of %s in %s of %i elements has the same bits alone and in a batch that other teams compute',
  async (name, type, n) => {
    const bitsOf = async (m: number): Promise<readonly number[]> => {
      const draw = () => (i: number, dims: Readonly<Record<string, number>>) => (((i % (dims.n ?? 1)) * 37 + 11) % 101) * 0.173
      const { outputs } = await launch(host, named(name), host.entry(`${name}__${type}`), { m, n }, draw)
      return Array.from(outputs[0]?.stored ?? []).slice(-n)
    }
    expect(await bitsOf(530)).toEqual(await bitsOf(1))
  },
)

describe('the launcher', () => {
  it('chooses the version of rows', () => {
    expect(source('norm')).toContain('const bool whole = n % VEC == 0 && heddle::begins_aligned<VEC>(x)')
    expect(source('norm')).toContain(
      'whole ? norm_kept<heddle::WarpTeam<32, 4>, 4, true> : norm_kept<heddle::WarpTeam<32, 4>, 4, false>',
    )
  })
  it('takes a block for long rows of kernels that read many tensors', () => {
    const many = '(rows <= 528 || (length > 768 && length % 8 != 0))) return run(heddle::RowBlock<128>{}'
    expect(source('joined')).toContain(many)
    expect(source('norm')).not.toContain('length > 768')
  })
  it('walks over one long row where each element depends on its place alone', () => {
    for (const name of ['twice', 'planes']) expect(source(name)).toContain('is_run')
    for (const name of ['biased', 'of_length', 'half']) expect(source(name)).not.toContain('is_run')
  })
})
