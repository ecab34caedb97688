/**
 * Types of the addon: exactly the exports of `native/addon`. Callers validate before they call. The addon repeats every check that prevents a
 * crash, and rejects with an `Error` whose `code` is one of `NativeCode`.
 */

export type NativeCode = 'INVALID' | 'UNAVAILABLE' | 'MEMORY' | 'FAULT' | 'DEVICE' | 'ABORTED' | 'CLOSED'

export interface NativeDeviceInfo {
  readonly kind: 'js' | 'simt' | 'cuda'
  readonly name: string
  readonly memoryBytes: number
  readonly memoryFreeBytes: number
  /** `9.0`; absent on simt and js. */
  readonly computeCapability?: string
  readonly multiprocessors: number
  readonly driverVersion: number
  readonly runtimeVersion: number
  readonly matmulVersion: number
  /** Bytes of the last-level cache. This field and the following ones are absent if the device does not report them. */
  readonly cacheBytes?: number
  /** Memory bandwidth in bytes per second, by bus width and memory clock. */
  readonly bandwidth?: number
  /** Maximum clock of a multiprocessor. */
  readonly clockHz?: number
  /** Stable identifier of this device: `GPU-<uuid>`. */
  readonly id?: string
}

/** A range of a device buffer. */
export interface NativeSlice {
  readonly buffer: NativeBuffer
  readonly offset: number
  readonly bytes: number
}

/** Operations of a matmul on its sums before it rounds them. Both slices have the result's type. */
export interface NativeEpilogue {
  /** n elements. */
  readonly bias?: NativeSlice
  /** Same shape and strides as the result. */
  readonly residual?: NativeSlice
  /** Negative results become 0, after bias and residual. */
  readonly relu: boolean
}

export interface NativeMatmul {
  readonly kind: 'matmul'
  /** Names the step in timings and errors. */
  readonly label: string
  readonly a: NativeSlice
  readonly b: NativeSlice
  readonly out: NativeSlice
  /** Index into `dtypes` of src/ir/dtype.ts. */
  readonly dtypes: readonly [a: number, b: number, out: number]
  readonly allowTf32: boolean
  /** batch, m, n, k */
  readonly extents: readonly [number, number, number, number]
  /** Element strides: a (batch, m, k), b (batch, n, k), out (batch, m, n). */
  readonly strides: readonly [
    readonly [number, number, number],
    readonly [number, number, number],
    readonly [number, number, number],
  ]
  readonly epilogue?: NativeEpilogue
  /** `bytes` of one of the device's `algorithms` for this matmul; by default the library's first. */
  readonly algorithm?: Uint8Array
}

/** An algorithm of the device's matmul library for a matmul. */
export interface NativeAlgorithm {
  /** Complete configuration, in the library's encoding. */
  readonly bytes: Uint8Array
  /** Fields of the configuration, in the library's numbering. */
  readonly id: number
  readonly tile: number
  readonly stages: number
  readonly split: number
  readonly swizzle: number
  readonly custom: number
  readonly cluster: number
  readonly workspaceBytes: number
}

export interface NativeKernelStep {
  readonly kind: 'kernel'
  readonly label: string
  readonly library: NativeLibrary
  /** The instance key. */
  readonly key: string
  readonly buffers: readonly NativeSlice[]
  readonly dims: readonly number[]
  readonly attrs: readonly number[]
  /** 1 for a buffer that counts as written by the step before, else 0. Absent: what the steps of the program write counts. */
  readonly changing?: readonly number[]
}

export interface NativeFill {
  readonly kind: 'fill'
  readonly label: string
  readonly target: NativeSlice
  readonly value: number
}

export interface NativeCopy {
  readonly kind: 'copy'
  readonly label: string
  readonly from: NativeSlice
  readonly to: NativeSlice
}

export type NativeStep = NativeKernelStep | NativeMatmul | NativeFill | NativeCopy

export interface NativeBuffer {
  readonly bytes: number
  /** Copies host bytes in. Resolves when the copy is done; up to `transferBytes` of the bytes may be overwritten as soon as the call returns. */
  write(offset: number, data: Uint8Array): Promise<void>
  read(offset: number, bytes: number): Promise<Uint8Array>
  /** Frees the memory. Later use of the buffer rejects with CLOSED; steps that reference it keep it alive. */
  release(): void
}

export interface NativeKernelInfo {
  readonly key: string
  readonly digest: string
  readonly buffers: number
  readonly dims: number
  readonly attrs: number
}

export interface NativeLibrary {
  readonly target: 'js' | 'simt' | 'cuda'
  readonly kernels: readonly NativeKernelInfo[]
}

/** A program: a device graph that is replayed with one call, or the plain list of steps if the device cannot capture. */
export interface NativeProgram {
  readonly steps: number
  /** True once the steps were captured into a device graph. */
  readonly captured: boolean
  /**
   * Copies `inputs` in, runs all steps `repeats` times (1 to 100,000, by default once), and copies `outputs` out, all on a worker thread.
   * Rejects with ABORTED after a call of `abort`.
   */
  run(
    inputs: readonly { readonly to: NativeSlice; readonly data: Uint8Array }[],
    outputs: readonly NativeSlice[],
    repeats?: number,
  ): Promise<Uint8Array[]>
  /**
   * Like `run` without inputs, but the next such run is submitted to the device while this one is still running. If the caller requests it in
   * time, the device has no idle time between them. Resolves, in order, with the contents of `outputs` at the end of the run. All other calls
   * of the device wait for that end.
   */
  runAhead(outputs: readonly NativeSlice[]): Promise<Uint8Array[]>
  /** Number of `runAhead` runs submitted so far, and of those submitted while the previous one was running. */
  readonly begun: number
  readonly begunAhead: number
  /** Ends every run that was requested and has not finished, between two steps or two launches of a captured graph. */
  abort(): void
  /** Records the steps into a device graph; later runs replay it. A no-op on simt. */
  capture(): Promise<void>
  /** Milliseconds of each of `repeats` runs, by device events (host clock on simt), after `warmup` runs. */
  time(repeats: number, warmup: number): Promise<Float64Array>
  /** Milliseconds of each step, run one by one, median of `repeats`. */
  profile(repeats: number): Promise<Float64Array>
  release(): void
}

export interface NativeDevice {
  info(): NativeDeviceInfo
  /** @throws MEMORY naming the requested and the free bytes */
  allocate(bytes: number): NativeBuffer
  loadLibrary(path: string): NativeLibrary
  /** On another machine: sends a library, which `loadLibrary` loads then. */
  sendLibrary?(path: string): Promise<void>
  program(steps: readonly NativeStep[]): NativeProgram
  /**
   * Algorithms of the matmul library for a matmul, at most `most` (512 by default): those that it suggests, the default first, then other
   * configurations. Empty without a library, or if it does not support the matmul.
   */
  algorithms(matmul: NativeMatmul, most?: number): Promise<NativeAlgorithm[]>
  close(): void
}

export interface NativeAddon {
  /** ABI version the addon was built for. */
  readonly abiVersion: number
  /** Opens a device plugin. @throws UNAVAILABLE when the machine lacks the device or the driver */
  openDevice(pluginPath: string, ordinal: number): NativeDevice
}
