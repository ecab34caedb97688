/**
 * One piece of memory for the arenas of programs that run one after the other: prompts of many lengths are read by many programs, and what
 * one of them leaves behind means nothing to the next.
 */
import type { NativeBuffer, NativeDevice } from './native.js'

export interface SharedArena {
  /** Memory of at least `bytes`. What was handed out before lasts as long as the programs that have it. @throws what the device rejects with */
  take(bytes: number): Promise<NativeBuffer>
}

export interface OwnedArena {
  /** Device memory that programs made from now on share. */
  readonly bytes: number
  /**
   * The arena for a program.
   * @param outgrown releases the programs that have less memory than this one needs: theirs goes before more is allocated
   */
  for(outgrown: () => Promise<void>): SharedArena
  /** Frees the memory, as soon as no program has it. */
  release(): void
}

/** An arena that grows with the largest program. Programs are made one after the other. */
export function sharedArena(device: NativeDevice): OwnedArena {
  let held: NativeBuffer | undefined
  const release = (): void => {
    held?.release()
    held = undefined
  }
  return {
    get bytes() {
      return held?.bytes ?? 0
    },
    for: (outgrown) => ({
      async take(bytes) {
        if (held !== undefined && held.bytes >= bytes) return held
        release()
        await outgrown()
        held = device.allocate(bytes)
        return held
      },
    }),
    release,
  }
}
