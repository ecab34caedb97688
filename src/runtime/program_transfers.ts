/** Copies within device memory beside a program's own steps: inputs that are on the device already, and results that stay there. */
import type { NativeCopy, NativeDevice } from './native.js'

/** Hands copies to the device at once, behind what it was given before. */
export async function moveSlices(device: NativeDevice, moves: readonly Omit<NativeCopy, 'kind'>[]): Promise<void> {
  if (moves.length === 0) return
  const program = device.program(moves.map((move) => ({ kind: 'copy', ...move })))
  try {
    await program.run([], [])
  } finally {
    program.release()
  }
}
