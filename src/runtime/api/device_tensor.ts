/** Tensors that stay in device memory between calls. */
import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { NativeSlice } from '../native.js'
import { checkOptions } from './options.js'
import type { Tensor } from './tensor.js'

/** Storage type, extents and layout of a tensor. */
export interface Form<D extends DType = DType> {
  readonly dtype: D
  readonly shape: readonly number[]
  /** Row-major if undefined. */
  readonly layout: LayoutDecl | undefined
}

/** Owner of the memory of a device tensor: its device. */
export interface TensorHome {
  /** @throws usage `device.closed` */
  expectOpen(who: string): void
  /** Reads a slice after all work requested before, in row-major order. */
  readTensor(form: Form, slice: NativeSlice, signal: AbortSignal | undefined): Promise<Tensor<DType>>
}

/** Reference to the memory of a device tensor, until it is released. */
export interface RetainedMemory {
  readonly slice: NativeSlice
  release(): void
}

/**
 * A tensor in device memory, accepted wherever a tensor is. It is freed by `free`, with its device, or by the garbage collector. An op that
 * updates an input in place changes it.
 */
export class DeviceTensor<D extends DType = DType> implements Form<D> {
  readonly dtype: D
  readonly shape: readonly number[]
  readonly layout: LayoutDecl | undefined
  readonly #home: TensorHome
  readonly #slice: NativeSlice
  #holders = 0
  #freed = false

  /** @internal created by `device.upload` and by calls with `keep` */
  constructor({ dtype, shape, layout }: Form<D>, home: TensorHome, slice: NativeSlice) {
    this.dtype = dtype
    this.shape = shape
    this.layout = layout
    this.#home = home
    this.#slice = slice
  }

  /**
   * Copies the elements to the host in row-major order, after all calls made before.
   * @throws usage `tensor.freed`, `device.closed`; the signal's reason
   */
  async read(options: { readonly signal?: AbortSignal | undefined } = {}): Promise<Tensor<D>> {
    checkOptions('tensor', 'read', ['signal'], options)
    const { signal } = options
    signal?.throwIfAborted()
    const retained = this.retain('read', this.#home)
    try {
      // The device reads elements of the form's type.
      return (await this.#home.readTensor(this, retained.slice, signal)) as Tensor<D>
    } finally {
      retained.release()
    }
  }

  /** Frees the memory after all calls made before. Freeing again does nothing. */
  free(): void {
    if (this.#freed) return
    this.#freed = true
    if (this.#holders === 0) this.#slice.buffer.release()
  }

  get freed(): boolean {
    return this.#freed
  }

  /** @internal keeps its memory alive for a call on its device. @throws usage `tensor.freed`, `tensor.device`, `device.closed` */
  retain(who: string, home: TensorHome): RetainedMemory {
    if (home !== this.#home) {
      throw usageError('tensor.device', `${who}: the device tensor is on another device`, {
        hint: 'read it there, and upload it here',
      })
    }
    home.expectOpen(who)
    if (this.#freed) {
      throw usageError('tensor.freed', `${who}: the device tensor ${this.dtype} [${this.shape.join(', ')}] was freed`)
    }
    this.#holders += 1
    let retained = true
    return {
      slice: this.#slice,
      release: () => {
        if (!retained) return
        retained = false
        this.#holders -= 1
        if (this.#freed && this.#holders === 0) this.#slice.buffer.release()
      },
    }
  }
}
