/** Runs of an assembled program: checks the inputs, and submits input copies, steps and output copies to the device in one go. */
import { usageError } from '../errors.js'
import { dtypeInfo } from '../ir/dtype.js'
import type { ValueInfo } from './bind.js'
import type { NativeDevice, NativeProgram, NativeSlice } from './native.js'
import type { FlatProgram } from './program_flatten.js'
import type { StorageId } from './program_memory.js'
import { moveSlices } from './program_transfers.js'

export interface RunOptions {
  /** Number of consecutive runs of the steps between the inputs and the outputs: 1 to 100,000, by default 1. */
  readonly repeats?: number
  /** Device memory to which outputs are copied instead of being returned. */
  readonly into?: Readonly<Record<string, NativeSlice>>
}

/** A program on its device, with the memory of its storages. */
export interface AssembledProgram {
  readonly device: NativeDevice
  readonly native: NativeProgram
  readonly flat: FlatProgram
  slice(id: StorageId): NativeSlice
}

/** Limit of NativeProgram.run. */
const maxRepeats = 100_000

/** Implementation of `Program.run`. @throws usage `program.input`, `program.repeats` */
export async function runProgram(
  { device, native, flat, slice }: AssembledProgram,
  inputs: Readonly<Record<string, Uint8Array | NativeSlice>>,
  { repeats = 1, into = {} }: RunOptions = {},
): Promise<Readonly<Record<string, Uint8Array>>> {
  checkRepeats(repeats)
  const outputs = Object.entries(flat.outputs)
  const given = Object.entries(flat.inputs).map(([name, { info, storage }]) => {
    const to = slice(storage)
    return { label: name, to, from: checkInput(name, { ...info, bytes: to.bytes }, inputs[name]) }
  })
  const writes = given.flatMap(({ to, from }) => (from instanceof Uint8Array ? [{ to, data: from }] : []))
  const returned = outputs.filter(([name]) => into[name] === undefined)
  const before = given.flatMap(({ from, ...rest }) => (from instanceof Uint8Array ? [] : [{ ...rest, from }]))
  const after = outputs.flatMap(([label, { storage }]) => {
    const to = into[label]
    return to === undefined ? [] : [{ label, from: slice(storage), to }]
  })
  // All three are submitted before the first is awaited, so that no other work runs between them.
  const [, results] = await Promise.all([
    moveSlices(device, before),
    native.run(
      writes,
      returned.map(([, { storage }]) => slice(storage)),
      repeats,
    ),
    moveSlices(device, after),
  ])
  return Object.fromEntries(returned.map(([name], i) => [name, results[i] ?? new Uint8Array()]))
}

function checkRepeats(repeats: number): void {
  if (Number.isInteger(repeats) && repeats >= 1 && repeats <= maxRepeats) return
  throw usageError('program.repeats', `repeats: expected an integer in [1, ${maxRepeats}], got ${repeats}`)
}

/** Checks the size of an input, in its layout. @throws usage `program.input` */
function checkInput(
  name: string,
  { dtype, shape, layout, bytes }: ValueInfo & { readonly bytes: number },
  data: Uint8Array | NativeSlice | undefined,
): Uint8Array | NativeSlice {
  const form = layout === 'row' ? '' : ` in layout ${layout}`
  const expected = `${dtype} [${shape.join(', ')}]${form}, ${bytes} bytes`
  if (data === undefined) throw usageError('program.input', `input ${name} is missing: expected ${expected}`)
  const found = data instanceof Uint8Array ? data.byteLength : data.bytes
  if (found !== bytes) {
    throw usageError('program.input', `input ${name} has ${found} bytes: expected ${expected}`, {
      hint: `a ${dtype} element takes ${dtypeInfo[dtype].bytes} bytes`,
    })
  }
  return data
}
