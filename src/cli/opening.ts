/** Options of verbs that open devices and kernels, and their progress callbacks. Loads no model. */
import { Option } from '@commander-js/extra-typings'
import { compiledDevice, deviceKinds, deviceName } from '../runtime/device_name.js'
import type { OpenOptions } from '../runtime/open.js'
import type { CliContext } from './context.js'
import { compileProgress } from './progress.js'

export { floatTypes as dtypes } from '../checkpoint/float_types.js'
export type { DeviceName } from '../runtime/device_name.js'

/** `--device`. Help and completion list the kinds; `cuda:1` selects one of several GPUs. */
export const deviceOption = (description = 'default: cuda if a GPU works, else simt; js without a C++ compiler') =>
  new Option('--device <device>', `${description}; cuda:1 is the second GPU`)
    .choices(deviceKinds)
    .argParser((text) => deviceName(text))

/** `--device` of verbs that time or test compiled kernels. */
export const compiledDeviceOption = () =>
  new Option('--device <device>', 'default: cuda if a GPU works, else simt; cuda:1 is the second GPU')
    .choices(deviceKinds.filter((kind) => kind !== 'js'))
    .argParser(compiledDevice)

/** `--on` of verbs that can use a device of another machine. */
export const onOption = () =>
  new Option(
    '--on <host>',
    'use a device of another machine: a name of ~/.ssh/config, or a command prefix such as "docker exec -i box"',
  )

/** `--read` of verbs that can be packed. */
export const readOption = () =>
  new Option('--read <file>', 'run nothing: print the result.json of a packed run (heddle pack)').conflicts(['on', 'device'])

/** Machine of a device, and the verb that uses it, which others who wait for the device read. */
export interface Machine {
  readonly on?: string | undefined
  readonly who: string
}

/** Opening options that report compilation on stderr. */
export const openOptions = (context: CliContext, machine?: Machine): OpenOptions => ({
  ...machine,
  root: context.root,
  signal: context.signal,
  onNotice: (text) => context.log(`${text}\n`),
  onProgress: compileProgress(context),
})
