/**
 * A device on another machine as a device of this one. Buffers and programs get their numbers here, so that making them does not wait for the
 * link: their failure shows in the first call that waits. Long tensors are sent once, and found by digest later.
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type {
  NativeBuffer,
  NativeDevice,
  NativeLibrary,
  NativeMatmul,
  NativeProgram,
  NativeSlice,
  NativeStep,
} from '../native.js'
import type { Link } from './link.js'
import type { Opened, Ran, Request, SentMatmul, SentSlice, SentStep } from './protocol.js'

/** Shortest write whose bytes the other machine stores, so that a repeat sends their digest alone. */
const storedBytes = 2 ** 10

const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex')

const refusal = (code: string, message: string): Error => Object.assign(new Error(message), { code })

/** Device of a link that has opened one. Errors have the codes of the addon. */
export function remoteDevice(link: Link, { info: opened, hasTensors }: Opened): NativeDevice {
  const numbers = new WeakMap<NativeBuffer, number>()
  const digests = new WeakMap<NativeLibrary, string>()
  const libraries = new Map<string, NativeLibrary>()
  const loaded = new Map<string, NativeLibrary>()
  let [isOpen, last, used] = [true, 0, 0]
  const next = (): number => (last += 1)
  const expectOpen = (): void => {
    if (!isOpen) throw refusal('CLOSED', `the device on ${link.on} was closed`)
  }
  const sent = ({ buffer, offset, bytes }: NativeSlice): SentSlice => {
    const number = numbers.get(buffer)
    if (number === undefined) throw refusal('INVALID', 'a buffer belongs to another device')
    if (!isRange(buffer, offset, bytes))
      throw refusal('INVALID', `bytes ${offset} to ${offset + bytes}: expected a range of ${buffer.bytes} bytes`)
    return { buffer: number, offset, bytes }
  }
  const digestOf = (library: NativeLibrary): string => {
    const digest = digests.get(library)
    if (digest === undefined) throw refusal('INVALID', 'a library belongs to another device')
    return digest
  }
  return {
    info: () => {
      expectOpen()
      return { ...opened, memoryFreeBytes: Math.max(opened.memoryFreeBytes - used, 0) }
    },
    allocate(bytes) {
      expectOpen()
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw refusal('INVALID', `expected a number of bytes, got ${bytes}`)
      if (bytes > opened.memoryBytes)
        throw refusal('MEMORY', `${bytes} bytes were requested, the device has ${opened.memoryBytes}`)
      const number = next()
      link.tell({ op: 'allocate', buffer: number, bytes })
      used += bytes
      const buffer = bufferOf(link, number, { bytes, hasTensors }, () => {
        used -= bytes
      })
      numbers.set(buffer, number)
      return buffer
    },
    async sendLibrary(path) {
      const data = await readFile(path)
      const digest = sha256(data)
      if (!libraries.has(digest)) {
        const known = await link.ask({ op: 'library', digest })
        const kernels = (known === false ? await link.ask({ op: 'library', digest, data }) : known) as NativeLibrary['kernels']
        const library: NativeLibrary = { target: opened.kind, kernels }
        digests.set(library, digest)
        libraries.set(digest, library)
      }
      const library = libraries.get(digest)
      if (library !== undefined) loaded.set(path, library)
    },
    loadLibrary(path) {
      expectOpen()
      const library = loaded.get(path)
      if (library !== undefined) return library
      // The file's own error, if it has one.
      readFileSync(path)
      throw refusal('INVALID', `${path} was not sent to ${link.on}`)
    },
    program(steps) {
      expectOpen()
      const program = next()
      link.tell({ op: 'program', program, steps: steps.map((step) => sentStep(step, sent, digestOf)) })
      return programOf(link, program, steps.length, sent)
    },
    algorithms: async (matmul, most) =>
      (await link.ask({ op: 'algorithms', matmul: sentMatmul(matmul, sent), most })) as Awaited<
        ReturnType<NativeDevice['algorithms']>
      >,
    close() {
      isOpen = false
      link.close()
    },
  }
}

const isRange = ({ bytes: whole }: NativeBuffer, offset: number, bytes: number): boolean =>
  Number.isSafeInteger(offset) && Number.isSafeInteger(bytes) && offset >= 0 && bytes >= 0 && offset + bytes <= whole

function sentMatmul({ a, b, out, epilogue, ...rest }: NativeMatmul, sent: (slice: NativeSlice) => SentSlice): SentMatmul {
  const operands = { ...rest, a: sent(a), b: sent(b), out: sent(out) }
  if (epilogue === undefined) return operands
  const { relu, bias, residual } = epilogue
  return { ...operands, epilogue: { relu, ...(bias && { bias: sent(bias) }), ...(residual && { residual: sent(residual) }) } }
}

function sentStep(
  step: NativeStep,
  sent: (slice: NativeSlice) => SentSlice,
  digestOf: (library: NativeLibrary) => string,
): SentStep {
  switch (step.kind) {
    case 'kernel':
      return { ...step, library: digestOf(step.library), buffers: step.buffers.map(sent) }
    case 'matmul':
      return sentMatmul(step, sent)
    case 'fill':
      return { ...step, target: sent(step.target) }
    case 'copy':
      return { ...step, from: sent(step.from), to: sent(step.to) }
  }
}

/** Bytes that arrive in a frame start at any address; elements need an aligned one. */
const aligned = (data: unknown): Uint8Array => Uint8Array.from(data as Uint8Array)

function bufferOf(
  link: Link,
  buffer: number,
  { bytes, hasTensors }: { readonly bytes: number; readonly hasTensors: boolean },
  onRelease: () => void,
): NativeBuffer {
  let isReleased = false
  const native: NativeBuffer = {
    bytes,
    async write(offset, data) {
      if (data.byteLength < storedBytes) {
        await link.ask({ op: 'write', buffer, offset, data })
        return
      }
      // The caller may overwrite its bytes as soon as this returns.
      const copied = data.slice()
      const digest = sha256(copied)
      if (hasTensors && (await link.ask({ op: 'recall', buffer, offset, digest })) === true) return
      await link.ask({ op: 'write', buffer, offset, data: copied, digest })
    },
    read: async (offset, length) => aligned(await link.ask({ op: 'read', buffer, offset, bytes: length })),
    release() {
      if (isReleased) return
      isReleased = true
      onRelease()
      link.tell({ op: 'release', buffer })
    },
  }
  return native
}

function programOf(link: Link, program: number, steps: number, sent: (slice: NativeSlice) => SentSlice): NativeProgram {
  let state: Omit<Ran<unknown>, 'value'> = { captured: false, begun: 0, begunAhead: 0 }
  const ask = async <T>(request: Request): Promise<T> => {
    const { value, ...after } = (await link.ask(request)) as Ran<T>
    state = after
    return value
  }
  return {
    steps,
    get captured() {
      return state.captured
    },
    get begun() {
      return state.begun
    },
    get begunAhead() {
      return state.begunAhead
    },
    async run(inputs, outputs, repeats) {
      const written = inputs.map(({ to, data }) => ({ to: sent(to), data }))
      const results = await ask<readonly Uint8Array[]>({
        op: 'run',
        program,
        inputs: written,
        outputs: outputs.map(sent),
        repeats,
      })
      return results.map(aligned)
    },
    async runAhead(outputs) {
      const results = await ask<readonly Uint8Array[]>({ op: 'runAhead', program, outputs: outputs.map(sent) })
      return results.map(aligned)
    },
    abort: () => link.tell({ op: 'abort', program }),
    capture: () => ask({ op: 'capture', program }),
    time: (repeats, warmup) => ask({ op: 'time', program, repeats, warmup }),
    profile: (repeats) => ask({ op: 'profile', program, repeats }),
    release: () => link.tell({ op: 'end', program }),
  }
}
