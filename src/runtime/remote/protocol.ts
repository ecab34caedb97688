/** Requests to the agent on another machine, and its replies. The agent handles requests in order; replies come when the work is done. */
import type { NativeDeviceInfo, NativeEpilogue, NativeKernelStep, NativeMatmul, NativeSlice } from '../native.js'

/** A slice, with the number of its buffer. */
export interface SentSlice extends Omit<NativeSlice, 'buffer'> {
  readonly buffer: number
}

export interface SentMatmul extends Omit<NativeMatmul, 'a' | 'b' | 'out' | 'epilogue'> {
  readonly a: SentSlice
  readonly b: SentSlice
  readonly out: SentSlice
  readonly epilogue?: Omit<NativeEpilogue, 'bias' | 'residual'> & { readonly bias?: SentSlice; readonly residual?: SentSlice }
}

/** A step, with the numbers of its buffers and the digest of its library. */
export type SentStep =
  | SentMatmul
  | (Omit<NativeKernelStep, 'library' | 'buffers'> & { readonly library: string; readonly buffers: readonly SentSlice[] })
  | { readonly kind: 'fill'; readonly label: string; readonly target: SentSlice; readonly value: number }
  | { readonly kind: 'copy'; readonly label: string; readonly from: SentSlice; readonly to: SentSlice }

export interface SentInput {
  readonly to: SentSlice
  readonly data: Uint8Array
}

export type Request =
  | { readonly op: 'about' }
  | { readonly op: 'open'; readonly kind: 'simt' | 'cuda'; readonly ordinal: number; readonly who: string }
  /** Without bytes: `false` if the agent has no such file. */
  | { readonly op: 'library'; readonly digest: string; readonly data?: Uint8Array }
  | { readonly op: 'allocate'; readonly buffer: number; readonly bytes: number }
  /** Bytes of a digest, which the agent may have: then `true`. */
  | {
      readonly op: 'write'
      readonly buffer: number
      readonly offset: number
      readonly data: Uint8Array
      readonly digest?: string
    }
  | { readonly op: 'recall'; readonly buffer: number; readonly offset: number; readonly digest: string }
  | { readonly op: 'read'; readonly buffer: number; readonly offset: number; readonly bytes: number }
  | { readonly op: 'release'; readonly buffer: number }
  | { readonly op: 'program'; readonly program: number; readonly steps: readonly SentStep[] }
  | {
      readonly op: 'run'
      readonly program: number
      readonly inputs: readonly SentInput[]
      readonly outputs: readonly SentSlice[]
      readonly repeats: number | undefined
    }
  | { readonly op: 'runAhead'; readonly program: number; readonly outputs: readonly SentSlice[] }
  | { readonly op: 'capture' | 'abort' | 'end'; readonly program: number }
  | { readonly op: 'time'; readonly program: number; readonly repeats: number; readonly warmup: number }
  | { readonly op: 'profile'; readonly program: number; readonly repeats: number }
  | { readonly op: 'algorithms'; readonly matmul: SentMatmul; readonly most: number | undefined }

/** A reply to the request of the same number. */
export interface Reply {
  readonly id: number
  readonly value?: unknown
  readonly error?: { readonly message: string; readonly code?: string; readonly holder?: string }
}

/** State of a program after a run. */
export interface Ran<T> {
  readonly value: T
  readonly captured: boolean
  readonly begun: number
  readonly begunAhead: number
}

/** The far machine. */
export interface AboutMachine {
  readonly host: string
  readonly platform: string
  readonly glibc: string
  readonly node: string
  readonly driver: string | undefined
  readonly cache: string
  readonly devices: readonly AboutDevice[]
}

export type AboutDevice =
  | { readonly kind: 'simt' | 'cuda'; readonly info: NativeDeviceInfo; readonly holder: string | undefined }
  | { readonly kind: 'simt' | 'cuda'; readonly reason: string }

/** An open device: its attributes, and the state of a GPU in words. */
export interface Opened {
  readonly info: NativeDeviceInfo
  readonly notes: readonly string[]
  /** True if tensors of earlier links are stored. */
  readonly hasTensors: boolean
}
