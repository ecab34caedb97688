/** Checks that misuse of a device ends in a typed error that names the value, and leaves the device usable. */
import { HeddleError } from '../errors.js'
import type { NativeDevice } from '../runtime/native.js'
import type { CheckResult } from './conformance.js'

/** More than any device has. */
const tooMuch = 2 ** 46

interface Misuse {
  readonly name: string
  /** The code the error must carry. */
  readonly code: string
  readonly attempt: (device: NativeDevice) => unknown
}

const withBuffer = async (device: NativeDevice, use: (buffer: ReturnType<NativeDevice['allocate']>) => Promise<unknown>) => {
  const buffer = device.allocate(64)
  try {
    return await use(buffer)
  } finally {
    buffer.release()
  }
}

const misuses: readonly Misuse[] = [
  { name: 'allocate more than there is', code: 'device.memory', attempt: (device) => device.allocate(tooMuch) },
  { name: 'allocate a negative size', code: 'device.invalid', attempt: (device) => device.allocate(-1) },
  {
    name: 'write past the end',
    code: 'device.invalid',
    attempt: (device) => withBuffer(device, (buffer) => buffer.write(60, new Uint8Array(8))),
  },
  { name: 'read past the end', code: 'device.invalid', attempt: (device) => withBuffer(device, (buffer) => buffer.read(0, 65)) },
  {
    name: 'read a released buffer',
    code: 'device.closed',
    attempt: (device) =>
      withBuffer(device, (buffer) => {
        buffer.release()
        return buffer.read(0, 8)
      }),
  },
  {
    name: 'run a step outside its buffer',
    code: 'device.invalid',
    attempt: (device) =>
      withBuffer(device, async (buffer) => {
        const target = { buffer, offset: 32, bytes: 64 }
        await device.program([{ kind: 'fill', label: 'fill', target, value: 0 }]).run([], [])
      }),
  },
  {
    name: 'load a library that is not there',
    code: 'device.unavailable',
    attempt: (device) => device.loadLibrary('/nowhere/libheddle_kernels.so'),
  },
]

async function attempt(device: NativeDevice, { name, code, attempt: misuse }: Misuse): Promise<CheckResult> {
  try {
    await misuse(device)
    return { name: `abuse: ${name}`, passed: false, detail: `was accepted, expected ${code}` }
  } catch (error) {
    const found = error instanceof HeddleError ? error.code : `an untyped error: ${String(error)}`
    return { name: `abuse: ${name}`, passed: found === code, detail: `expected ${code}, found ${found}` }
  }
}

/** Tries every misuse, then that the device still works. */
export async function checkAbuse(device: NativeDevice): Promise<CheckResult[]> {
  const results: CheckResult[] = []
  for (const misuse of misuses) results.push(await attempt(device, misuse))
  const data = Uint8Array.of(1, 2, 3, 4)
  const back = await withBuffer(device, async (buffer) => {
    await buffer.write(8, data)
    return Buffer.compare(await buffer.read(8, 4), data) === 0
  })
  return [
    ...results,
    { name: 'abuse: the device still works', passed: back === true, detail: `bytes ${back ? 'came' : 'did not come'} back` },
  ]
}
