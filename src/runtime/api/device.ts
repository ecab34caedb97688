/** The public device and the checks of its methods. */
import { usageError } from '../../errors.js'
import type { GraphDecl } from '../../lang/graph.js'
import type { LayoutDecl } from '../../lang/layout.js'
import type { ProgramDecl } from '../../lang/program/program.js'
import type { Device as NativeDevice } from '../device.js'
import { callOp } from './call.js'
import type { DeviceCore } from './core.js'
import { DeviceTensor } from './device_tensor.js'
import type { Device, SkippedDevice } from './device_types.js'
import { bytesIn, formBytes } from './form.js'
import { checkGiven } from './given.js'
import { loadModel } from './load.js'
import type { LoadOptions, ProgramLoadOptions } from './model_types.js'
import { checkOptions } from './options.js'
import { typeName } from './tensor.js'

/** Creates the public device over an open native one. */
export function deviceOf(native: NativeDevice, root: string, skipped: readonly SkippedDevice[], core: DeviceCore): Device {
  const close = (): Promise<void> => core.close()
  return {
    kind: native.kind,
    skipped,
    root,
    get info() {
      core.expectOpen('info')
      return native.info()
    },
    // Results have the types of the declaration: callOp checks inputs and creates results by it.
    call: async (op, inputs, options) => (await callOp(core, op, inputs, options)) as never,
    async upload(given, options = {}) {
      core.expectOpen('upload')
      checkOptions('tensor', 'upload', ['layout', 'signal'], options)
      options.signal?.throwIfAborted()
      const tensor = checkGiven('upload', 'tensor', given)
      const form = { dtype: given.dtype, shape: [...tensor.shape], layout: options.layout }
      checkLayout(form)
      const bytes = formBytes(form)
      const buffer = native.allocate(Math.max(bytes, 1))
      try {
        await core.track(buffer.write(0, bytesIn(tensor, options.layout)))
        options.signal?.throwIfAborted()
      } catch (error) {
        buffer.release()
        throw error
      }
      return new DeviceTensor(form, core, { buffer, offset: 0, bytes })
    },
    load: async (decl: GraphDecl | ProgramDecl, options: LoadOptions | ProgramLoadOptions) =>
      (await loadModel(core, decl, options)) as never,
    close,
    [Symbol.asyncDispose]: close,
  }
}

function checkLayout({ shape, layout }: { readonly shape: readonly number[]; readonly layout: LayoutDecl | undefined }): void {
  if (layout !== undefined && !Array.isArray(layout?.axes)) {
    throw usageError('tensor.layout', `layout: expected a layout, got ${typeName(layout)}`, {
      hint: 'pass what layout(...) returns, such as layouts.col32 of heddle/specs/layouts.js',
    })
  }
  if (layout === undefined || layout.axes.length === shape.length) return
  throw usageError(
    'tensor.layout',
    `layout ${layout.name}: expected a tensor with axes ${layout.axes.join(' ')}, got shape [${shape.join(', ')}]`,
  )
}
