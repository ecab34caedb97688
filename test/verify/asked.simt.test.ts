/** Kernels that authors asked of other tools: each against plain JavaScript, and what cannot be said is refused for a true reason. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Device, openDevice, tensor, toNumbers } from '../../src/runtime/api/index.js'
import { compare } from '../../src/verify/compare.js'
import { type OpClass, tolerance } from '../../src/verify/tolerance.js'
import * as asked from '../projects/asked/specs/index.js'
import { heddleIn, ownProject } from './own_project.js'

let root: string
let device: Device
beforeAll(async () => {
  root = await ownProject('asked')
  expect((await heddleIn(root, 'gen')).code).toBe(0)
  device = await openDevice('simt', { root })
})
afterAll(async () => {
  await device?.close()
  await rm(root, { recursive: true, force: true })
})

const drawn = (count: number, seed: number): number[] =>
  Array.from({ length: count }, (_, i) => Math.fround(Math.sin(seed * 3.1 + i * 1.7 + i * i * 0.003) * 2))
const f32 = (shape: number[], values: number[]) => tensor('f32', shape, values)
const at = (values: ArrayLike<number>, i: number): number => values[i] ?? Number.NaN
const sumOf = (values: number[]): number => values.reduce((a, b) => a + b, 0)
const rowsOf = (values: number[], n: number): number[][] =>
  Array.from({ length: values.length / n }, (_, m) => values.slice(m * n, (m + 1) * n))

/** Holds numbers against plain JavaScript, and finds that other numbers are not those. */
function hold(found: ArrayLike<number>, wanted: number[], of: OpClass, length: number): void {
  const bound = tolerance({ dtype: 'f32', class: of, length, scale: 8 })
  expect(compare(found, wanted, bound)).toMatchObject({ passed: true })
  expect(compare(found, wanted.with(1, at(wanted, 1) + 1), bound).passed).toBe(false)
}
/** Rows less their mean, and one over their deviation. */
const standard = (v: number[]) => {
  const mean = sumOf(v) / v.length
  const centred = v.map((each) => each - mean)
  return { centred, scale: 1 / Math.sqrt(sumOf(centred.map((each) => each ** 2)) / v.length + 1e-5) }
}

describe('kernels that were asked for', () => {
  const [m, n] = [3, 52]
  it('residual, norm and int8 rows', async () => {
    const [x, before, gamma] = [drawn(m * n, 1), drawn(m * n, 2), drawn(n, 3)]
    const { q, step, added } = await device.call(asked.residualNormQuantise, {
      ...{ x: f32([m, n], x), before: f32([m, n], before), gamma: f32([n], gamma) },
    })
    const sums = x.map((each, i) => each + at(before, i))
    const normed = rowsOf(sums, n).map((v) => {
      const scale = 1 / Math.sqrt(sumOf(v.map((each) => each ** 2)) / n + 1e-6)
      return v.map((each, c) => each * scale * at(gamma, c))
    })
    const steps = normed.map((v) => Math.max(...v.map(Math.abs)) / 127)
    hold(added.data, sums, 'elementwise', 1)
    hold(step.data, steps, 'reduction', n)
    const wanted = normed.flatMap((v, i) => v.map((each) => Math.round(each / at(steps, i))))
    expect(compare(q.data, wanted, tolerance({ dtype: 'i8', class: 'reduction', length: n }))).toMatchObject({ passed: true })
  })

  it('group norm', async () => {
    const [b, g, c, s] = [2, 3, 4, 10]
    const [x, gamma, beta] = [drawn(b * g * c * s, 1), drawn(g * c, 2), drawn(g * c, 3)]
    const { y } = await device.call(asked.groupNorm, {
      ...{ x: f32([b, g, c * s], x), gamma: f32([g, c], gamma), beta: f32([g, c], beta) },
    })
    const wanted = rowsOf(x, c * s).flatMap((v, group) => {
      const { centred, scale } = standard(v)
      const channel = (i: number): number => (group % g) * c + Math.floor(i / s)
      return centred.map((each, i) => each * scale * at(gamma, channel(i)) + at(beta, channel(i)))
    })
    hold(toNumbers(y), wanted, 'reduction', c * s)
  })

  it('norm and softmax backward', async () => {
    const [dy, x, gamma] = [drawn(m * n, 1), drawn(m * n, 2), drawn(n, 3)]
    const norm = await device.call(asked.layerNormBackward, { dy: f32([m, n], dy), x: f32([m, n], x), gamma: f32([n], gamma) })
    const back = rowsOf(x, n).flatMap((v, i) => {
      const { centred, scale } = standard(v)
      const g = gamma.map((each, c) => each * at(dy, i * n + c))
      const [direct, along] = [sumOf(g) / n, sumOf(g.map((each, c) => each * at(centred, c) * scale)) / n]
      return g.map((each, c) => scale * (each - direct - at(centred, c) * scale * along))
    })
    hold(toNumbers(norm.dx), back, 'reduction', n)
    const { dx } = await device.call(asked.softmaxBackward, { dy: f32([m, n], dy), y: f32([m, n], x) })
    const turned = rowsOf(x, n).flatMap((v, i) => {
      const total = sumOf(v.map((each, c) => each * at(dy, i * n + c)))
      return v.map((each, c) => each * (at(dy, i * n + c) - total))
    })
    expect(compare(toNumbers(dx), turned, tolerance({ dtype: 'f32', class: 'reduction', length: n, scale: 80 }))).toMatchObject({
      passed: true,
    })
  })

  it('a causal convolution', async () => {
    const [b, t, c, k] = [2, 9, 5, 4]
    const [x, weight] = [drawn(b * t * c, 1), drawn(k * c, 2)]
    const { y } = await device.call(asked.causalConvolution, { x: f32([b, t, c], x), weight: f32([k, c], weight) })
    const wanted = x.map((_, i) => {
      const [time, channel] = [Math.floor(i / c) % t, i % c]
      return sumOf(Array.from({ length: Math.min(k, time + 1) }, (_, j) => at(x, i - j * c) * at(weight, j * c + channel)))
    })
    hold(toNumbers(y), wanted, 'reduction', k)
  })

  it('int4 weights', async () => {
    const [rows, columns, g] = [3, 16, 4]
    const values = Array.from({ length: rows * columns }, (_, i) => ((i * 7) % 16) - 8)
    const packed = Array.from(
      { length: (rows * columns) / 2 },
      (_, i) => at(values, 2 * i) + 8 + 16 * (at(values, 2 * i + 1) + 8),
    )
    const scales = drawn(rows * g, 1)
    const { y } = await device.call(
      asked.unpackInt4,
      { packed: tensor('u8', [rows, columns / 2], packed), scales: f32([rows, g], scales) },
      { dims: { n: columns } },
    )
    const wanted = values.map(
      (each, i) => each * at(scales, Math.floor(i / columns) * g + Math.floor(((i % columns) * g) / columns)),
    )
    hold(toNumbers(y), wanted, 'elementwise', 1)
  })

  it('a pool', async () => {
    const [h, w] = [4, 6]
    const x = drawn(2 * 3 * h * w, 1)
    const { y } = await device.call(asked.maxPool, { x: f32([2, 3, h, w], x) }, { dims: { p: h / 2, q: w / 2 } })
    const wanted = Array.from({ length: x.length / 4 }, (_, i) => {
      const [image, p, q] = [Math.floor(i / 6), Math.floor(i / 3) % 2, i % 3]
      return Math.max(...[0, 1, 6, 7].map((by) => at(x, image * h * w + 2 * p * w + 2 * q + by)))
    })
    hold(toNumbers(y), wanted, 'exact', 1)
  })
})

describe('what cannot be said', () => {
  const spec = (dtype: string, body: string, more = ''): string =>
    `import { graph, max, op, plan, row, sum, tensor } from 'heddle'\nexport const wrong = op('wrong', {\n  dims: ['m', 'n'],\n` +
    `  inputs: { x: tensor('${dtype}', 'm n'), at: tensor('i32', 'm') },\n  outputs: { y: tensor('f32', 'm n') },\n  ${more}\n  body: ${body},\n})\n`
  it.each([
    [
      'double precision',
      spec('f64', '({ x }) => (m, c) => ({ y: x(m, c) })'),
      'f64 is neither a storage type nor a declared type parameter',
    ],
    [
      'an update that reads elsewhere in what it replaces',
      spec('f32', '({ x, at }) => (m, c) => ({ y: m === at(m) ? x(m, c) + x(at(m), c) : x(m, c) })', "updates: { y: 'x' },"),
      'HED132',
    ],
    [
      'a loop',
      spec('f32', '({ x }, { n }) => (m) => { for (const c of [0]) { } return { y: row(n, (c) => x(m, c)) } }'),
      'HED103',
    ],
  ])('%s is refused', async (_, text, reason) => {
    await writeFile(join(root, 'specs/wrong.ts'), text)
    const { code, log } = await heddleIn(root, 'gen', '--check')
    await rm(join(root, 'specs/wrong.ts'))
    expect(log).toContain(reason)
    expect(code).toBe(2)
  })
})
