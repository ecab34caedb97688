/**
 * Part of a tuning file for the matmul library of a device: the fastest algorithm of a matmul, by device and library version. `heddle tune
 * --library` writes it, `heddle gen` copies it to the manifest, and programs use it when they are built.
 */
import { z } from 'zod'

const microseconds = z.number().positive()

/** Size of an algorithm in bytes, equal to HEDDLE_ALGORITHM_BYTES of native/include/heddle/algorithms.h. */
const algorithmBytes = 64

export const tunedMatmulSchema = z.strictObject({
  /** Name of the device that was measured. */
  device: z.string().min(1),
  /** Version of its matmul library, such as 130100. Algorithms are not portable between versions. */
  library: z.number().int().positive(),
  /** Types, extents, strides and epilogue. */
  matmul: z.string().min(1),
  /** The algorithm's whole configuration, as the library serialises it. */
  algorithm: z
    .string()
    .length(2 * algorithmBytes)
    .regex(/^[0-9a-f]*$/, 'expected hexadecimal digits'),
  /** Readable parts of the configuration. */
  config: z.string(),
  /** Median microseconds of the library's first algorithm and of this one. */
  measured: z.strictObject({ first: microseconds, algorithm: microseconds }),
})

export type TunedMatmul = z.infer<typeof tunedMatmulSchema>

export type TunedMatmulKey = Pick<TunedMatmul, 'device' | 'library' | 'matmul'>

/** Sort key of a tuning file, and the identity of an entry. */
export const tunedMatmulKey = ({ device, library, matmul }: TunedMatmulKey): string => `${device} ${library} ${matmul}`

/** Entries with those of measured keys replaced. A matmul that was measured and has no fresh entry uses the library's first algorithm. */
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
