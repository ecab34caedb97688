/** What the verbs that hold kernels against their bodies, `check` and `repro`, are told alike. */
import type { DType } from '../ir/dtype.js'
import type { SetupOptions } from '../verify/check/setup.js'
import type { CliContext } from './context.js'
import { type DeviceName, openOptions } from './opening.js'
import { readTuning } from './tuning_file.js'

export interface CheckedOptions {
  readonly device?: DeviceName | undefined
  /** Storage types; all that are declared without it. */
  readonly dtype?: DType | undefined
  readonly generated?: boolean | undefined
  readonly specs?: string | undefined
}

/** @throws what reading the tuning file throws */
export async function checkSetup(
  { device, dtype, generated, specs }: CheckedOptions,
  context: CliContext,
): Promise<SetupOptions> {
  const { root, signal } = context
  const { onNotice, onProgress } = openOptions(context)
  const tuning = await readTuning({ root, specs, file: undefined })
  const dtypes = dtype === undefined ? undefined : [dtype]
  return { root, device, dtypes, generated, specs, tuning, signal, onNotice, onProgress }
}
