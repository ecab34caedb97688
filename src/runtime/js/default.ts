/** Default device of a machine without a C++ compiler: `js`. A notice of every call, or one warning per process, says so. */
import { findCxx, installation, packageRoot, platformFolder } from '../../toolchain/index.js'

/** The reason for `js`, as a notice. */
export const whyJs =
  'no C++ compiler was found ($CXX, g++, c++, clang++), so kernels run on the device js: as JavaScript, which is slow; name another device to override'

let isSaid = false

/** Says the reason: to the caller, or once per process as a warning. */
function say(onNotice: ((text: string) => void) | undefined): void {
  if (onNotice !== undefined) {
    onNotice(whyJs)
    return
  }
  if (!isSaid) process.emitWarning(whyJs, 'HeddleWarning')
  isSaid = true
}

/** `js` if this machine has no C++ compiler and needs one; undefined otherwise. The portable bundle needs none. */
export async function jsByDefault({
  root,
  onNotice,
}: {
  readonly root: string
  readonly onNotice?: ((text: string) => void) | undefined
}): Promise<'js' | undefined> {
  // Shipped kernels of a platform package need no compiler.
  const isPacked = root === packageRoot() && platformFolder() !== undefined
  if (installation(root).portable || isPacked || (await findCxx()) !== undefined) return undefined
  say(onNotice)
  return 'js'
}
