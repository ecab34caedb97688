/**
 * Opening devices. A `Device` wraps the addon's device: every failure becomes a `HeddleError`, and large transfers are split so that no call
 * blocks the event loop for long.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { environmentError, findingError, HeddleError, usageError } from '../errors.js'
import { hasCudaDevice } from '../toolchain/index.js'
import { loadAddon, nativeFolder } from './addon.js'
import { type DeviceKind, type DeviceName, deviceKinds, parseDevice } from './device_name.js'
import { jsDevice } from './js/device.js'
import type {
  NativeBuffer,
  NativeCode,
  NativeDevice,
  NativeDeviceInfo,
  NativeLibrary,
  NativeMatmul,
  NativeProgram,
  NativeSlice,
  NativeStep,
} from './native.js'
import { transferBytes } from './upload.js'

export { type DeviceKind, type DeviceName, deviceKinds }

/** All methods throw or reject with `HeddleError`: `device.memory`, `device.fault`, `device.closed`, ... */
export interface Device extends NativeDevice {
  readonly kind: DeviceKind
}

/** Entry of `heddle doctor` for one kind of device. */
export type DeviceReport =
  | { readonly kind: DeviceKind; readonly available: true; readonly info: NativeDeviceInfo }
  | { readonly kind: DeviceKind; readonly available: false; readonly reason: string; readonly hint: string | undefined }

/**
 * Opens a device.
 * @throws usage `device.kind`; environment `device.plugin` if its plugin is not built, `device.unavailable` if the machine lacks the device or
 * the driver
 */
export function openDevice(name: DeviceName): Device {
  const { kind, ordinal } = parseDevice(name)
  if (kind === 'js') return jsDevice()
  const addon = loadAddon()
  const path = join(nativeFolder(), `libheddle_${kind}.so`)
  if (!existsSync(path)) {
    throw environmentError('device.plugin', `the ${kind} device plugin ${path} is not built`, {
      hint:
        kind === 'cuda' && !hasCudaDevice()
          ? 'no NVIDIA GPU was found: take the CPU device, simt'
          : `run heddle build --target ${kind}`,
    })
  }
  return { kind, ...wrapDevice(translated(() => addon.openDevice(path, ordinal))) }
}

/** Tries every kind of device. Never throws. */
export function detectDevices(): DeviceReport[] {
  return deviceKinds.map((kind): DeviceReport => {
    try {
      const device = openDevice(kind)
      try {
        return { kind, available: true, info: device.info() }
      } finally {
        device.close()
      }
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error)
      return { kind, available: false, reason, hint: error instanceof HeddleError ? error.hint : undefined }
    }
  })
}

type Translate = (message: string, cause: unknown) => HeddleError

const translations: Readonly<Record<NativeCode, Translate>> = {
  INVALID: (message, cause) => usageError('device.invalid', message, { cause }),
  CLOSED: (message, cause) => usageError('device.closed', message, { cause }),
  ABORTED: (message, cause) => usageError('device.aborted', message, { cause }),
  FAULT: (message, cause) => findingError('device.fault', message, { cause }),
  MEMORY: (message, cause) =>
    environmentError('device.memory', message, { cause, hint: 'use a smaller batch or a smaller model' }),
  UNAVAILABLE: (message, cause) => environmentError('device.unavailable', message, { cause }),
  DEVICE: (message, cause) => environmentError('device.error', message, { cause }),
}

const isNativeCode = (code: unknown): code is NativeCode => typeof code === 'string' && Object.hasOwn(translations, code)

/** Converts an error of the addon to a `HeddleError`; returns any other unchanged. */
function toHeddleError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !isNativeCode(error.code)) return error
  return translations[error.code](error.message, error)
}

function translated<T>(call: () => T): T {
  try {
    return call()
  } catch (error) {
    throw toHeddleError(error)
  }
}

async function settled<T>(promise: Promise<T>): Promise<T> {
  try {
    return await promise
  } catch (error) {
    throw toHeddleError(error)
  }
}

/** Addon buffer of each wrapped buffer; steps and copies must name the addon's. */
const nativeBuffers = new WeakMap<NativeBuffer, NativeBuffer>()

const unwrapSlice = (slice: NativeSlice): NativeSlice => ({ ...slice, buffer: nativeBuffers.get(slice.buffer) ?? slice.buffer })

function unwrapMatmul({ epilogue, ...step }: NativeMatmul): NativeMatmul {
  const unwrapped = { ...step, a: unwrapSlice(step.a), b: unwrapSlice(step.b), out: unwrapSlice(step.out) }
  if (epilogue === undefined) return unwrapped
  const { bias, residual, relu } = epilogue
  const added = {
    ...(bias === undefined ? {} : { bias: unwrapSlice(bias) }),
    ...(residual === undefined ? {} : { residual: unwrapSlice(residual) }),
  }
  return { ...unwrapped, epilogue: { ...added, relu } }
}

function unwrapStep(step: NativeStep): NativeStep {
  switch (step.kind) {
    case 'kernel':
      return { ...step, buffers: step.buffers.map(unwrapSlice) }
    case 'matmul':
      return unwrapMatmul(step)
    case 'fill':
      return { ...step, target: unwrapSlice(step.target) }
    case 'copy':
      return { ...step, from: unwrapSlice(step.from), to: unwrapSlice(step.to) }
    default:
      return step
  }
}

function wrapBuffer(native: NativeBuffer): NativeBuffer {
  const buffer: NativeBuffer = {
    bytes: native.bytes,
    async write(offset, data) {
      for (let at = 0; at < data.byteLength || at === 0; at += transferBytes) {
        await settled(native.write(offset + at, data.subarray(at, at + transferBytes)))
      }
    },
    async read(offset, bytes) {
      if (!(bytes > transferBytes && offset + bytes <= native.bytes)) return settled(native.read(offset, bytes))
      const whole = new Uint8Array(bytes)
      for (let at = 0; at < bytes; at += transferBytes) {
        whole.set(await settled(native.read(offset + at, Math.min(transferBytes, bytes - at))), at)
      }
      return whole
    },
    release: () => translated(() => native.release()),
  }
  nativeBuffers.set(buffer, native)
  return buffer
}

function wrapProgram(native: NativeProgram): NativeProgram {
  return {
    steps: native.steps,
    get captured() {
      return native.captured
    },
    run: (inputs, outputs, repeats) =>
      settled(
        native.run(
          inputs.map(({ to, data }) => ({ to: unwrapSlice(to), data })),
          outputs.map(unwrapSlice),
          repeats,
        ),
      ),
    runAhead: (outputs) => settled(native.runAhead(outputs.map(unwrapSlice))),
    get begun() {
      return native.begun
    },
    get begunAhead() {
      return native.begunAhead
    },
    abort: () => translated(() => native.abort()),
    capture: () => settled(native.capture()),
    time: (repeats, warmup) => settled(native.time(repeats, warmup)),
    profile: (repeats) => settled(native.profile(repeats)),
    release: () => translated(() => native.release()),
  }
}

/** Converts errors of a device, and splits its transfers. */
export function wrapDevice(native: NativeDevice): NativeDevice {
  const { sendLibrary } = native
  return {
    ...(sendLibrary === undefined ? {} : { sendLibrary: (path: string) => settled(sendLibrary(path)) }),
    info: () => translated(() => native.info()),
    allocate: (bytes) => wrapBuffer(translated(() => native.allocate(bytes))),
    loadLibrary: (path): NativeLibrary => translated(() => native.loadLibrary(path)),
    program: (steps) => wrapProgram(translated(() => native.program(steps.map(unwrapStep)))),
    algorithms: (matmul, most) => settled(native.algorithms(unwrapMatmul(matmul), most)),
    close: () => translated(() => native.close()),
  }
}

/** Architecture of the device, as tuning files name it: `sm_90`, or `simt` for `js` as well. */
export const architectureOf = ({ kind, computeCapability }: Pick<NativeDeviceInfo, 'kind' | 'computeCapability'>): string =>
  kind !== 'cuda' || computeCapability === undefined ? 'simt' : `sm_${computeCapability.replace('.', '')}`
