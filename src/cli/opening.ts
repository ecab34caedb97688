/** How verbs open devices and kernels: the words of their options, and who is told what is compiled. Loads no model. */
import type { OpenOptions } from '../runtime/open.js'
import type { CliContext } from './context.js'
import { compileProgress } from './progress.js'

export { floatTypes as dtypes } from '../checkpoint/float_types.js'
export { type DeviceKind, deviceKinds } from '../runtime/device.js'

/** What is compiled is told on stderr. */
export const openOptions = (context: CliContext): OpenOptions => ({
  root: context.root,
  signal: context.signal,
  onNotice: (text) => context.log(`${text}\n`),
  onProgress: compileProgress(context),
})
