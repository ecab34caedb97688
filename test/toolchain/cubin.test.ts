import { expect, test } from 'vitest'
import { sectionsOf, threadsOf } from '../../src/toolchain/cubin.js'
import { cubinOf } from './cubin_bytes.js'

test('reads the threads of each kernel from its attributes', () => {
  const cubin = cubinOf({ _Z4spinv: 128, _Z4spunv: 512 })
  expect(threadsOf(cubin)).toEqual(
    new Map([
      ['_Z4spinv', 128],
      ['_Z4spunv', 512],
    ]),
  )
  expect(sectionsOf(cubin).at(-2)).toMatchObject({ name: '.nv.shared.kernel', data: { byteLength: 0 } })
})

test('a file that is not a cubin is refused', () => {
  const other = cubinOf({})
  other[0x12] = 62
  for (const bytes of [new Uint8Array(3), other]) expect(() => threadsOf(bytes)).toThrow('not a cubin')
})
