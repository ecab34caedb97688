/** A temporary project with generated source, and stand-ins for compilers, so that the build is tested without CUDA. */
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { vi } from 'vitest'
import type { Manifest } from '../../src/emit/manifest/manifest.js'
import { contentDigest, recordOwn } from '../../src/own_text.js'
import { sha256 } from '../../src/toolchain/hash.js'

export interface TestProject {
  readonly root: string
  /** Files that it writes below `generated` count as this user's own, as if `gen` had written them. */
  write(file: string, text: string): Promise<void>
  /** An executable script in the project. */
  script(name: string, text: string): Promise<string>
}

/** The part of a file's name before `__` is the name of its op. */
const entry = (file: string, text: string): Manifest['kernels'][number] => ({
  key: `${file}__f32`,
  op: file.replace(/__.*/, ''),
  types: { T: 'f32' },
  fixedDims: {},
  file: `cuda/${file}.cu`,
  digest: sha256(text),
  buffers: [],
  dims: [],
  attrs: [],
  variants: [],
})

/** A project whose kernels have the given sources, with a separate cache until `vi.unstubAllEnvs`. */
export async function testProject(kernels: Readonly<Record<string, string>>): Promise<TestProject> {
  const root = await mkdtemp(join(tmpdir(), 'heddle-build-'))
  vi.stubEnv('HEDDLE_CACHE', join(root, 'cache'))
  const write = async (file: string, text: string): Promise<void> => {
    await mkdir(dirname(join(root, file)), { recursive: true })
    await writeFile(join(root, file), text)
    if (file.startsWith('generated/')) await recordOwn([contentDigest(text)])
  }
  const manifest: Manifest = { version: 1, kernels: Object.entries(kernels).map(([op, text]) => entry(op, text)) }
  await write('generated/manifest.json', JSON.stringify(manifest))
  await write('generated/registry.cpp', 'extern "C" int registry() { return 1; }\n')
  for (const [op, text] of Object.entries(kernels)) await write(`generated/cuda/${op}.cu`, text)
  return {
    root,
    write,
    async script(name, text) {
      await write(name, `#!/bin/sh\n${text}\n`)
      await chmod(join(root, name), 0o755)
      return join(root, name)
    },
  }
}
