/**
 * The agent's side of one open device: buffers, libraries and programs by number. Requests without a reply (`allocate`, `program`) may fail: their
 * error is thrown by the first request that uses the number.
 */
import type {
  NativeBuffer,
  NativeDevice,
  NativeLibrary,
  NativeMatmul,
  NativeProgram,
  NativeSlice,
  NativeStep,
} from '../native.js'
import { digestOf, type Store } from './agent_store.js'
import type { Ran, Request, SentMatmul, SentSlice, SentStep } from './protocol.js'

/** Values by number, or the error that made one. */
function numbered<T>(what: string) {
  const held = new Map<number, { readonly value: T } | { readonly error: unknown }>()
  return {
    make(id: number, make: () => T): void {
      try {
        held.set(id, { value: make() })
      } catch (error) {
        held.set(id, { error })
      }
    },
    get(id: number): T {
      const found = held.get(id)
      if (found === undefined) throw Object.assign(new Error(`the ${what} was released`), { code: 'CLOSED' })
      if ('error' in found) throw found.error
      return found.value
    },
    take(id: number): T | undefined {
      const found = held.get(id)
      held.delete(id)
      return found !== undefined && 'value' in found ? found.value : undefined
    },
  }
}

type DeviceRequest = Exclude<Request, { readonly op: 'about' | 'open' }>

/** Handler of requests to a device. */
export function deviceHandler(device: NativeDevice, files: { readonly libraries: Store; readonly tensors: Store }) {
  const buffers = numbered<NativeBuffer>('buffer')
  const programs = numbered<NativeProgram>('program')
  const libraries = new Map<string, NativeLibrary>()
  const slice = ({ buffer, ...rest }: SentSlice): NativeSlice => ({ ...rest, buffer: buffers.get(buffer) })
  const matmul = ({ a, b, out, epilogue, ...rest }: SentMatmul): NativeMatmul => {
    const operands = { ...rest, a: slice(a), b: slice(b), out: slice(out) }
    if (epilogue === undefined) return operands
    const { relu, bias, residual } = epilogue
    const read = { ...(bias && { bias: slice(bias) }), ...(residual && { residual: slice(residual) }) }
    return { ...operands, epilogue: { relu, ...read } }
  }
  const step = (sent: SentStep): NativeStep => {
    if (sent.kind === 'matmul') return matmul(sent)
    if (sent.kind === 'fill') return { ...sent, target: slice(sent.target) }
    if (sent.kind === 'copy') return { ...sent, from: slice(sent.from), to: slice(sent.to) }
    const library = libraries.get(sent.library)
    if (library === undefined) throw Object.assign(new Error(`the library ${sent.library} was not sent`), { code: 'INVALID' })
    return { ...sent, library, buffers: sent.buffers.map(slice) }
  }
  const library = (digest: string, data: Uint8Array | undefined): NativeLibrary['kernels'] | false => {
    const known = libraries.get(digest)
    if (known !== undefined) return known.kernels
    const path = files.libraries.find(digest) ?? (data === undefined ? undefined : files.libraries.add(digest, data))
    if (path === undefined) return false
    const opened = device.loadLibrary(path)
    libraries.set(digest, opened)
    return opened.kernels
  }
  const write = (buffer: number, offset: number, data: Uint8Array, digest: string | undefined): Promise<void> => {
    const target = buffers.get(buffer)
    if (digest !== undefined) files.tensors.add(digest, data)
    return target.write(offset, data)
  }
  const recall = async (buffer: number, offset: number, digest: string): Promise<boolean> => {
    const data = files.tensors.read(digest)
    if (data === undefined || digestOf(data) !== digest) return false
    await buffers.get(buffer).write(offset, data)
    return true
  }
  /** Adds the program's state to the result of a run. */
  const ran = async <T>(id: number, run: (program: NativeProgram) => Promise<T>): Promise<Ran<T>> => {
    const program = programs.get(id)
    const value = await run(program)
    const { captured, begun, begunAhead } = program
    return { value, captured, begun, begunAhead }
  }
  const inputs = (request: Extract<Request, { readonly op: 'run' }>) =>
    request.inputs.map(({ to, data }) => ({ to: slice(to), data }))
  return (request: DeviceRequest): unknown => {
    switch (request.op) {
      case 'library':
        return library(request.digest, request.data)
      case 'allocate':
        return buffers.make(request.buffer, () => device.allocate(request.bytes))
      case 'write':
        return write(request.buffer, request.offset, request.data, request.digest)
      case 'recall':
        return recall(request.buffer, request.offset, request.digest)
      case 'read':
        return buffers.get(request.buffer).read(request.offset, request.bytes)
      case 'release':
        return buffers.take(request.buffer)?.release()
      case 'program':
        return programs.make(request.program, () => device.program(request.steps.map(step)))
      case 'run':
        return ran(request.program, (each) => each.run(inputs(request), request.outputs.map(slice), request.repeats))
      case 'runAhead':
        return ran(request.program, (each) => each.runAhead(request.outputs.map(slice)))
      case 'capture':
        return ran(request.program, (each) => each.capture())
      case 'time':
        return ran(request.program, (each) => each.time(request.repeats, request.warmup))
      case 'profile':
        return ran(request.program, (each) => each.profile(request.repeats))
      case 'abort':
        return programs.get(request.program).abort()
      case 'end':
        return programs.take(request.program)?.release()
      case 'algorithms':
        return device.algorithms(matmul(request.matmul), request.most)
    }
  }
}
