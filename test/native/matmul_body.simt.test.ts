/**
 * The generated matmul's body on the CPU device: exact on small integers for every storage type, with tails in every direction, through the
 * function that generated source calls and through each tile; in every order of threads.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program('matmul_body', ['matmul_body.cu'], ['-DHEDDLE_SIMT', '-I', device])
})

afterAll(() => shop.remove())

const run = (env: Record<string, string>): Promise<ReadonlyMap<string, Check>> => checks(program, [], env)

const shapes = [
  '1x1x1',
  '17x33x40',
  '32x48x64',
  '65x100x72',
  '5x30x7',
  '3x770x136',
  '64x64x1000',
  '130x8x24',
  '70x104x192',
  '1x44x1000',
  '2x24x2304',
  '4x100x512',
  '7x1100x1000',
  '70x104x193',
  '9x50x203',
  '33x20x130',
  '20x33x68',
  '3x77x1005',
  '1x9x126',
  '66x1x79',
  '1x1x65',
]
const kinds = ['f32', 'f16', 'f16_two_steps', 'bf16_two_steps']
const tiles = ['tile_two_k', 'tile_square', 'tile_large']

const elements = (shape: string): number => {
  const [m = 0, n = 0] = shape.split('x').map(Number)
  return m * n
}

describe.each([
  { HEDDLE_SIMT_ORDER: 'forward', HEDDLE_SIMT_RACE: '1' },
  { HEDDLE_SIMT_ORDER: 'reverse' },
  { HEDDLE_SIMT_ORDER: 'shuffle' },
])('with %o', (env) => {
  let results: ReadonlyMap<string, Check>
  beforeAll(async () => {
    results = await run(env)
  })

  const expectExact = (name: string, shape: string): void => {
    expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values: [elements(shape), 0] })
  }

  test.each(shapes)('%s is exact in every storage type and with both kinds of epilogue', (shape) => {
    for (const kind of kinds) expectExact(`${kind}_${shape}`, shape)
  })

  test.each(shapes.filter((shape) => Number(shape.split('x')[2]) % 8 === 0))('%s is exact with every tile', (shape) => {
    for (const tile of tiles) expectExact(`${tile}_${shape}`, shape)
  })

  test.each(['simple', 'mma_64x32_deep', 'mma_64x32', 'mma_64x64', 'mma_128x96', 'measured'])('%s is exact by name', (tile) =>
    expectExact(`${tile}_70x104x192`, '70x104x192'),
  )

  test.each(['17x33x72', '9x40x131', '1x3x65'])('%s is exact from every element of a word on', (shape) => {
    for (let shift = 1; shift < 8; shift++) {
      const name = `f16_by_${shift}_${shape}_misaligned`
      expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values: [elements(shape), 0] })
    }
  })

  test.each(['mma_64x64_65x96x199', 'few_5x40x333'])('%s takes rows that are not aligned', (name) =>
    expectExact(name, name.split('_').at(-1) ?? ''),
  )

  test.each(['fma_16x64', 'fma_64x64', 'fma_64x128', 'fma_128x128'])('%s is exact by name, with every kind of tail', (tile) => {
    for (const shape of ['130x140x100', '65x24x37', '7x130x3']) expectExact(`${tile}_${shape}`, shape)
  })

  test('rows is exact by name', () => expectExact('rows_3x104x192', '3x104x192'))

  test.each(['5x104x192', '8x13x1000', '2x24x72', '3x8460x40', '5x40x1032', '8x13x2104'])('few is exact by name at %s', (shape) =>
    expectExact(`few_${shape}`, shape),
  )

  test.each([
    'single_128x64_70x104x192',
    'few_9x104x192',
    'rows_5x104x192',
    'mma_64x64_65x100x72',
    'mma_64x64_65x100x199',
    'mma_64x32_64x32x64',
    'mma_64x64_64x64x64',
    'fma_64x64_64x64x64',
    'fma_64x64_64x64x128',
  ])('%s is refused, and nothing is written', (name) => {
    const [, tile = '', shape = ''] = /^(.*)_(\d+x\d+x\d+)$/.exec(name) ?? []
    const check = results.get(name)
    expect(check).toMatchObject({ status: status.invalid, values: [elements(shape), elements(shape)] })
    expect(check?.message).toMatch(new RegExp(`^kernel body: the tile ${tile} with k in [12] parts cannot compute `))
  })

  test('rows that are not aligned are multiplied all the same', () => {
    expectExact('f16_17x33x40_misaligned', '17x33x40')
    expectExact('f32_40x70x36_misaligned', '40x70x36')
    expectExact('f32_copied_40x70x36_misaligned', '40x70x36')
    expectExact('f32_copied_40x70x67', '40x70x67')
    expectExact('f32_copied_33x9x5_misaligned', '33x9x5')
  })

  test('no rows are no work', () => expectExact('f16_empty_0x8x8', '0x8x8'))

  test('a wrong matmul and a missing row are found', () => {
    expect(results.get('term_too_many_17x33x40')?.values[1]).toBeGreaterThan(300)
    expect(results.get('rows_unwritten_17x33x40')?.values).toEqual([17 * 33, 33])
  })
})
