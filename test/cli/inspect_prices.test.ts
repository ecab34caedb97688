/** Predicted times of `heddle inspect`: a line for each launch, and their notes with prices, where sizes are known. */
import { expect, it } from 'vitest'
import { priceLines, pricesOn } from '../../src/cli/inspect_prices.js'
import { call, dim, index, local } from '../../src/ir/build.js'
import { axis, kernel, load, tensor } from '../schedule/fixtures.js'

/** Every element less the sum of all. */
const whole = kernel(
  'whole',
  'm n',
  [axis('r', 'm'), axis('c', 'n')],
  [tensor('x', 'in', 'm n'), tensor('y', 'out', 'm n')],
  [
    {
      kind: 'reduce',
      name: 'total',
      type: 'f32',
      monoid: 'sum',
      length: dim('m'),
      index: 'i',
      value: { kind: 'fold', type: 'f32', monoid: 'sum', length: dim('n'), index: 'j', value: load('x', index('i'), index('j')) },
    },
    {
      kind: 'store',
      tensor: 'y',
      indices: [index('r'), index('c')],
      value: call('sub', load('x', index('r'), index('c')), local('total')),
    },
  ],
)

it('are those of each launch of a split kernel', async () => {
  const { prices } = await pricesOn(whole, 'whole__f16', { m: 512, n: 512 })
  if (prices === undefined) throw new Error('no prices')
  const [title, text] = priceLines(prices)
  expect(title).toBe('prices (h200, m=512,n=512)')
  expect(text).toMatch(/^whole_part1: [\d.]+ us, bound by the launch; 16 blocks of 256 threads; .*\nwhole: /)
})

it('are left out without sizes, and refused for a dimension that the kernel does not have', async () => {
  expect((await pricesOn(whole, 'whole__f16', { m: 512 })).prices).toBeUndefined()
  await expect(pricesOn(whole, 'whole__f16', { k: 1 })).rejects.toMatchObject({
    code: 'inspect.shape',
    message: 'whole has no dimension k',
    hint: 'dimensions are m, n',
  })
})

it('follow the notes on a launch', async () => {
  const strided = kernel(
    'strided',
    'm n',
    [axis('r', 'm')],
    [tensor('x', 'in', 'n m'), tensor('y', 'out', 'm n')],
    [
      {
        kind: 'reduce',
        name: 'top',
        type: 'f32',
        monoid: 'max',
        length: dim('n'),
        index: 'i',
        value: load('x', index('i'), index('r')),
      },
      {
        kind: 'storeRow',
        tensor: 'y',
        rows: [index('r')],
        length: dim('n'),
        index: 'j',
        value: call('sub', load('x', call('mod', call('mul', index('j'), dim('m')), dim('n')), index('r')), local('top')),
      },
    ],
  )
  const { notes } = await pricesOn(strided, 'strided__f16', { m: 512, n: 512 })
  expect(notes.length).toBeGreaterThan(0)
  for (const note of notes) expect(note).toMatch(/; predicted: [\d.]+ us, of which its bytes, moved once, take [\d.]+ us$/)
})
