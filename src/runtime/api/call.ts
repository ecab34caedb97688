/** A call from end to end: it is checked against its op, its kernel is found and made ready, and launched in order. */

import { usageError } from '../../errors.js'
import type { DType } from '../../ir/dtype.js'
import type { CallOptions } from './call_types.js'
import { type CheckedCall, checkCall } from './check_call.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import { findKernel } from './find_kernel.js'
import { launch } from './launch.js'
import { checkOptions } from './options.js'
import type { Tensor } from './tensor.js'

type GivenOptions = { readonly [K in Exclude<keyof CallOptions<never>, 'signal'>]?: unknown } & Pick<CallOptions<never>, 'signal'>

const known: { readonly [K in keyof Required<GivenOptions>]: true } = {
  attrs: true,
  dtype: true,
  dims: true,
  keep: true,
  signal: true,
}

/** Untyped implementation of `Device.call`. */
export async function callOp(
  core: DeviceCore,
  op: unknown,
  inputs: unknown,
  options: GivenOptions = {},
): Promise<Record<string, Tensor<DType> | DeviceTensor>> {
  core.expectOpen('call')
  checkOptions('call', 'call', Object.keys(known), options)
  const { signal } = options
  signal?.throwIfAborted()
  const call = checkCall(op, inputs, options)
  refuseAliases(call)
  const memory = Object.entries(call.inputs).flatMap(([name, tensor]) =>
    tensor instanceof DeviceTensor ? [[name, tensor.retain(`${call.op.name}: ${name}`, core)] as const] : [],
  )
  const inputSlices = new Map(memory.map(([name, { slice }]) => [name, slice]))
  const start = (of: CheckedCall) => {
    const { entries, isShipped } = core.loaded ?? { entries: new Map() }
    const kernel = findKernel(entries, of, isShipped)
    const library = core.libraryOf(kernel.entry.key)
    return (
      library &&
      (() => launch({ call: of, kernel, library, inputSlices, keep: options.keep === true, signal }, core.native, core))
    )
  }
  try {
    const now = core.waiting || core.loaded === undefined ? undefined : start(call)
    if (now !== undefined) return await core.run(now)
    const waiting = snapshot(call)
    const ready = async (): Promise<void> => {
      const { entries, isShipped } = await core.project()
      await core.ensure([findKernel(entries, waiting, isShipped).entry.key], call.op.name, signal)
      signal?.throwIfAborted()
    }
    return await core.run(async () => {
      const then = start(waiting)
      if (then === undefined) throw new Error(`internal: the kernel of ${call.op.name} is not ready`)
      return then()
    }, ready)
  } finally {
    for (const [, each] of memory) each.release()
  }
}

/** Copies the host tensors of a call that has to wait: its caller may change the originals. */
const snapshot = (call: CheckedCall): CheckedCall => ({
  ...call,
  inputs: Object.fromEntries(
    Object.entries(call.inputs).map(([name, tensor]) => [
      name,
      tensor instanceof DeviceTensor ? tensor : ({ ...tensor, data: tensor.data.slice() } as Tensor<DType>),
    ]),
  ),
})

/** Refuses a call whose kernel updates a tensor in place and reads the same memory as another input. */
function refuseAliases({ op, inputs }: CheckedCall): void {
  for (const name of Object.values(op.updates)) {
    if (!(inputs[name] instanceof DeviceTensor)) continue
    const twin = Object.keys(inputs).find((other) => other !== name && inputs[other] === inputs[name])
    if (twin === undefined) continue
    throw usageError('call.alias', `${op.name} replaces elements of ${name} in place, and ${twin} is the same device tensor`, {
      hint: 'give it a copy: upload the tensor twice',
    })
  }
}
