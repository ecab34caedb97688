/** How verbs open devices and kernels: the words of their options, and who is told what is compiled. Loads no model. */
import { Option } from '@commander-js/extra-typings'
import { deviceKinds, deviceName } from '../runtime/device_name.js'
import type { OpenOptions } from '../runtime/open.js'
import type { CliContext } from './context.js'
import { compileProgress } from './progress.js'

export { floatTypes as dtypes } from '../checkpoint/float_types.js'
export type { DeviceName } from '../runtime/device_name.js'

/** `--device`. The kinds are listed and completed; `cuda:1` names one of several GPUs. */
export const deviceOption = (description = 'default: cuda if a GPU works, else simt') =>
  new Option('--device <device>', `${description}; cuda:1 is the second GPU`)
    .choices(deviceKinds)
    .argParser((text) => deviceName(text))

/** What is compiled is told on stderr. */
export const openOptions = (context: CliContext): OpenOptions => ({
  root: context.root,
  signal: context.signal,
  onNotice: (text) => context.log(`${text}\n`),
  onProgress: compileProgress(context),
})
