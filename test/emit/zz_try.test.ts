import { test } from 'vitest'
import { readSpecsOrThrow } from '../../src/frontend/index.js'
import { generate, writeGenerated } from '../../src/emit/index.js'
test('gen', async () => {
  const { kernels } = readSpecsOrThrow({ root: process.cwd(), specs: ['specs'] })
  const files = generate(kernels)
  await writeGenerated('/tmp/hb/generated', files)
  console.log([...files.keys()].length)
})
