/** Copies within device memory outside a program's own steps: inputs that are on the device already, and results that stay there. */
import type { NativeCopy, NativeDevice } from './native.js'

/** Submits copies to the device at once, after all work submitted before. */
export async function moveSlices(device: NativeDevice, moves: readonly Omit<NativeCopy, 'kind'>[]): Promise<void> {
  if (moves.length === 0) return
  const program = device.program(moves.map((move) => ({ kind: 'copy', ...move })))
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}
