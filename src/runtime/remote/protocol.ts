/** Requests to the agent on another machine, and its replies. The agent handles requests in order; replies come when the work is done. */
import { createHash } from 'node:crypto'
import { type BrotliOptions, constants } from 'node:zlib'
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

/** Bytes, or the digest of bytes that the agent may have stored. It asks for those that it lacks. */
export type SentData = Uint8Array | string

export interface SentInput {
  readonly to: SentSlice
  readonly data: SentData
}

export type Request =
  | { readonly op: 'about' }
  | { readonly op: 'open'; readonly kind: 'simt' | 'cuda'; readonly ordinal: number; readonly who: string }
  /** Bytes of a digest that a request names, before it or after the agent has asked for them. It has no reply. */
  | { readonly op: 'give'; readonly digest: string; readonly data: Uint8Array }
  | { readonly op: 'library'; readonly digest: string }
  | { readonly op: 'allocate'; readonly buffer: number; readonly bytes: number }
  | { readonly op: 'write'; readonly buffer: number; readonly offset: number; readonly data: SentData }
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

/** Bytes of an output, or, of one that was an input of the same run, their exclusive or with the input's: mostly zeros. */
export type SentOutput = Uint8Array | { readonly changes: Uint8Array }

/** A reply to the request of the same number. */
export interface Reply {
  readonly id: number
  /** Digests that the request names and the agent lacks. Requests after it wait until they are given; the reply itself follows. */
  readonly needs?: readonly string[]
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
  /** True if tensors and libraries of earlier links are stored. */
  readonly hasStored: boolean
}

/** Name of bytes in the agent's store: 192 bits of their SHA-256, as characters of file names. */
export const digestOf = (data: Uint8Array): string => createHash('sha256').update(data).digest('base64url').slice(0, 32)

/** Compression of both directions. The window of 16 MiB spans the libraries of a check, which are mostly alike. */
export const compression: BrotliOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 24 },
}

/** Exclusive or of two ranges of the same length. */
export function changesOf(before: Uint8Array, after: Uint8Array): Uint8Array {
  const changes = new Uint8Array(after.byteLength)
  for (let at = 0; at < changes.length; at++) changes[at] = (before[at] ?? 0) ^ (after[at] ?? 0)
  return changes
}
