/** Finding the addon: errors list the searched places. */
import { afterEach, expect, it, vi } from 'vitest'
import { HeddleError } from '../../src/errors.js'
import { loadAddon, nativeFolder } from '../../src/runtime/addon.js'
import { detectDevices } from '../../src/runtime/device.js'

afterEach(() => vi.unstubAllEnvs())

it('names the folder HEDDLE_NATIVE states when nothing is there', () => {
  vi.stubEnv('HEDDLE_NATIVE', '/nowhere')
  expect(() => nativeFolder()).toThrow(
    expect.objectContaining({ code: 'addon.missing', exitCode: 3, message: expect.stringContaining('/nowhere') }),
  )
  expect(() => loadAddon()).toThrow(HeddleError)
})

it('reports every kind of device, present or not', () => {
  vi.stubEnv('HEDDLE_NATIVE', '/nowhere')
  expect(detectDevices()).toMatchObject([
    { kind: 'js', available: true },
    { kind: 'simt', available: false, hint: expect.stringContaining('heddle build') },
    { kind: 'cuda', available: false },
  ])
})
