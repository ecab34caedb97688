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
  let arena: NativeBuffer | undefined
  const release = (): void => {
    arena?.release()
    arena = undefined
  }
  return {
    get bytes() {
      return arena?.bytes ?? 0
    },
    for: (outgrown) => ({
      async take(bytes) {
        if (arena !== undefined && arena.bytes >= bytes) return arena
        release()
        await outgrown()
        arena = device.allocate(bytes)
        return arena
      },
    }),
    release,
  }
}
