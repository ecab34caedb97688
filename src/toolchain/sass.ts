/**
 * The order of waits, releases and loads in the machine code of kernels that may start before the launches in front of them are
 * complete: what such a kernel loads before it has waited must be constant, and it lets others start only when its own wait is over.
 * The source says so, but compilers move loads. Read from cubins as they are, since the disassembler is no part of every toolkit.
 */
import { readFile } from 'node:fs/promises'
import { findingError } from '../errors.js'
import { sectionsOf } from './cubin.js'
import { plainName } from './symbol.js'

/** A kernel that loads or releases too early, and what it does. */
export interface OrderFault {
  readonly kernel: string
  readonly fault: string
}

/** Instructions have 16 bytes; the low 12 bits of the first word are the operation, from sm_70 on. */
const instructionBytes = 16
const operation = { wait: 0x82e, release: 0x82d, load: 0x981, genericLoad: 0x980 }

/** Bits 13 to 16 of an instruction's second half: how a load orders itself. This value stands for the read-only path. */
const orderOf = (high: bigint): number => Number((high >> 13n) & 0xfn)
const readOnly = 4

/**
 * What the kernels of a cubin for sm_90 do too early, in the order of the code. A kernel whose first instruction of a kind stands behind
 * a branch counts as if the code ran from top to bottom.
 * @throws when the bytes are no cubin
 */
export function earlyAccesses(cubin: Uint8Array): OrderFault[] {
  return codeSections(cubin).flatMap(({ kernel, code }) => {
    const fault = faultOf(code)
    return fault === undefined ? [] : [{ kernel, fault }]
  })
}

/**
 * Refuses machine code for sm_90 that does something too early.
 * @param objects cubins, of which files that were compiled together have one
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
    hint: 'a kernel that may start early waits (heddle::begin_kernel) before it reads what another launch writes',
  })
}

/** The kernels of a cubin, by their plain names. @throws when the bytes are no cubin */
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
    if (!isConstant) return `instruction ${at / instructionBytes} loads what may change before the first wait`
  }
  return loads > 0 ? 'it loads and never waits' : undefined
}

function codeSections(cubin: Uint8Array): { readonly kernel: string; readonly code: DataView }[] {
  return sectionsOf(cubin).flatMap(({ name, data }) =>
    name.startsWith('.text.') ? [{ kernel: plainName(name.slice('.text.'.length)), code: data }] : [],
  )
}
