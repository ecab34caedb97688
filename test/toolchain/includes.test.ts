import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { headerDigests } from '../../src/toolchain/includes.js'

let folder: string

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'heddle-includes-'))
  await mkdir(join(folder, 'a'))
  await mkdir(join(folder, 'b'))
  await writeFile(
    join(folder, 'a', 'kernel.cuh'),
    '#include "vector.cuh"\n#include <math.h>\n#if 0\n  #  include "off.cuh"\n#endif\n',
  )
  await writeFile(join(folder, 'b', 'vector.cuh'), '#include "kernel.cuh"\nint v;\n')
  await writeFile(join(folder, 'b', 'off.cuh'), 'int off;\n')
  await writeFile(join(folder, 'b', 'unused.cuh'), 'int unused;\n')
})

afterEach(() => rm(folder, { recursive: true }))

const digests = () => headerDigests('#include "kernel.cuh"\n', [join(folder, 'a'), join(folder, 'b')])

test('follows includes through folders, cycles and conditions, and ignores the toolkit', async () => {
  expect(Object.keys(await digests()).sort()).toEqual(['kernel.cuh', 'off.cuh', 'vector.cuh'])
})

test('changes with a header that is reached, and with no other', async () => {
  const before = await digests()
  await writeFile(join(folder, 'b', 'unused.cuh'), 'int changed;\n')
  expect(await digests()).toEqual(before)
  await writeFile(join(folder, 'b', 'vector.cuh'), 'int changed;\n')
  expect(await digests()).not.toEqual(before)
})
