/** The CUDA plugin on a machine that may have no GPU: it builds, it loads, and it reports in one line that the GPU is missing. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { nativeFolder } from '../../src/runtime/addon.js'
import { openDevice } from '../../src/runtime/device.js'

it('builds with a CUDA compiler', () => {
  expect(existsSync(join(nativeFolder(), 'libheddle_cuda.so'))).toBe(true)
})

it('opens, or names what the machine lacks', () => {
  try {
    openDevice('cuda').close()
  } catch (error) {
    expect(error).toBeInstanceOf(HeddleError)
    expect(error).toMatchObject({
      code: 'device.unavailable',
      exitCode: 3,
      message: expect.stringMatching(/^no (CUDA driver|usable CUDA device)[^\n]*$/),
    })
  }
})
