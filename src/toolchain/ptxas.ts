/** Parser of the output of `ptxas -v`: resources of each kernel on each architecture. */

export interface KernelResources {
  /** Name with template arguments, `softmax_kept<WarpTeam<4>, 1>`; in the output of ptxas, the symbol. */
  readonly kernel: string
  /** `sm_90` */
  readonly arch: string
  readonly registers: number
  readonly spillStoreBytes: number
  readonly spillLoadBytes: number
  readonly stackBytes: number
  /** Static shared memory; a launch may add more. */
  readonly sharedBytes: number
  /** Maximum threads per block; known only for bare machine code (a cubin). */
  readonly threads?: number | undefined
  /** Set for a kernel of the device headers that depends on no source: of the files of a unit, the first has it. */
  readonly ofHeaders?: true
}

const number = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)

/** Parses resources by symbol, in the order of the output. */
export function parsePtxas(stderr: string): KernelResources[] {
  const parts = stderr.split(/Compiling entry function '/).slice(1)
  return parts.flatMap((part) => {
    const head = /^([^']+)' for '([^']+)'/.exec(part)
    if (head?.[1] === undefined || head[2] === undefined) return []
    // Device functions that were not inlined have stack lines of their own; a kernel's frame follows its name.
    const own = part.slice(part.indexOf(`Function properties for ${head[1]}`))
    return [
      {
        kernel: head[1],
        arch: head[2],
        registers: number(part, /Used (\d+) registers/),
        spillStoreBytes: number(own, /(\d+) bytes spill stores/),
        spillLoadBytes: number(own, /(\d+) bytes spill loads/),
        stackBytes: number(own, /(\d+) bytes stack frame/),
        sharedBytes: number(part, /(\d+) bytes smem/),
      },
    ]
  })
}
