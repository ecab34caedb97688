/** A cubin with nothing in it but the attributes of kernels and a few instructions. */

/**
 * @param threads by the symbol of a kernel, the most that its blocks may have
 * @param code by the symbol of a kernel, the operations of its instructions
 */
export function cubinOf(
  threads: Readonly<Record<string, number>>,
  code: Readonly<Record<string, readonly number[]>> = {},
): Uint8Array {
  const instructions = Object.entries(code).map(([kernel, operations]) => {
    const data = Buffer.alloc(16 * operations.length)
    for (const [i, operation] of operations.entries()) data.writeUInt16LE(operation, 16 * i)
    return { name: `.text.${kernel}`, data, type: 1 }
  })
  const attributes = Object.entries(threads).map(([kernel, count]) => {
    const data = Buffer.alloc(24)
    // One of a plain form, which is skipped, before the one that counts.
    data.set([3, 0x1b, 255, 0, 4, 0x05, 12, 0])
    for (const [i, extent] of [count, 1, 1].entries()) data.writeUInt32LE(extent, 8 + 4 * i)
    return { name: `.nv.info.${kernel}`, data, type: 1 }
  })
  // The last section takes no space in the file, regardless of its size.
  const memory = { name: '.nv.shared.kernel', data: Buffer.alloc(0), type: 8 }
  const sections = [{ name: '', data: Buffer.alloc(0), type: 0 }, ...attributes, ...instructions, memory]
  const names = Buffer.from(`${[...sections.map(({ name }) => name), '.names'].join('\0')}\0`)
  const all = [...sections, { name: '.names', data: names, type: 3 }]
  const headerBytes = 64
  const contents = Buffer.concat(all.map(({ data }) => data))
  const header = Buffer.alloc(headerBytes)
  header.writeUInt32LE(0x464c457f, 0)
  header.writeUInt16LE(190, 0x12)
  header.writeBigUInt64LE(BigInt(headerBytes + contents.length), 0x28)
  for (const [i, value] of [headerBytes, all.length, all.length - 1].entries()) header.writeUInt16LE(value, 0x3a + 2 * i)
  let [at, named] = [headerBytes, 0]
  const table = all.map(({ name, data, type }) => {
    const row = Buffer.alloc(headerBytes)
    row.writeUInt32LE(named, 0)
    row.writeUInt32LE(type, 4)
    row.writeBigUInt64LE(BigInt(at), 24)
    row.writeBigUInt64LE(BigInt(type === 8 ? 4096 : data.length), 32)
    at += data.length
    named += name.length + 1
    return row
  })
  return Buffer.concat([header, contents, ...table])
}
