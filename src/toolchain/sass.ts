/**
 * Checks the order of waits, releases and loads in the machine code of kernels that may start before earlier launches are complete: such a
 * kernel may load only constants before its wait, and may let later launches start only after its wait.
 * The source has this order, but compilers move loads. Parses cubins itself, since the disassembler is not part of every toolkit.
 */
import { readFile } from 'node:fs/promises'
import { findingError } from '../errors.js'
import { sectionsOf } from './cubin.js'
import { plainName } from './symbol.js'

/** A kernel that loads or releases too early, with a description. */
export interface OrderFault {
  readonly kernel: string
  readonly fault: string
}

/** Instructions have 16 bytes; the low 12 bits of the first word are the operation, from sm_70 on. */
const instructionBytes = 16
const operation = { wait: 0x82e, release: 0x82d, load: 0x981, genericLoad: 0x980 }

/** Memory order of a load: bits 13 to 16 of an instruction's second half. `readOnly` is the read-only path. */
const orderOf = (high: bigint): number => Number((high >> 13n) & 0xfn)
const readOnly = 4

/**
 * Early loads and releases in the kernels of a cubin for sm_90, in the order of the code. Branches are ignored, as if the code ran from top to
 * bottom.
 * @throws if the bytes are not a cubin
 */
export function earlyAccesses(cubin: Uint8Array): OrderFault[] {
  return codeSections(cubin).flatMap(({ kernel, code }) => {
    const fault = faultOf(code)
    return fault === undefined ? [] : [{ kernel, fault }]
  })
}

/**
 * Refuses machine code for sm_90 with early loads or releases.
 * @param objects cubins; files that were compiled together share one
 * @throws finding `build.early`
 */
export async function refuseEarly(objects: readonly { readonly source: string; readonly object: string }[]): Promise<void> {
  const sources = new Map<string, string[]>()
  for (const { source, object } of objects) sources.set(object, [...(sources.get(object) ?? []), source])
  const faults: string[] = []
  for (const [object, files] of sources) {
    const early = earlyAccesses(await readFile(object))
    faults.push(...early.map(({ kernel, fault }) => `${kernel} (${files.join(' or ')}): ${fault}`))
  }
  if (faults.length === 0) return
  throw findingError('build.early', faults.join('\n'), {
    hint: 'a kernel that may start early must wait (heddle::begin_kernel) before it reads memory that another launch writes',
  })
}

/** Plain names of the kernels of a cubin. @throws if the bytes are not a cubin */
export const kernelsOf = (cubin: Uint8Array): string[] => codeSections(cubin).map(({ kernel }) => kernel)

function faultOf(code: DataView): string | undefined {
  let loads = 0
  for (let at = 0; at + instructionBytes <= code.byteLength; at += instructionBytes) {
    const kind = code.getUint16(at, true) & 0xfff
    if (kind === operation.wait) return undefined
    if (kind === operation.release) return `instruction ${at / instructionBytes} lets the next launch start before the first wait`
    if (kind !== operation.load && kind !== operation.genericLoad) continue
    loads++
    const isConstant = kind === operation.load && orderOf(code.getBigUint64(at + 8, true)) === readOnly
    if (!isConstant) return `instruction ${at / instructionBytes} loads memory that may change before the first wait`
  }
  return loads > 0 ? 'it loads but never waits' : undefined
}

function codeSections(cubin: Uint8Array): { readonly kernel: string; readonly code: DataView }[] {
  return sectionsOf(cubin).flatMap(({ name, data }) =>
    name.startsWith('.text.') ? [{ kernel: plainName(name.slice('.text.'.length)), code: data }] : [],
  )
}
