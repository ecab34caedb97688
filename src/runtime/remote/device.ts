/**
 * A device on another machine as a device of this one. Buffers and programs get their numbers here, so that making them does not wait for the
 * link: their failure shows in the first call that waits. Tensors, inputs and libraries are sent once, and named by digest later.
 */
import { readFile } from 'node:fs/promises'
import type { NativeBuffer, NativeDevice, NativeLibrary, NativeMatmul, NativeSlice, NativeStep } from '../native.js'
import { aligned, type BlobSender, blobSender, refusal } from './blobs.js'
import type { Blobs, Link } from './link.js'
import { programOf } from './program.js'
import { digestOf, type Opened, type Request, type SentMatmul, type SentSlice, type SentStep } from './protocol.js'

/** Numbers of one kind. A released one is used again: small numbers that repeat compress well. */
function numbers() {
  const free: number[] = []
  let last = 0
  return {
    take(): number {
      const number = free.pop()
      if (number === undefined) last += 1
      return number ?? last
    },
    give: (number: number): void => void free.push(number),
  }
}

/** Device of a link that has opened one. Errors have the codes of the addon. */
export function remoteDevice(link: Link, opened: Opened): NativeDevice {
  const { info } = opened
  const sentBuffers = new WeakMap<NativeBuffer, number | 'released'>()
  const digests = new WeakMap<NativeLibrary, string>()
  const libraries = new Map<string, NativeLibrary>()
  const loaded = new Map<string, NativeLibrary>()
  const [buffers, programs] = [numbers(), numbers()]
  const blobs = blobSender(link, opened)
  let [isOpen, used] = [true, 0]
  const expectOpen = (): void => {
    if (!isOpen) throw refusal('CLOSED', `the device on ${link.on} was closed`)
  }
  const sent = ({ buffer, offset, bytes }: NativeSlice): SentSlice => {
    const number = sentBuffers.get(buffer)
    if (number === undefined) throw refusal('INVALID', 'a buffer belongs to another device')
    if (number === 'released') throw refusal('CLOSED', 'the buffer was released')
    if (!isRange(buffer, offset, bytes))
      throw refusal('INVALID', `bytes ${offset} to ${offset + bytes}: expected a range of ${buffer.bytes} bytes`)
    return { buffer: number, offset, bytes }
  }
  const libraryOf = (library: NativeLibrary): string => {
    const digest = digests.get(library)
    if (digest === undefined) throw refusal('INVALID', 'a library belongs to another device')
    return digest
  }
  return {
    info: () => {
      expectOpen()
      return { ...info, memoryFreeBytes: Math.max(info.memoryFreeBytes - used, 0) }
    },
    allocate(bytes) {
      expectOpen()
      if (!Number.isSafeInteger(bytes) || bytes < 0) throw refusal('INVALID', `expected a number of bytes, got ${bytes}`)
      if (bytes > info.memoryBytes) throw refusal('MEMORY', `${bytes} bytes were requested, the device has ${info.memoryBytes}`)
      const number = buffers.take()
      link.tell({ op: 'allocate', buffer: number, bytes })
      used += bytes
      const buffer = bufferOf(link, number, bytes, blobs, () => {
        used -= bytes
        sentBuffers.set(buffer, 'released')
        link.tell({ op: 'release', buffer: number })
        buffers.give(number)
      })
      sentBuffers.set(buffer, number)
      return buffer
    },
    async sendLibrary(path) {
      const data = await readFile(path)
      const digest = digestOf(data)
      const library = libraries.get(digest) ?? {
        target: info.kind,
        kernels: (await link.ask({ op: 'library', digest }, new Map([[digest, data]]))) as NativeLibrary['kernels'],
      }
      digests.set(library, digest)
      libraries.set(digest, library)
      loaded.set(path, library)
    },
    loadLibrary(path) {
      expectOpen()
      const library = loaded.get(path)
      if (library === undefined) throw refusal('UNAVAILABLE', `${path} was not sent to ${link.on}`)
      return library
    },
    program(steps) {
      expectOpen()
      const sentSteps = steps.map((step) => sentStep(step, sent, libraryOf))
      const program = programs.take()
      link.tell({ op: 'program', program, steps: sentSteps })
      return programOf(link, program, steps.length, { sent, blobs, onRelease: () => programs.give(program) })
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
  libraryOf: (library: NativeLibrary) => string,
): SentStep {
  switch (step.kind) {
    case 'kernel':
      return { ...step, library: libraryOf(step.library), buffers: step.buffers.map(sent) }
    case 'matmul':
      return sentMatmul(step, sent)
    case 'fill':
      return { ...step, target: sent(step.target) }
    case 'copy':
      return { ...step, from: sent(step.from), to: sent(step.to) }
  }
}

function bufferOf(link: Link, buffer: number, bytes: number, blobs: BlobSender, onRelease: () => void): NativeBuffer {
  let isReleased = false
  const ask = (request: Request, named?: Blobs): Promise<unknown> =>
    isReleased ? Promise.reject(refusal('CLOSED', 'the buffer was released')) : link.ask(request, named)
  return {
    bytes,
    async write(offset, data) {
      const named = new Map<string, Uint8Array>()
      await ask({ op: 'write', buffer, offset, data: blobs(data, named) }, named)
    },
    read: async (offset, length) => aligned(await ask({ op: 'read', buffer, offset, bytes: length })),
    release() {
      if (isReleased) return
      isReleased = true
      onRelease()
    },
  }
}
