/** Occupancies, each computed by hand. */
import { expect, test } from 'vitest'
import { occupancyOf } from '../../src/explorer/occupancy.js'

test.each([
  // 32 registers of 32 threads are 1024: 16 warps in each quarter of 16,384 registers, all 64. 64 warps are 8 blocks of 8.
  ['sm_80', 256, 32, 0, { blocks: 8, share: 1, limitedBy: ['registers', 'threads'] }],
  // 33 registers are 1056, allocated as 1280: 12 warps per quarter, 48 in all, 6 blocks of 8.
  ['sm_80', 256, 33, 0, { blocks: 6, share: 0.75, limitedBy: ['registers'] }],
  // 255 are 8160, allocated as 8192: 2 warps per quarter, 8 in all: one block of 256 threads.
  ['sm_90a', 256, 255, 0, { blocks: 1, share: 0.125, limitedBy: ['registers'] }],
  // The same of 512 threads: 16 warps of 8192 registers are 131,072, more than there are.
  ['sm_90a', 512, 255, 0, { blocks: 0, share: 0, limitedBy: ['registers'] }],
  // 168 are 5376: 3 warps a quarter, 12 in all: one block of 384 threads.
  ['sm_90a', 384, 168, 0, { blocks: 1, share: 0.1875, limitedBy: ['registers'] }],
  // One warp: 64 of them would fit, and 32 blocks are the most.
  ['sm_80', 32, 24, 0, { blocks: 32, share: 0.5, limitedBy: ['blocks'] }],
  // Not a whole warp counts as one: 3 of 80 threads, 21 blocks in 64.
  ['sm_80', 80, 16, 0, { blocks: 21, share: 63 / 64, limitedBy: ['threads'] }],
  // 48 KiB and the system's 1 KiB: three times 49 in 164 KiB, four times in 228.
  ['sm_80', 128, 32, 48 * 1024, { blocks: 3, share: 12 / 64, limitedBy: ['shared memory'] }],
  ['sm_90', 128, 32, 48 * 1024, { blocks: 4, share: 16 / 64, limitedBy: ['shared memory'] }],
  // 1 byte takes a unit of 128: 228 KiB are 233,472 bytes; 10,240 and 1,024 are 11,264, 20 of them; one more byte makes 11,392, still 20.
  ['sm_90', 64, 32, 10_240, { blocks: 20, share: 40 / 64, limitedBy: ['shared memory'] }],
  ['sm_90', 64, 32, 10_241, { blocks: 20, share: 40 / 64, limitedBy: ['shared memory'] }],
  // 5 warps of 64 registers (2048): 8 warps a quarter, 32 in all, 6 blocks of 5.
  ['sm_80', 160, 64, 0, { blocks: 6, share: 30 / 64, limitedBy: ['registers'] }],
] as const)('on %s, blocks of %i threads with %i registers and %i bytes', (arch, threads, registers, sharedBytes, expected) => {
  expect(occupancyOf(arch, threads, registers, sharedBytes)).toEqual(expected)
})

test('an unlisted GPU has no occupancy', () => {
  expect(occupancyOf('sm_70', 256, 32, 0)).toBeUndefined()
})
