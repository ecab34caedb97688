import { expect, test } from 'vitest'
import { parsePtxas } from '../../src/toolchain/ptxas.js'

const entry = '_ZN6heddle36_GLOBAL__N__b51ce050_4_a_cu_8f6a538820layer_norm__f16_warpEPfi'

const report = `ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '${entry}' for 'sm_80'
ptxas info    : Function properties for ${entry}
    256 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 32 registers, used 0 barriers, 256 bytes cumulative stack size, 364 bytes cmem[0]
ptxas info    : Compile time = 19.571 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 1 barriers, 256 bytes smem, 360 bytes cmem[0]
`

test('reads the resources of every kernel and architecture', () => {
  expect(parsePtxas(report)).toEqual([
    {
      kernel: entry,
      arch: 'sm_80',
      registers: 32,
      spillStoreBytes: 12,
      spillLoadBytes: 16,
      stackBytes: 256,
      sharedBytes: 0,
    },
    { kernel: 'plain', arch: 'sm_90', registers: 10, spillStoreBytes: 0, spillLoadBytes: 0, stackBytes: 0, sharedBytes: 256 },
  ])
})

test('output without kernels has none', () => {
  expect(parsePtxas('ptxas info    : 0 bytes gmem\n')).toEqual([])
})
