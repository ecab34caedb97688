/**
 * Matmuls of many rows and int8 weights on the CPU device: panels of columns in sequence, of one matmul and of two, of rows in memory and of
 * computed ones, bit for bit against plain loops and in every order of threads.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const folder = (path: string): string => fileURLToPath(new URL(`../../${path}`, import.meta.url))
/** Panels have 256 columns. Generated source is compiled like kernels: hidden, and with unnamed parameters. */
const flags = [
  '-DHEDDLE_SIMT',
  '-DHEDDLE_PANEL_BYTES=1',
  '-ffp-contract=off',
  '-fvisibility=hidden',
  '-Wno-unused-parameter',
  '-Wno-unknown-pragmas',
]

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  const includes = ['native/device', 'generated/cuda'].flatMap((path) => ['-I', folder(path)])
  program = await shop.program('matmul_bytes', ['matmul_bytes.cu'], [...flags, ...includes])
})

afterAll(() => shop.remove())

const shapes = ['9x8x64', '9x520x64', '70x523x72', '33x1100x136']

describe.each([
  { HEDDLE_SIMT_ORDER: 'forward', HEDDLE_SIMT_RACE: '1' },
  { HEDDLE_SIMT_ORDER: 'reverse' },
  { HEDDLE_SIMT_ORDER: 'shuffle' },
])('with %o', (env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await checks(program, [], env)
  })

  test.each(shapes.flatMap((shape) => ['plain', 'gated', 'normed'].map((kind) => `${kind}_${shape}`)))('%s is exact', (name) => {
    expect(results.get(name)).toMatchObject({ status: status.ok, message: '', values: [expect.any(Number), 0] })
    expect(results.get(name)?.values[0]).toBeGreaterThan(0)
  })

  test('other weights are noticed', () => {
    expect(results.get('other_weights_9x520x64')).toMatchObject({ status: status.ok, message: '' })
    expect(results.get('other_weights_9x520x64')?.values[1]).toBeGreaterThan(0)
  })
})
