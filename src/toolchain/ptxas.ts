/** Reads what ptxas says with `-v`: the resources of each kernel on each architecture. */

export interface KernelResources {
  /** The kernel's name as written in the generated text. */
  readonly kernel: string
  /** `sm_90` */
  readonly arch: string
  readonly registers: number
  readonly spillStoreBytes: number
  readonly spillLoadBytes: number
  readonly stackBytes: number
  readonly sharedBytes: number
}

/**
 * The innermost plain name in an Itanium-mangled symbol: `_ZN6heddle5hello…` is `hello`. Template arguments are dropped.
 * A name that is not mangled is itself.
 */
export function plainName(symbol: string): string {
  if (!symbol.startsWith('_Z')) return symbol
  let at = symbol.startsWith('_ZN') ? 3 : 2
  let name = symbol
  for (;;) {
    const length = /^\d+/.exec(symbol.slice(at))?.[0]
    if (length === undefined) return name
    const start = at + length.length
    name = symbol.slice(start, start + Number(length))
    at = start + Number(length)
    if (!symbol.startsWith('_ZN')) return name
  }
}

const number = (text: string, pattern: RegExp): number => Number(pattern.exec(text)?.[1] ?? 0)

/** Resources in the order ptxas reports them. */
export function parsePtxas(stderr: string): KernelResources[] {
  const parts = stderr.split(/Compiling entry function '/).slice(1)
  return parts.flatMap((part) => {
    const head = /^([^']+)' for '([^']+)'/.exec(part)
    if (head?.[1] === undefined || head[2] === undefined) return []
    // Device functions that were not inlined have stack lines of their own; a kernel's frame follows its own name.
    const own = part.slice(part.indexOf(`Function properties for ${head[1]}`))
    return [
      {
        kernel: plainName(head[1]),
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
