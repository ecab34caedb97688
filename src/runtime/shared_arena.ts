/**
 * Arena shared by programs that run one after the other: prompts of different lengths run in different programs, and no program needs the values that
 * another one left in the arena.
 */
import type { NativeBuffer, NativeDevice } from './native.js'

export interface SharedArena {
  /** Returns memory of at least `bytes`. Memory returned earlier stays valid while its programs exist. @throws errors of the device */
  take(bytes: number): Promise<NativeBuffer>
}

export interface OwnedArena {
  /** Size of the device memory that newly built programs share. */
  readonly bytes: number
  /**
   * Arena for a program.
   * @param outgrown releases the programs with less memory than this one needs: their memory is freed before more is allocated
   */
  for(outgrown: () => Promise<void>): SharedArena
  /** Frees the memory once no program uses it. */
  release(): void
}

/** Creates an arena that grows with the largest program. Programs are built one after the other. */
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
