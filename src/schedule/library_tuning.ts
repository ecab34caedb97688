/**
 * The part of a tuning file that is about a device's matmul library: for a matmul the algorithm that was the fastest, by the device and the
 * library's version. `heddle tune --library` writes it, `heddle gen` copies it to the manifest, and programs take it when they are built.
 */
import { z } from 'zod'

const microseconds = z.number().positive()

/** Bytes of an algorithm, as HEDDLE_ALGORITHM_BYTES of native/include/heddle/algorithms.h. */
const algorithmBytes = 64

export const tunedMatmulSchema = z.strictObject({
  /** Name of the device that was measured. */
  device: z.string().min(1),
  /** Version of its matmul library, such as 130100: an algorithm means nothing to another. */
  library: z.number().int().positive(),
  /** Types, extents, strides and epilogue. */
  matmul: z.string().min(1),
  /** All of the algorithm's configuration, as the library writes it. */
  algorithm: z
    .string()
    .length(2 * algorithmBytes)
    .regex(/^[0-9a-f]*$/, 'expected hexadecimal digits'),
  /** Parts of the configuration, for people. */
  config: z.string(),
  /** Median microseconds of the library's first algorithm and of this one. */
  measured: z.strictObject({ first: microseconds, algorithm: microseconds }),
})

export type TunedMatmul = z.infer<typeof tunedMatmulSchema>

export type TunedMatmulKey = Pick<TunedMatmul, 'device' | 'library' | 'matmul'>

/** Order of a tuning file, and what makes two entries the same. */
export const tunedMatmulKey = ({ device, library, matmul }: TunedMatmulKey): string => `${device} ${library} ${matmul}`

/** Entries with those of measured keys replaced: a matmul that was measured and has no fresh entry takes the library's first algorithm. */
export function mergeMatmuls(
  old: readonly TunedMatmul[],
  fresh: readonly TunedMatmul[],
  measured: readonly TunedMatmulKey[],
): TunedMatmul[] {
  const again = new Set(measured.map(tunedMatmulKey))
  return [...old.filter((entry) => !again.has(tunedMatmulKey(entry))), ...fresh]
}

/** Entries in the order of a tuning file. */
export const sortedMatmuls = (entries: readonly TunedMatmul[]): TunedMatmul[] =>
  [...entries].sort((a, b) => (tunedMatmulKey(a) < tunedMatmulKey(b) ? -1 : 1))
