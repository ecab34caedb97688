/** A process that requests three entries from a cache, each of which takes `milliseconds` to make. Prints a line when it begins to make one. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { cached } from '../../src/toolchain/cache.js'

const [, , root = '', milliseconds = '300'] = process.argv
for (const key of ['a', 'b', 'c']) {
  await cached(root, key, async (folder) => {
    await writeFile(join(folder, 'object.o'), `half of ${key}`)
    process.send?.('making')
    await sleep(Number(milliseconds))
    await writeFile(join(folder, 'object.o'), `the whole of ${key}`)
  })
}
process.disconnect()
