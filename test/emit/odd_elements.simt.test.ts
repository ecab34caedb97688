/** Elementwise kernels whose rows are no whole chunks and which read other tensors by some of their axes, on the simt device against their bodies. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { generate } from '../../src/emit/generate.js'
import type { Kernel } from '../../src/ir/kernel.js'
import { read } from '../frontend/refuse.js'
import { check, type Host, openKernels } from './host.js'

const op = (name: string, inputs: string, outputs: string, body: string, dims = "'m', 'n'") => `
export const ${name} = op('${name}', { dims: [${dims}], types: { T: ['f16', 'f32'] }, inputs: { ${inputs} }, outputs: { ${outputs} }, body: ${body} })`
const [p, z] = ["p: tensor('T', 'm n')", "z: tensor('T', 'm n')"]
const cube = "'m', 'k', 'n'"
const text = `import { exp, maximum, op, row, tensor } from 'heddle'
${op('shifted', `${p}, c: tensor('T', 'n')`, z, '({ p, c }) => (i, j) => ({ z: maximum(p(i, j) + c(j), 0) })')}
${op('scaled', `${p}, s: tensor('f32', 'm')`, z, '({ p, s }, { n }) => (i) => { const f = s(i) * 2; return { z: row(n, (j) => p(i, j) * f) } }')}
${op('gated', `${p}, c: tensor('f32', 'n'), r: tensor('T', 'm n')`, `${z}, q: tensor('i8', 'm n')`, '({ p, c, r }) => (i, j) => ({ z: p(i, j) + c(j) + r(i, j), q: p(i, j) * c(j) })')}
${op('outer', "u: tensor('T', 'm'), v: tensor('T', 'n')", z, '({ u, v }) => (i, j) => ({ z: u(i) * v(j) })')}
${op('causal', p, z, '({ p }) => (i, j) => ({ z: j <= i ? p(i, j) : -1 })')}
${op(
  'channels',
  "p: tensor('T', 'm k n'), s: tensor('f32', 'k'), t: tensor('T', 'm n')",
  "z: tensor('T', 'm k n')",
  '({ p, s, t }) => (i, g, j) => ({ z: p(i, g, j) * s(g) + t(i, j) })',
  cube,
)}
${op(
  'parts',
  "p: tensor('T', 'm k n'), s: tensor('f32', 'm k')",
  "z: tensor('f32', 'm k n')",
  '({ p, s }) => (i, g, j) => ({ z: p(i, g, j) / (1 + s(i, g) * s(i, g)) })',
  cube,
)}
`
const names = ['shifted', 'scaled', 'gated', 'outer', 'causal', 'channels', 'parts'] as const

let kernels: readonly Kernel[]
let sources: ReadonlyMap<string, string>
let host: Host
beforeAll(async () => {
  kernels = read(text).kernels
  sources = generate(kernels, {})
  host = await openKernels(kernels)
})
afterAll(() => host?.close())

const sizes = [
  [1, 1],
  [3, 1],
  [5, 3],
  [2, 7],
  [1, 13],
  [9, 17],
  [4, 127],
  [3, 1001],
  [67, 30],
  [3, 64],
] as const

it.each(names.flatMap((name) => ['f16', 'f32'].map((type) => `${name}__${type}`)))('%s', async (key) => {
  const kernel = kernels.find(({ name }) => key.startsWith(`${name}__`)) ?? expect.fail(key)
  const complaints: string[] = []
  for (const [m, n] of sizes) {
    const subject = { kernel, class: 'elementwise' as const, extents: () => ({ k: 3 }) }
    complaints.push(await check(host, subject, host.entry(key), m, n))
  }
  expect(complaints.filter((complaint) => complaint !== '')).toEqual([])
})

it('the launcher takes one row for them, where an index counts its elements', () => {
  const source = (name: string): string => sources.get(`cuda/${name}__f16.cu`) ?? ''
  for (const name of names) expect(source(name)).toContain('return in_one_row::run(launch, error);')
  expect(source('channels')).toContain('if (n % 8 != 0 && (heddle::Count(m) * k * n).value <= INT32_MAX)')
  expect(source('channels')).toContain('heddle::Places<2> places(t_2_0, n, k);')
})
