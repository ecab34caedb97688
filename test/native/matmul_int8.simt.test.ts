/**
 * The int8 matmul's bodies on the CPU device: sums in int32, exact for all operands, with tails in every direction, through the function that
 * generated source calls and through each tile; in every order of threads.
 */
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Check, checks, status, type Workshop, workshop } from './fixtures.js'

const device = fileURLToPath(new URL('../../native/device', import.meta.url))

let shop: Workshop
let program: string

beforeAll(async () => {
  shop = await workshop()
  program = await shop.program('matmul_int8', ['matmul_int8.cu'], ['-DHEDDLE_SIMT', '-I', device])
})

afterAll(() => shop.remove())

const shapes = [
  '1x1x1',
  '17x33x80',
  '32x48x128',
  '65x100x144',
  '5x30x7',
  '3x770x272',
  '64x64x2000',
  '130x8x48',
  '70x104x384',
  '33x20x131',
  '9x40x200',
]
const kinds = ['any', 'any_two_steps', 'extremes']
const tiles = ['tile_two_k', 'tile_square', 'tile_large']

/** The longest rows of extremes whose sums fit int32: for tensor cores, and for the body that takes any length. */
const longest = ['2x3x133136', '2x3x133144']

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
    results = await checks(program, [], env)
  })

  const expectExact = (name: string, shape: string): void => {
    expect(results.get(name)).toEqual({ name, status: status.ok, message: '', values: [elements(shape), 0] })
  }

  test.each(shapes)('%s is exact with both kinds of epilogue and with extremes', (shape) => {
    for (const kind of kinds) expectExact(`${kind}_${shape}`, shape)
  })

  test.each(shapes.filter((shape) => Number(shape.split('x')[2]) % 16 === 0))('%s is exact with every tile', (shape) => {
    for (const tile of tiles) expectExact(`${tile}_${shape}`, shape)
  })

  test.each(longest)('%s of extremes fills an int32', (shape) => expectExact(`extremes_${shape}`, shape))

  test('longer rows are refused', () => {
    const refused = results.get('too_long_2x3x133145')
    expect(refused?.status).toBe(status.invalid)
    expect(refused?.message).toBe('kernel body: k is 133145; int32 holds sums of at most 133144 products of int8')
  })

  test('rows that are not aligned are multiplied all the same', () => expectExact('any_17x33x80_misaligned', '17x33x80'))

  test('no rows are no work', () => expectExact('any_empty_0x8x16', '0x8x16'))

  test('a wrong matmul and a missing row are found', () => {
    expect(results.get('term_too_many_17x33x80')?.values[1]).toBeGreaterThan(500)
    expect(results.get('rows_unwritten_17x33x80')?.values).toEqual([17 * 33, 33])
  })
})
