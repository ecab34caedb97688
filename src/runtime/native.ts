/**
 * The addon's typed face: exactly what `native/addon` exports, nothing more. Callers validate before they call; the
 * addon repeats every check it needs so as not to crash, and rejects with an `Error` whose `code` is one of `NativeCode`.
 */

export type NativeCode = 'INVALID' | 'UNAVAILABLE' | 'MEMORY' | 'FAULT' | 'DEVICE' | 'ABORTED' | 'CLOSED'

export interface NativeDeviceInfo {
  readonly kind: 'simt' | 'cuda'
  readonly name: string
  readonly memoryBytes: number
  readonly memoryFreeBytes: number
  /** `9.0`; absent on simt. */
  readonly computeCapability?: string
  readonly multiprocessors: number
  readonly driverVersion: number
  readonly runtimeVersion: number
  readonly matmulVersion: number
  /** Bytes of the last cache in front of the device's memory. This and what follows is absent where the device does not know it. */
  readonly cacheBytes?: number
  /** Bytes a second between memory and the device, by the width of its bus and its clock. */
  readonly bandwidth?: number
  /** The highest clock of a multiprocessor. */
  readonly clockHz?: number
  /** Of this very device, the same whenever it is opened: `GPU-<uuid>`. */
  readonly id?: string
}

/** A piece of a device buffer. */
export interface NativeSlice {
  readonly buffer: NativeBuffer
  readonly offset: number
  readonly bytes: number
}

/** What a matmul does to its sums before it rounds them. Both slices have the result's type. */
export interface NativeEpilogue {
  /** n elements. */
  readonly bias?: NativeSlice
  /** Lies as the result does. */
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
  /** Bytes of one of the device's `algorithms` for it; the library's first where it is left out. */
  readonly algorithm?: Uint8Array
}

/** A way of the device's matmul library to compute a matmul. */
export interface NativeAlgorithm {
  /** All of its configuration, as the library writes it. */
  readonly bytes: Uint8Array
  /** Parts of the configuration, in the library's numbers. */
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
  /** Copies host bytes in. Resolves when the copy is done; the bytes may be overwritten as soon as the call returns, up to `transferBytes` of them. */
  write(offset: number, data: Uint8Array): Promise<void>
  read(offset: number, bytes: number): Promise<Uint8Array>
  /** Frees the memory. Using the buffer afterwards rejects with CLOSED; steps that hold it keep it alive. */
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
  readonly target: 'simt' | 'cuda'
  readonly kernels: readonly NativeKernelInfo[]
}

/** A graph inside a program that is replayed with one call, or the plain step list where the device cannot capture. */
export interface NativeProgram {
  readonly steps: number
  /** True once the steps were captured into a device graph. */
  readonly captured: boolean
  /**
   * Copies `inputs` in, runs every step `repeats` times (1 to 100,000, by default once), copies `outputs` out; all on a worker thread.
   * Rejects with ABORTED when `abort` was called.
   */
  run(
    inputs: readonly { readonly to: NativeSlice; readonly data: Uint8Array }[],
    outputs: readonly NativeSlice[],
    repeats?: number,
  ): Promise<Uint8Array[]>
  /**
   * Like `run` without inputs, but the next of these runs is handed to the device while this one is under way: whoever asks for it in time
   * leaves the device no pause between them. Resolves, in order, with what `outputs` held when the run was over. Everything else that is
   * asked of the device waits for its end.
   */
  runAhead(outputs: readonly NativeSlice[]): Promise<Uint8Array[]>
  /** Runs of `runAhead` so far that were handed over, and those of them for which the one before was under way then. */
  readonly begun: number
  readonly begunAhead: number
  /** Stops the run under way between two steps, or between two launches of a captured graph. */
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
  /** @throws MEMORY naming the bytes asked for and free */
  allocate(bytes: number): NativeBuffer
  loadLibrary(path: string): NativeLibrary
  program(steps: readonly NativeStep[]): NativeProgram
  /** Algorithms that its matmul library offers for a matmul, the default first; empty if it has no library, or the library does not take the matmul. */
  algorithms(matmul: NativeMatmul): Promise<NativeAlgorithm[]>
  close(): void
}

export interface NativeAddon {
  /** ABI version the addon was built for. */
  readonly abiVersion: number
  /** Opens a device plugin. @throws UNAVAILABLE when the machine lacks the device or the driver */
  openDevice(pluginPath: string, ordinal: number): NativeDevice
}
