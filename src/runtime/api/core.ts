/**
 * State shared by calls, models and tensors of one device: the device itself, the project whose kernels it runs, the order of work, and
 * whether it is still open.
 */

import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import { abortable } from '../abortable.js'
import type { Device as NativeDevice } from '../device.js'
import type { NativeLibrary, NativeSlice } from '../native.js'
import { CallQueue } from './call_queue.js'
import type { Form, TensorHome } from './device_tensor.js'
import { entriesByOp, type KernelEntries } from './find_kernel.js'
import { tensorIn } from './form.js'
import type { OpenProject, Project } from './project.js'
import type { Tensor } from './tensor.js'

export interface LoadedProject extends Project {
  readonly entries: KernelEntries
}

/** Maximum bytes of one read. */
const pieceBytes = 2 ** 30

export class DeviceCore implements TensorHome {
  readonly native: NativeDevice
  readonly #open: OpenProject
  readonly #turns = new CallQueue()
  readonly #running = new Set<Promise<unknown>>()
  readonly #ready = new Set<string>()
  #project: Promise<LoadedProject> | undefined
  #loaded: LoadedProject | undefined
  #closed: Promise<void> | undefined

  constructor(native: NativeDevice, open: OpenProject) {
    this.native = native
    this.#open = open
  }

  expectOpen(who: string): void {
    if (this.#closed === undefined) return
    throw usageError('device.closed', `${who}: the ${this.native.kind} device was closed`, {
      hint: 'open another with openDevice',
    })
  }

  /** The project, if it has been loaded. */
  get loaded(): LoadedProject | undefined {
    return this.#loaded
  }

  /** Loads the project at the first call; retries after a failure. */
  project(): Promise<LoadedProject> {
    this.#project ??= this.#open(this.native).then(
      (project) => {
        this.#loaded = { ...project, entries: entriesByOp(project.manifest.kernels) }
        return this.#loaded
      },
      (error: unknown) => {
        this.#project = undefined
        throw error
      },
    )
    return this.#project
  }

  /** Makes kernels ready to launch. @throws errors of the project's kernel source */
  async ensure(keys: readonly string[], neededBy: string, signal: AbortSignal | undefined): Promise<void> {
    const { kernels } = await this.project()
    const missing = keys.filter((key) => !this.#ready.has(key))
    if (missing.length > 0) await kernels.ensure(missing, { signal, neededBy: () => neededBy })
    for (const key of missing) this.#ready.add(key)
  }

  /** Library of a kernel that is ready; undefined if it is not. */
  libraryOf(key: string): NativeLibrary | undefined {
    return this.#ready.has(key) ? this.#loaded?.kernels.of(key) : undefined
  }

  /** True if earlier work has not started yet, so that new work has to wait too. */
  get waiting(): boolean {
    return this.#turns.waiting
  }

  /** Starts work at once, or after waiting work: once `ready` has resolved, in the order of the calls. `close` waits for it. */
  async run<T>(work: () => Promise<T>, ready?: () => Promise<void>): Promise<T> {
    const direct = ready === undefined && !this.#turns.waiting
    return this.track(direct ? work() : this.#turns.start(ready ?? (async () => undefined), work))
  }

  /** Registers work that has started: `close` waits for it. */
  async track<T>(running: Promise<T>): Promise<T> {
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  readTensor(form: Form, slice: NativeSlice, signal: AbortSignal | undefined): Promise<Tensor<DType>> {
    return this.run(async () => tensorIn(form, await this.#read(slice, signal)))
  }

  /** Reads a slice as one piece of work: nothing runs between the parts of a long one. */
  async #read({ buffer, offset, bytes }: NativeSlice, signal: AbortSignal | undefined): Promise<Uint8Array> {
    const count = Math.max(1, Math.ceil(bytes / pieceBytes))
    const pieces = Array.from({ length: count }, (_, i) => {
      const at = i * pieceBytes
      return { buffer, offset: offset + at, bytes: Math.min(pieceBytes, bytes - at) }
    })
    const program = this.native.program([])
    try {
      const read = await abortable(program, signal, () => program.run([], pieces))
      const [first = new Uint8Array()] = read
      if (read.length === 1) return first
      const whole = new Uint8Array(bytes)
      for (const [i, piece] of read.entries()) whole.set(piece, i * pieceBytes)
      return whole
    } finally {
      program.release()
    }
  }

  close(): Promise<void> {
    this.#closed ??= this.#finish()
    return this.#closed
  }

  async #finish(): Promise<void> {
    await Promise.allSettled(this.#running)
    this.native.close()
  }
}
