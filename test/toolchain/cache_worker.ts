/** A process that asks a cache for three entries, each of which takes `milliseconds` to make. Says so when it begins to make one. */
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
