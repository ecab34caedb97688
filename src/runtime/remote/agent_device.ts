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
import type { Store } from './agent_store.js'
import {
  changesOf,
  type Ran,
  type Request,
  type SentData,
  type SentMatmul,
  type SentOutput,
  type SentSlice,
  type SentStep,
} from './protocol.js'

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

export type DeviceRequest = Exclude<Request, { readonly op: 'about' | 'open' | 'give' }>
type Run = Extract<Request, { readonly op: 'run' }>

/** Bytes by digest. */
export type Given = ReadonlyMap<string, Uint8Array>

/** Digests of bytes that a request needs. */
export function neededBy(request: DeviceRequest): readonly string[] {
  const digests = (data: SentData): string[] => (typeof data === 'string' ? [data] : [])
  if (request.op === 'library') return [request.digest]
  if (request.op === 'write') return digests(request.data)
  return request.op === 'run' ? request.inputs.flatMap(({ data }) => digests(data)) : []
}

/** @throws Error for a digest whose bytes did not come */
function bytesOf(data: SentData, given: Given): Uint8Array {
  const found = typeof data === 'string' ? given.get(data) : data
  if (found === undefined) throw new Error(`bytes that a request names as ${data} were not sent`)
  return found
}

/** Outputs of a run, with changes alone of those that were inputs. */
function sentOutputs({ inputs, outputs }: Run, results: readonly Uint8Array[], given: Given): readonly SentOutput[] {
  return results.map((data, i) => {
    const slice = outputs[i]
    const input = inputs.find(
      ({ to }) =>
        to.buffer === slice?.buffer && to.offset === slice.offset && to.bytes === slice.bytes && to.bytes === data.length,
    )
    return input === undefined ? data : { changes: changesOf(bytesOf(input.data, given), data) }
  })
}

/** Handler of requests to a device, with the bytes that they name. */
export function deviceHandler(device: NativeDevice, stored: Store) {
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
  const library = (digest: string, given: Given): NativeLibrary['kernels'] => {
    const known = libraries.get(digest)
    if (known !== undefined) return known.kernels
    const opened = device.loadLibrary(stored.add(digest, bytesOf(digest, given)))
    libraries.set(digest, opened)
    return opened.kernels
  }
  /** Adds the program's state to the result of a run. */
  const ran = async <T>(id: number, run: (program: NativeProgram) => Promise<T>): Promise<Ran<T>> => {
    const program = programs.get(id)
    const value = await run(program)
    const { captured, begun, begunAhead } = program
    return { value, captured, begun, begunAhead }
  }
  const run = (request: Run, given: Given) =>
    ran(request.program, async (program) => {
      const inputs = request.inputs.map(({ to, data }) => ({ to: slice(to), data: bytesOf(data, given) }))
      return sentOutputs(request, await program.run(inputs, request.outputs.map(slice), request.repeats), given)
    })
  return (request: DeviceRequest, given: Given): unknown => {
    switch (request.op) {
      case 'library':
        return library(request.digest, given)
      case 'allocate':
        return buffers.make(request.buffer, () => device.allocate(request.bytes))
      case 'write':
        return buffers.get(request.buffer).write(request.offset, bytesOf(request.data, given))
      case 'read':
        return buffers.get(request.buffer).read(request.offset, request.bytes)
      case 'release':
        return buffers.take(request.buffer)?.release()
      case 'program':
        return programs.make(request.program, () => device.program(request.steps.map(step)))
      case 'run':
        return run(request, given)
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
