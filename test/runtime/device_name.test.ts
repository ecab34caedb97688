/** Names of devices: their meaning, on the command line too, and refusals of others. */
import { expect, it } from 'vitest'
import { compiledDeviceOption, deviceOption } from '../../src/cli/opening.js'
import { openDevice } from '../../src/runtime/api/index.js'
import { deviceName, parseDevice } from '../../src/runtime/device_name.js'

it.each([
  ['js', { kind: 'js', ordinal: 0 }],
  ['simt', { kind: 'simt', ordinal: 0 }],
  ['cuda', { kind: 'cuda', ordinal: 0 }],
  ['cuda:0', { kind: 'cuda', ordinal: 0 }],
  ['cuda:11', { kind: 'cuda', ordinal: 11 }],
])('%s is a device', (name, device) => expect(parseDevice(name)).toEqual(device))

it('cuda:0 is cuda', () => expect(['cuda:0', 'cuda:1', 'simt'].map(deviceName)).toEqual(['cuda', 'cuda:1', 'simt']))

it.each([
  ['simt:1', 'simt has no number: write simt'],
  ['simt:0', 'simt has no number: write simt'],
  ['js:0', 'js has no number: write js'],
  ['gpu', 'devices are js, simt, cuda or cuda:N with the number N of a GPU from 0'],
  ['cuda:', 'devices are'],
  ['cuda:-1', 'devices are'],
  ['cuda:1.5', 'devices are'],
  ['cuda:all', 'devices are'],
  ['CUDA:1', 'devices are'],
  [{ device: 'simt' }, "write openDevice('simt', { root }): the name comes first, options second"],
  [null, "write openDevice('simt'"],
])('%j is none', async (given, hint) => {
  const refused = {
    code: 'device.kind',
    exitCode: 2,
    message: `expected a device js, simt, cuda or cuda:N with the number N of a GPU from 0, got ${JSON.stringify(given)}`,
    hint: expect.stringContaining(hint),
  }
  expect(() => parseDevice(given)).toThrow(expect.objectContaining(refused))
  await expect(openDevice(given as 'simt')).rejects.toMatchObject(refused)
})

it('--device takes them', () => {
  const { parseArg, argChoices } = deviceOption()
  expect(parseArg?.('cuda:1', undefined)).toBe('cuda:1')
  expect(() => parseArg?.('simt:1', undefined)).toThrow(expect.objectContaining({ code: 'device.kind', exitCode: 2 }))
  expect(argChoices).toEqual(['js', 'simt', 'cuda'])
})

it('--device of verbs that time kernels takes those that compile them', () => {
  const { parseArg, argChoices } = compiledDeviceOption()
  expect(parseArg?.('cuda:1', undefined)).toBe('cuda:1')
  expect(() => parseArg?.('js', undefined)).toThrow(expect.objectContaining({ code: 'device.kind', hint: 'write simt or cuda' }))
  expect(argChoices).toEqual(['simt', 'cuda'])
})

it.each([
  [{ roots: '.' }, 'openDevice has no option roots', 'did you mean root? options are root, on, signal, onProgress, onNotice'],
  [{ device: 'simt' }, 'openDevice has no option device', 'options are'],
  [null, 'openDevice: expected options { name: value }, got null', 'options are'],
  ['.', 'openDevice: expected options { name: value }, got', 'options are'],
  [{ root: 3 }, 'openDevice: expected the path of a folder as the option root, got', ''],
  [{ signal: 'now' }, 'openDevice: expected an AbortSignal as the option signal, got', ''],
])('options %j are refused', async (options, message, hint) => {
  const error: unknown = await openDevice('simt', options as object).catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'device.option', exitCode: 2, message: expect.stringContaining(message) })
  if (hint !== '') expect(error).toMatchObject({ hint: expect.stringContaining(hint) })
})
