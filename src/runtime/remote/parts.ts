/**
 * Parts that the other machine gets once: Node, the agent's script, the addon with the device plugins. Each is a folder named by the digest of its
 * files, so that a changed part alone is sent again.
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { create } from 'tar'
import { environmentError } from '../../errors.js'
import { packageRoot, runTool, which } from '../../toolchain/index.js'
import { nativeFolder } from '../addon.js'

export interface Part {
  /** Folder on the other machine. */
  readonly name: string
  /** Paths here, by name in the folder. */
  readonly files: Readonly<Record<string, string>>
}

async function part(kind: string, files: Readonly<Record<string, string>>): Promise<Part> {
  const hash = createHash('sha256')
  for (const [name, path] of Object.entries(files)) {
    hash.update(`${name}\0`)
    await pipeline(createReadStream(path), async (pieces) => {
      for await (const piece of pieces) hash.update(piece)
    })
  }
  return { name: `${kind}-${hash.digest('hex').slice(0, 24)}`, files }
}

/** Node, the agent of the package at `root`, and the native files of this machine, in this order. @throws environment `addon.missing`, `remote.agent` */
export async function localParts(root = packageRoot()): Promise<readonly Part[]> {
  const agent = join(root, 'dist', 'agent.mjs')
  if (!existsSync(agent))
    throw environmentError('remote.agent', `there is no agent ${agent} to send`, {
      hint: 'install heddle again; in a checkout, npm run build writes it',
    })
  const folder = nativeFolder()
  const native = ['heddle.node', 'libheddle_simt.so', 'libheddle_cuda.so'].filter((name) => existsSync(join(folder, name)))
  return Promise.all([
    part('node', { node: process.execPath }),
    part('agent', { 'agent.mjs': agent }),
    part('native', Object.fromEntries(native.map((name) => [name, join(folder, name)]))),
  ])
}

/** Lays parts out in a folder, by links, and Node without its symbols, which are two thirds of it. */
async function layOut(folder: string, parts: readonly Part[]): Promise<void> {
  for (const { name, files } of parts) {
    await mkdir(join(folder, name))
    for (const [file, path] of Object.entries(files)) {
      const tool = file === 'node' ? await which('strip') : undefined
      if (tool === undefined) await symlink(path, join(folder, name, file))
      else {
        await copyFile(path, join(folder, name, file))
        await runTool(tool, [join(folder, name, file)])
      }
    }
  }
  await writeFile(join(folder, 'whole'), '')
}

/** Passes an archive of parts to an action; its last file is `whole`. */
export async function withArchive<T>(parts: readonly Part[], gzip: boolean, use: (archive: Readable) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'heddle-send-'))
  try {
    await layOut(folder, parts)
    const file = join(folder, 'archive')
    const compress = gzip ? { gzip: { level: 4 } } : {}
    await create({ ...compress, file, cwd: folder, follow: true, portable: true }, [...parts.map(({ name }) => name), 'whole'])
    return await use(createReadStream(file))
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}
