/** Shared options of `check` and `repro`, which check kernels against their bodies. */
import type { DType } from '../ir/dtype.js'
import type { SetupOptions } from '../verify/check/setup.js'
import type { CliContext } from './context.js'
import { type DeviceName, openOptions } from './opening.js'
import { readTuning } from './tuning_file.js'

export interface CheckedOptions {
  readonly device?: DeviceName | undefined
  /** Machine of the device: a name of ~/.ssh/config, or a command prefix. */
  readonly on?: string | undefined
  /** Storage type; default: all that are declared. */
  readonly dtype?: DType | undefined
  readonly generated?: boolean | undefined
  readonly specs?: string | undefined
}

/** @throws errors of reading the tuning file */
export async function checkSetup(
  { device, on, dtype, generated, specs }: CheckedOptions,
  context: CliContext,
  who: string,
): Promise<SetupOptions> {
  const { root, signal } = context
  const { onNotice, onProgress } = openOptions(context)
  const tuning = await readTuning({ root, specs, file: undefined })
  const dtypes = dtype === undefined ? undefined : [dtype]
  return { root, device, on, who, dtypes, generated, specs, tuning, signal, onNotice, onProgress }
}
